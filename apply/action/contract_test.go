package action_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/render"
)

// example is one set of parameters of an action on a host.
type example struct {
	name, params string
	host         []string // what stands there before: see newScene
	want         string   // the summary; "": nothing is to be done
	fails        string   // what the reason says, where the host does not allow it
	reads        bool     // it is to run, and makes no difference
	unseen       bool     // it says that it changed something, and the host does not show it
	root         bool     // it changes owners or users, as only root can
	whole        bool     // it needs a whole host, with / as its root: it runs on the hosts of the lab
	fleet        fleet    // the services that the fleet knows; nil: its record is away
	setup        string   // a shell command that prepares the whole host
	// prepare plants below the root what host has no words for, such as a repository.
	prepare func(*scene)
	files   map[string]string // below files/ of the repository; what begins with / is a file of the whole host
}

// examples are the cases of each action, by its name. Each test file adds its own.
var examples = map[string][]example{}

// TestContract holds every action against what all of them promise.
func TestContract(t *testing.T) {
	for _, spec := range action.All() {
		cases := examples[spec.Name]
		if len(cases) < 2 {
			t.Errorf("%s: %d examples, want at least 2: add them to this test", spec.Name, len(cases))
		}
		for _, c := range cases {
			t.Run(spec.Name+"/"+c.name, func(t *testing.T) {
				s := c.scene(t)
				p := s.mustBind(spec.Name, c.params)
				planned := s.checkPlan(p, c, spec.Passive)
				s.checkRun(p, c, planned)
				if c.fails == "" {
					s.checkStays(p, spec)
				}
			})
		}
	}
}

// checkPlan: comparing writes nothing, neither on the host nor in the state directory.
func (s *scene) checkPlan(p *apply.Program, c example, passive bool) *apply.StepReport {
	s.t.Helper()
	before := s.all()
	r := s.plan(p)
	for _, d := range differences(before, s.all()) {
		s.t.Errorf("the plan wrote: %s", d)
	}
	if r.Summary != c.want {
		s.t.Errorf("plan: %q (%s %s), want %q", r.Summary, r.Outcome, r.Reason, c.want)
	}
	want := apply.Changed
	switch {
	case c.want == "" && c.fails != "":
		want = apply.Failed
	case c.want == "" || passive || c.reads:
		want = apply.OK
	}
	if r.Outcome != want || want == apply.Failed && !strings.Contains(r.Reason, c.fails) {
		s.t.Errorf("plan: %s (%s), want %s %s", r.Outcome, r.Reason, want, c.fails)
	}
	return r
}

// checkRun: a run does what the plan said, or fails and leaves the host as it was.
func (s *scene) checkRun(p *apply.Program, c example, planned *apply.StepReport) {
	s.t.Helper()
	before := s.tree()
	r := s.run(p)
	changed := differences(before, s.tree())
	if c.fails != "" {
		if r.Outcome != apply.Failed || !strings.Contains(r.Reason, c.fails) {
			s.t.Errorf("run: %s %q, want failed with %q", r.Outcome, r.Reason, c.fails)
		}
		for _, d := range withoutTimes(changed) {
			s.t.Errorf("a failed run changed: %s", d)
		}
		if planned.Outcome == apply.Failed && r.Reason != planned.Reason {
			s.t.Errorf("run: %q; the plan said %q", r.Reason, planned.Reason)
		}
		return
	}
	if r.Outcome != planned.Outcome || r.Summary != planned.Summary || r.Diff != planned.Diff {
		s.t.Errorf("run: %s %q %q %s; the plan said %s %q %q", r.Outcome, r.Summary, r.Diff, r.Reason, planned.Outcome, planned.Summary, planned.Diff)
	}
	if !c.unseen && (len(changed) > 0) != (planned.Outcome == apply.Changed) {
		s.t.Errorf("the plan said %s, and the run changed %q", planned.Outcome, changed)
	}
}

// withoutTimes leaves out the directories, whose times a candidate that came and went has moved.
func withoutTimes(changed []string) []string {
	var out []string
	for _, d := range changed {
		if !strings.Contains(d, ": d") {
			out = append(out, d)
		}
	}
	return out
}

// checkStays: after a run nothing is to be done, and a second one does nothing.
func (s *scene) checkStays(p *apply.Program, spec apply.Spec) {
	s.t.Helper()
	before := s.all()
	for range 2 {
		if r := s.plan(p); r.Outcome != apply.OK || r.Diff != "" {
			s.t.Errorf("a plan after the run: %s %q %q %s, want ok", r.Outcome, r.Summary, r.Diff, r.Reason)
		}
		if r := s.run(p); r.Outcome != apply.OK || r.Summary != "" {
			s.t.Errorf("%s: a second run: %s %q %s, want ok", spec.Name, r.Outcome, r.Summary, r.Reason)
		}
	}
	for _, d := range differences(before, s.all()) {
		s.t.Errorf("a second run wrote: %s", d)
	}
}

// TestCheckedActions: after a run, an action that checks finds nothing also where nothing is on record.
func TestCheckedActions(t *testing.T) {
	for _, spec := range action.All() {
		for _, c := range examples[spec.Name] {
			if c.fails != "" || c.unseen || strings.HasPrefix(c.name, "without") || strings.HasPrefix(c.name, "a list") || spec.Passive {
				continue // no guard: the record is its check
			}
			t.Run(spec.Name+"/"+c.name, func(t *testing.T) {
				s := c.scene(t)
				p := s.mustBind(spec.Name, c.params)
				s.run(p)
				s.state = t.TempDir()
				if r := s.plan(p); r.Outcome != apply.OK {
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
			t.Run(spec.Name+"/"+c.name, func(t *testing.T) {
				s := c.scene(t)
				p := s.mustBind(spec.Name, c.params)
				before, began := s.tree(), time.Now()
				r := s.runAll(ctx, p)
				if r.Stopped == "" || time.Since(began) > 2*time.Second {
					t.Errorf("stopped %q after %s", r.Stopped, time.Since(began))
				}
				for _, d := range differences(before, s.tree()) {
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
			s := newScene(t)
			s.files["bad"] = "x\n{{ vars.nope }}\n"
			_, err := s.bind(c.action, c.params)
			var list render.ErrorList
			if !errors.As(err, &list) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
