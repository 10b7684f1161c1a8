package action_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/render"
)

// examples are the cases of each action, by its name. Each test file adds its own.
var examples = map[string][]actiontest.Example{}

// beside runs an example beside others, unless it has the whole host for itself.
func beside(t *testing.T, c actiontest.Example) {
	if !c.Whole {
		t.Parallel()
	}
}

// TestContract holds every action against what all of them promise.
func TestContract(t *testing.T) {
	for _, spec := range action.All() {
		cases := examples[spec.Name]
		if len(cases) < 2 {
			t.Errorf("%s: %d examples, want at least 2: add them to this test", spec.Name, len(cases))
		}
		for _, c := range cases {
			t.Run(spec.Name+"/"+c.Name, func(t *testing.T) {
				beside(t, c)
				s := c.Scene(t)
				c.Check(s, s.MustBind(spec.Name, c.Params), spec.Passive)
			})
		}
	}
}

// TestCheckedActions: after a run, an action that checks finds nothing also where nothing is on record.
func TestCheckedActions(t *testing.T) {
	for _, spec := range action.All() {
		for _, c := range examples[spec.Name] {
			if c.Fails != "" || c.Unseen || strings.HasPrefix(c.Name, "without") || strings.HasPrefix(c.Name, "a list") || spec.Passive {
				continue // no guard: the record is its check
			}
			t.Run(spec.Name+"/"+c.Name, func(t *testing.T) {
				beside(t, c)
				s := c.Scene(t)
				p := s.MustBind(spec.Name, c.Params)
				s.Run(p)
				s.State = t.TempDir()
				if r := s.Plan(p); r.Outcome != apply.OK {
					t.Errorf("check after apply: %s %q, want ok", r.Outcome, r.Summary)
				}
			})
		}
	}
}

// TestCancelledBefore: with a context that ended, nothing is started.
func TestCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, spec := range action.All() {
		for _, c := range examples[spec.Name] {
			t.Run(spec.Name+"/"+c.Name, func(t *testing.T) {
				beside(t, c)
				s := c.Scene(t)
				p := s.MustBind(spec.Name, c.Params)
				before := s.Tree()
				if r := s.RunAll(ctx, p); r.Stopped == "" {
					t.Errorf("it was not stopped: %s", r.Why())
				}
				for _, d := range actiontest.Differences(before, s.Tree()) {
					t.Errorf("it changed: %s", d)
				}
			})
		}
	}
}

// mistake is a set of parameters that cannot be right, and what is said of it.
type mistake struct{ action, params, want string }

// mistakes are those of all actions. Each test file adds its own.
var mistakes []mistake

// TestBadParameters: what is wrong is found before the host is touched, with its place.
func TestBadParameters(t *testing.T) {
	for _, c := range mistakes {
		t.Run(c.action+" "+c.params, func(t *testing.T) {
			t.Parallel()
			s := actiontest.New(t)
			s.Files["bad"] = "x\n{{ vars.nope }}\n"
			_, err := s.Bind(c.action, c.params)
			var list render.ErrorList
			if !errors.As(err, &list) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
