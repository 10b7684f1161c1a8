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

// TestContract holds every action against what all of them promise: a run that is stopped before it begins starts
// nothing, then the example's check, and an action that checks finds nothing to do afterwards also where nothing is on
// record. One scene serves all three, because many are costly to make.
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
				p := s.MustBind(spec.Name, c.Params)
				startsNothing(s, p)
				c.Check(s, p, spec.Passive)
				if c.Fails != "" || c.Unseen || strings.HasPrefix(c.Name, "without") || strings.HasPrefix(c.Name, "a list") || spec.Passive {
					return // no guard: the record is its check
				}
				s.State = t.TempDir()
				if r := s.Plan(p); r.Outcome != apply.OK {
					t.Errorf("check after apply: %s %q, want ok", r.Outcome, r.Summary)
				}
			})
		}
	}
}

// startsNothing runs a program with a context that ended.
func startsNothing(s *actiontest.Scene, p *apply.Program) {
	s.T.Helper()
	state := s.State
	s.State = s.T.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	before := s.Tree()
	if r := s.RunAll(ctx, p); r.Stopped == "" {
		s.T.Errorf("it was not stopped: %s", r.Why())
	}
	for _, d := range actiontest.Differences(before, s.Tree()) {
		s.T.Errorf("a run that was stopped before it began changed: %s", d)
	}
	s.State = state
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
