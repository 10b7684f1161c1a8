package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/gitremote"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// TestPullThatCannotBegin: a pull beside another, and one that cannot read what the node knows of itself, is an error
// and changes nothing.
func TestPullThatCannotBegin(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	fails := func(want string) error {
		t.Helper()
		out, err := h.tryPull(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || out.Report != nil {
			t.Errorf("%v %+v, want %s", err, out.Report, want)
		}
		return err
	}
	h.write("state/keep", "")
	held, err := state.LockRun(h.Paths.State, "another")
	if err != nil {
		t.Fatal(err)
	}
	var locked *state.LockedError
	if !errors.As(fails("another"), &locked) {
		t.Error("it does not say that it is locked")
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	h.write("state/node.json", "{")
	fails("node.json")
	if _, err := os.Stat(filepath.Join(h.Root, "etc/motd")); err == nil {
		t.Error("it changed the host")
	}
}

// plan is a plan of the host, by an agent of its own.
func (h *host) plan(dir string) (*Outcome, error) {
	h.t.Helper()
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := a.Plan(h.t.Context(), dir, Options{})
	return out, errors.Join(err, a.Close())
}

// TestPlan: a plan is of what a pull would bring, or of a directory. Where that cannot be read, it is an error.
func TestPlan(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.pull()
	h.commit(job("two", "true"))
	planned := func(dir, want string) {
		t.Helper()
		out, err := h.plan(dir)
		if err != nil || out.Report.Steps[0].Summary != "content" || !strings.Contains(out.Report.Steps[0].Diff, "+"+want) {
			t.Errorf("%q: %v %+v", dir, err, out.Report)
		}
	}
	planned("", "two")
	h.write("repo/jobs/site.yaml", job("three", "true"))
	planned("", "two")
	planned(filepath.Join(h.home, "repo"), "three")
	if out, err := h.plan(h.Root); err == nil || out.Report != nil {
		t.Errorf("a directory without a repository: %+v", out.Report)
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(h.home, "repo")), os.RemoveAll(filepath.Join(h.Paths.State, "repositories"))); err != nil {
		t.Fatal(err)
	}
	if out, err := h.plan(""); err == nil || !strings.Contains(err.Error(), "repo") || out.Report != nil {
		t.Errorf("without a repository: %v %+v", err, out.Report)
	}
}

// registered is a proposer that is registered in the fleet.
func registered(t *testing.T, v *state.Version, job string) *pull {
	t.Helper()
	store := openStore(t)
	p := proposer(t, store, v, fstest.MapFS{"base/jobs.yaml": {Data: []byte("jobs: {'*': [{name: j}]}")}, "jobs/j.yaml": {Data: []byte(job)}})
	presence, err := store.Presences.Register(t.Context(), state.Node{Name: "db1", Role: "db", LastSeen: time.Now()}, state.Alive{Owner: "x"}, p.compiler.facts(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	p.presence = presence
	if p.outside.Repositories, err = puller.Open(t.TempDir(), []puller.Source{{Name: "main", URL: t.TempDir()}}, gitremote.Limits{}, p.log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.outside.Repositories.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestMistakeIsTold: the fleet is told of a first commit that does not compile. Where that cannot be done, the pull
// says so.
func TestMistakeIsTold(t *testing.T) {
	t.Parallel()
	v := &state.Version{ID: strings.Repeat("a", 40)}
	p := registered(t, v, "steps: [{name: s, action: no.such}]")
	own := []puller.Head{{Repo: "main", Commit: v.ID}}
	agree := func() error {
		t.Helper()
		p.out.Failures = nil
		is, err := p.agreement.agree(t.Context(), own)
		if is != nil || len(p.out.Failures) != 1 || !strings.Contains(p.out.Failures[0].Error(), "no.such") {
			t.Errorf("%v %q", is, p.out.Failures)
		}
		return err
	}
	if err := agree(); err != nil {
		t.Fatal(err)
	}
	o, err := p.store.Views.Fleet(t.Context(), false)
	if err != nil || o.Statuses["db1"][state.Configured].State != state.Failed {
		t.Errorf("%v %+v", err, o.Statuses)
	}
	if _, err := p.store.Client.Revoke(t.Context(), p.presence.Lease); err != nil {
		t.Fatal(err)
	}
	if err := agree(); !errors.Is(err, state.ErrLeaseLost) {
		t.Errorf("the fleet cannot be told: %v", err)
	}
}

// TestChosenWithoutAnswer: a chosen node that cannot ask the fleet what is on record of its step waits: it does not
// take that for nothing.
func TestChosenWithoutAnswer(t *testing.T) {
	t.Parallel()
	v := &state.Version{ID: strings.Repeat("a", 40)}
	p := registered(t, v, "steps: [{name: s, action: cmd.run, parameters: {cmd: 'true'}, runOptions: {target: {limit: 1}}}]")
	program, err := p.compiler.compile(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	p.current = v
	g, err := p.gatesFor(t.Context(), v, program, nil, p.reporter.steps(t.Context(), v))
	if err != nil {
		t.Fatal(err)
	}
	j := program.catalog.Jobs[slices.IndexFunc(program.catalog.Jobs, func(j *render.Job) bool { return j.Name == "j" })]
	step := apply.GatedStep{Step: j.Steps[0], Job: j}
	if chosen, _, err := g.Chosen(t.Context(), step); !chosen || err != nil {
		t.Fatal(chosen, err)
	}
	if r, err := g.Record(t.Context(), step); err != nil || r.Attempt != "" {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := p.store.Client.Revoke(t.Context(), p.presence.Lease); err != nil {
		t.Fatal(err)
	}
	var pending *apply.PendingError
	if err := g.Begin(t.Context(), step, "1"); !errors.As(err, &pending) {
		t.Errorf("begin without a lease: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := g.Record(over, step); !errors.As(err, &pending) || r.Attempt != "" {
		t.Errorf("no time is left: %+v %v", r, err)
	}
}
