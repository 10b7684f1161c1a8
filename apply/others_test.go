package apply

import (
	"context"
	"slices"
	"testing"

	"github.com/pullet/pullet/render"
)

// named is an action with a name.
type named struct {
	Name string `yaml:"name"`
}

func (a *named) Check(context.Context, *Host) (Change, error)         { return Change{}, nil }
func (a *named) Apply(context.Context, *Host, Change) (Output, error) { return Output{}, nil }

// TestOtherSteps: an action sees the other steps with their parameters, without those of an unknown action, and may
// stop at any of them.
func TestOtherSteps(t *testing.T) {
	job := &render.Job{Name: "a"}
	for name, action := range map[string]string{"one": "t.named", "two": "t.named", "own": "t.named", "odd": "no.such"} {
		params, err := render.ParamsOf(map[string]any{"name": "/" + name})
		if err != nil {
			t.Fatal(err)
		}
		job.Steps = append(job.Steps, &render.Step{Job: "a", Name: name, Action: action, Params: params})
	}
	b := Binding{
		Catalog: &render.Catalog{Jobs: []*render.Job{job}}, Step: &render.Step{Job: "a", Name: "own"},
		specs: map[string]Spec{"t.named": {Name: "t.named", New: func() Action { return &named{} }}},
	}
	var all []string
	for s, act := range b.OtherSteps() {
		all = append(all, s.Name+" "+act.(*named).Name)
	}
	if slices.Sort(all); !slices.Equal(all, []string{"one /one", "two /two"}) {
		t.Errorf("%q", all)
	}
	seen := 0
	for range b.OtherSteps() {
		seen++
		break
	}
	if seen != 1 {
		t.Errorf("%d steps after the first", seen)
	}
}
