package actiontest

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
)

// Example is one set of parameters of an action on a host, and what comes of it.
type Example struct {
	Name, Params string
	Host         []string // what stands there before: see New
	Want         string   // the summary; "": nothing is to be done
	Learns       string   // what the run adds to the summary, because no plan can know it
	Fails        string   // what the reason says, where the host does not allow it
	Reads        bool     // it is to run, and makes no difference
	Unseen       bool     // it says that it changed something, and the host does not show it
	Root         bool     // it changes owners or users, as only root can
	Whole        bool     // it needs a whole host, with / as its root: it runs on the hosts of the lab
	Fleet        Fleet    // the services that the fleet knows; nil: its record is away
	Setup        string   // a shell command that prepares the whole host
	// Prepare plants below the root what host has no words for, such as a repository.
	Prepare func(*Scene)
	Files   map[string]string // below files/ of the repository; what begins with / is a file of the whole host
}

// WholeHost is the environment variable that is set on a host of the lab, where tests may change anything.
const WholeHost = "PULLET_WHOLE_HOST"

// Scene is where the example runs. It skips a test that needs root, or a whole host, and has none.
func (c Example) Scene(t *testing.T) *Scene {
	t.Helper()
	if c.Root {
		NeedRoot(t)
	}
	if !c.Whole {
		s := New(t, c.Host...)
		maps.Copy(s.Files, c.Files)
		if c.Fleet != nil {
			known := slices.Clone(c.Fleet)
			s.Fleet = &known
		}
		if c.Prepare != nil {
			c.Prepare(s)
		}
		return s
	}
	if os.Getenv(WholeHost) == "" {
		t.Skipf("needs a whole host: the lab's tests run it with %s=1, where it may change anything", WholeHost)
	}
	t.Attr("host", "whole") // by which the lab's test counts these
	s := New(t)
	s.Root, s.Whole = "/", true
	if out, err := exec.Command("/bin/sh", "-ec", c.Setup).CombinedOutput(); err != nil {
		t.Fatalf("setup: %v\n%s", err, out)
	}
	for name, from := range c.Files {
		s.Files[name] = s.Read(from)
	}
	return s
}

// OnHost is a scene on a whole host of the lab, prepared by a shell command. It skips the test elsewhere.
func OnHost(t *testing.T, setup string) *Scene {
	t.Helper()
	return Example{Whole: true, Setup: setup}.Scene(t)
}

// Check holds a program, whose one step has the example's parameters, against what all actions promise: a plan writes
// nothing, a run does what the plan says or leaves the host as it was, and a second run has nothing to do.
func (c Example) Check(s *Scene, p *apply.Program, passive bool) {
	s.T.Helper()
	planned := s.checkPlan(p, c, passive)
	s.checkRun(p, c, planned)
	if c.Fails == "" {
		s.Stays(p)
	}
}

// checkPlan: a plan writes nothing, neither on the host nor in the state directory.
func (s *Scene) checkPlan(p *apply.Program, c Example, passive bool) *apply.StepReport {
	s.T.Helper()
	before := s.All()
	r := s.Plan(p)
	for _, d := range Differences(before, s.All()) {
		s.T.Errorf("the plan wrote: %s", d)
	}
	if r.Summary != c.Want {
		s.T.Errorf("plan: %q (%s %s), want %q", r.Summary, r.Outcome, r.Reason, c.Want)
	}
	want := apply.Changed
	switch {
	case c.Want == "" && c.Fails != "":
		want = apply.Failed
	case c.Want == "" || passive || c.Reads:
		want = apply.OK
	}
	if r.Outcome != want || want == apply.Failed && !strings.Contains(r.Reason, c.Fails) {
		s.T.Errorf("plan: %s (%s), want %s %s", r.Outcome, r.Reason, want, c.Fails)
	}
	return r
}

// checkRun: a run does what the plan said, or fails and leaves the host as it was.
func (s *Scene) checkRun(p *apply.Program, c Example, planned *apply.StepReport) {
	s.T.Helper()
	before := s.Tree()
	r := s.Run(p)
	changed := Differences(before, s.Tree())
	if c.Fails != "" {
		if r.Outcome != apply.Failed || !strings.Contains(r.Reason, c.Fails) {
			s.T.Errorf("run: %s %q, want failed with %q", r.Outcome, r.Reason, c.Fails)
		}
		for _, d := range OfFiles(changed) {
			s.T.Errorf("a failed run changed: %s", d)
		}
		if planned.Outcome == apply.Failed && r.Reason != planned.Reason {
			s.T.Errorf("run: %q; the plan said %q", r.Reason, planned.Reason)
		}
		return
	}
	says := planned.Summary
	if c.Learns != "" {
		says += ": " + c.Learns
	}
	if r.Outcome != planned.Outcome || r.Summary != says || r.Diff != planned.Diff {
		s.T.Errorf("run: %s %q %q %s; the plan said %s %q %q", r.Outcome, r.Summary, r.Diff, r.Reason,
			planned.Outcome, planned.Summary, planned.Diff)
	}
	if !c.Unseen && (len(changed) > 0) != (planned.Outcome == apply.Changed) {
		s.T.Errorf("the plan said %s, and the run changed %q", planned.Outcome, changed)
	}
}

// Stays checks that nothing is to be done after a run, and that a second one does nothing.
func (s *Scene) Stays(p *apply.Program) {
	s.T.Helper()
	before := s.All()
	for range 2 {
		if r := s.Plan(p); r.Outcome != apply.OK || r.Diff != "" {
			s.T.Errorf("a plan after the run: %s %q %q %s, want ok", r.Outcome, r.Summary, r.Diff, r.Reason)
		}
		if r := s.Run(p); r.Outcome != apply.OK || r.Summary != "" {
			s.T.Errorf("a second run: %s %q %s, want ok", r.Outcome, r.Summary, r.Reason)
		}
	}
	for _, d := range Differences(before, s.All()) {
		s.T.Errorf("a second run wrote: %s", d)
	}
}
