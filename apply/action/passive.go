package action

import (
	"context"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// TimeSleep waits, once for each version.
type TimeSleep struct {
	Time render.Duration `yaml:"time,required"`
}

// Unchecked is true: whether a time was waited for cannot be seen.
func (a *TimeSleep) Unchecked() bool { return true }

// Check always finds something to do.
func (a *TimeSleep) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "wait " + a.Time.Std().String()}, nil
}

// Apply waits, or returns when ctx ends.
func (a *TimeSleep) Apply(ctx context.Context, _ *apply.Host, _ apply.Change) (apply.Output, error) {
	select {
	case <-ctx.Done():
		return apply.Output{}, ctx.Err()
	case <-time.After(a.Time.Std()):
		return apply.Output{}, nil
	}
}

// TemplateExpression computes a text, which later steps read as steps['name'].StdOut.
type TemplateExpression struct {
	Content string `yaml:"content,required"`
}

// Unchecked is true: a text that was computed stays as it was until its parameters change.
func (a *TemplateExpression) Unchecked() bool { return true }

// Check always finds something to do: computing costs nothing and changes nothing.
func (a *TemplateExpression) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "compute"}, nil
}

// Apply gives the text.
func (a *TemplateExpression) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	return apply.Output{StdOut: a.Content}, nil
}
