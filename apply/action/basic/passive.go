package basic

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// TimeSleep waits, once for each version.
//
// Example:
//
//	steps:
//	  - name: drain
//	    action: time.sleep
//	    parameters: {time: 30s}
type TimeSleep struct {
	Time render.Duration `yaml:"time,required"` // how long
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

// TimeSleepRand waits for a random time, once for each version: it spreads what many nodes would do at once.
//
// Example:
//
//	steps:
//	  - name: not all at once
//	    action: time.sleep_rand
//	    parameters: {time: 2m}
type TimeSleepRand struct {
	Time render.Duration `yaml:"time,required"` // the longest it waits
}

// Unchecked is true: whether a time was waited for cannot be seen.
func (a *TimeSleepRand) Unchecked() bool { return true }

// Check always finds something to do.
func (a *TimeSleepRand) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "wait up to " + a.Time.Std().String()}, nil
}

// Apply waits, or returns when ctx ends.
func (a *TimeSleepRand) Apply(ctx context.Context, h *apply.Host, c apply.Change) (apply.Output, error) {
	some := TimeSleep{Time: render.Duration(rand.N(a.Time.Std() + 1))}
	return some.Apply(ctx, h, c)
}

// TemplateExpression computes a text, which later steps read as steps['name'].StdOut.
//
// Example:
//
//	steps:
//	  - name: address
//	    action: template.expression
//	    parameters: {content: "{{ server.address }}:8080"}
type TemplateExpression struct {
	Content string `yaml:"content,required"` // the text
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
