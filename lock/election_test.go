package lock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/state"
)

// of is an election of so many nodes of role master.
func of(n int) Election {
	masters := func(_ string, m state.Member) bool { return m.Role == "master" }
	return Election{ID: fmt.Sprintf("%d of role=master", n), Limit: n, Has: masters, Candidates: masters}
}

// chosenStep is a step that chosen nodes take.
func chosenStep(id string) Step {
	return Step{ID: id, Members: func(_ string, m state.Member) (bool, string) { return true, "" }}
}

// repeatable is a step that may run again where its end is not on record.
func repeatable(id string) Step {
	step := chosenStep(id)
	step.Repeatable = true
	return step
}

func (f *fleet) elect(q Request, e Election) *Candidate {
	f.t.Helper()
	c, err := NewSteps(f.Store, q).Elect(f.ctx, e)
	f.must(err)
	return c
}

func (f *fleet) publish(c *Candidate, step, value string, maxAge time.Duration) {
	f.t.Helper()
	f.must(f.start(c, step, "first"))
	f.must(c.Publish(f.ctx, chosenStep(step), "first", state.StepResult{Result: "ok"}, []byte(value), maxAge))
}

func (f *fleet) start(c *Candidate, step, attempt string) error {
	f.t.Helper()
	read, err := c.Record(f.ctx, chosenStep(step), 0)
	f.must(err)
	return c.Start(f.ctx, chosenStep(step), attempt, read)
}

// results is what a node reads now: the nodes that have a result, or why it waits.
func (f *fleet) results(q Request, step string, e Election, maxAge time.Duration, repeatable bool) (map[string]state.StepResult, string) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	one := chosenStep(step)
	one.Repeatable = repeatable
	found, err := NewSteps(f.Store, q).Results(ctx, one, e, maxAge, nil, func(*Wait) { cancel() })
	if err != nil && asWait(err) == nil {
		f.t.Fatal(err)
	}
	if err != nil {
		return nil, err.Error()
	}
	return found, ""
}

// TestForgottenElection: in a version that the fleet left, and whose record is gone, nobody is chosen again; who was
// chosen stays so while it is on record.
func TestForgottenElection(t *testing.T) {
	f := newFleet(t)
	all := f.requests(2, "master")
	for i := range all {
		all[i].Stale = true
	}
	c := f.elect(all[0], of(1))
	if c.Chosen() || c.Others() != "a node that is not on record any more" {
		t.Errorf("%v, %q", c.Chosen(), c.Others())
	}
	if _, why := f.results(all[0], "token", of(1), 0, false); !strings.Contains(why, ", and who was chosen for 1 of role=master is not on record any more; no action needed") {
		t.Error(why)
	}
	all[0].Stale = false
	f.publish(f.elect(all[0], of(1)), "token", `"a"`, 0)
	all[0].Stale = true
	if a, b := f.elect(all[0], of(1)), f.elect(all[1], of(1)); !a.Chosen() || b.Chosen() || b.Others() != all[0].node() {
		t.Errorf("%v; %v, %q", a.Chosen(), b.Chosen(), b.Others())
	}
	if found, why := f.results(all[1], "token", of(1), 0, false); len(found) != 1 {
		t.Error(found, why)
	}
}

// TestElection: of many at once as many are chosen as there are places, and everybody knows who.
func TestElection(t *testing.T) {
	for _, places := range []int{1, 3} {
		f := newFleet(t)
		all := f.requests(30, "master")
		candidates := make([]*Candidate, len(all))
		f.atOnce(len(all), func(i int) (err error) {
			candidates[i], err = NewSteps(f.Store, all[i]).Elect(f.ctx, of(places))
			return err
		})
		var chosen []string
		for i, c := range candidates {
			if c.Chosen() {
				chosen = append(chosen, all[i].node())
			}
		}
		if len(chosen) != places {
			t.Errorf("%d places: %q", places, chosen)
		}
		for i, c := range candidates {
			if others := strings.Split(c.Others(), ", "); !c.Chosen() && !slices.Equal(slices.Sorted(slices.Values(others)), chosen) {
				t.Errorf("%s says %q, chosen are %q", all[i].node(), others, chosen)
			}
		}
		for _, e := range f.events(NewSteps(f.Store, all[0]).electionKey(of(places), "place")) {
			if !e.IsCreate() {
				t.Errorf("%s was taken twice", e.Kv.Key)
			}
		}
	}
}

// TestElectionIsShared: steps with the same election are one node's, in all its pulls; another election is another
// choice.
func TestElectionIsShared(t *testing.T) {
	f := newFleet(t)
	all := f.requests(3, "master")
	first := f.elect(all[0], of(1))
	if !first.Chosen() || f.elect(all[1], of(1)).Chosen() || !f.elect(all[0], of(1)).Chosen() {
		t.Error("not one node")
	}
	f.publish(first, "init", `"a"`, 0)
	f.publish(first, "token", `"b"`, 0)
	for step, want := range map[string]string{"init": `"a"`, "token": `"b"`} {
		found, wait := f.results(all[2], step, of(1), 0, true)
		if wait != "" || len(found) != 1 || string(found["master000"].Value) != want || found["master000"].Step != step {
			t.Errorf("%s: %v %s", step, found, wait)
		}
	}
	if !f.elect(all[1], of(2)).Chosen() {
		t.Error("one election stands for another")
	}
	f.propose("v2")
	q := f.request("master001", "master")
	if _, wait := f.results(q, "init", of(1), 0, true); !strings.Contains(wait, "no node was chosen yet for 1 of role=master") {
		t.Errorf("the result of another version is read: %q", wait)
	}
}

// TestNobodyWasChosen: who waits for a choice learns who ends the wait: no action is needed only where one of those who
// may be chosen gets there by itself.
func TestNobodyWasChosen(t *testing.T) {
	listed := func(names ...string) map[string]state.Member {
		out := map[string]state.Member{"web1": {Role: "web"}}
		for _, name := range names {
			out[name] = state.Member{Role: "master"}
		}
		return out
	}
	waits := func(f *fleet, version string) {
		f.request("m1", "master")
		f.must(f.Statuses.Set(f.ctx, "m1", state.Rollout, state.Pending, state.Status{Version: version, Remedy: state.Act("raise the limit")}))
	}
	behind := of(1)
	behind.Candidates = func(string, state.Member) bool { return false }
	for name, c := range map[string]struct {
		do        func(f *fleet)
		inventory map[string]state.Member
		election  Election
		want      string // divided by |
	}{
		"it is at work":           {func(f *fleet) { f.request("m1", "master") }, listed("m1"), of(1), "no node was chosen yet for 1 of role=master; no action needed"},
		"it never came":           {func(*fleet) {}, listed("m1"), of(1), ": m1 (never seen); start m1, remove it from nodes/"},
		"it is lost":              {func(f *fleet) { f.die(f.request("m1", "master")) }, listed("m1"), of(1), ": m1 (not answering); start m1 again"},
		"it is disabled":          {func(f *fleet) { f.request("m1", "master"); f.switchOff(state.HostScope("m1")) }, listed("m1"), of(1), ": m1 (disabled); pullet enable --host m1"},
		"its role is disabled":    {func(f *fleet) { f.request("m1", "master"); f.switchOff(state.RoleScope("master")) }, listed("m1"), of(1), ": m1 (disabled); pullet enable --role master"},
		"the rollout is paused":   {func(f *fleet) { f.request("m1", "master"); f.pause() }, listed("m1"), of(1), "pullet rollout resume"},
		"it failed":               {func(f *fleet) { f.broken("m1", "master") }, listed("m1"), of(1), ": m1 (failed); fix m1, or push a commit"},
		"it waits for somebody":   {func(f *fleet) { waits(f, f.version.ID) }, listed("m1"), of(1), ": m1 (alive); no action needed"},
		"it waited, at another":   {func(f *fleet) { waits(f, "v0") }, listed("m1"), of(1), "role=master; no action needed"},
		"another one is at work":  {func(f *fleet) { f.request("m2", "master") }, listed("m1", "m2"), of(1), "role=master; no action needed"},
		"none of two":             {func(f *fleet) { f.switchOff(state.HostScope("m2")) }, listed("m1", "m2"), of(1), ": m1 (never seen), m2 (disabled); start m1"},
		"they come later":         {func(f *fleet) { f.request("m1", "master") }, listed("m1"), behind, ": m1 (alive), which this host comes before in the rollout|push a commit with another order"},
		"no host has it":          {func(*fleet) {}, listed(), of(1), ", and no host has the step; start a host that has it, or push a commit"},
		"so many cannot be stuck": {func(*fleet) {}, listed(manyNames(askedAtOnce + 1)...), of(1), "role=master; no action needed"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			q := f.request("web1", "web")
			q.Inventory = c.inventory
			c.do(f)
			_, wait := f.results(q, "init", c.election, 0, true)
			f.contains(wait, c.want)
		})
	}
}

func manyNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("m%d", i))
	}
	return names
}

// TestElectionTakeOver: whose place is given to another, and when.
func TestElectionTakeOver(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(f *fleet, first *Candidate, q Request)
		onLost string
		taken  bool
	}{
		"it lives":                 {func(*fleet, *Candidate, Request) {}, Release, false},
		"it is lost, hold":         {func(f *fleet, _ *Candidate, q Request) { f.die(q) }, "", false},
		"it is lost, release":      {func(f *fleet, _ *Candidate, q Request) { f.die(q) }, Release, true},
		"it is lost, fail":         {func(f *fleet, _ *Candidate, q Request) { f.die(q) }, Fail, true},
		"it started and is lost":   {func(f *fleet, c *Candidate, q Request) { f.must(f.start(c, "init", "1")); f.die(q) }, Release, false},
		"it lost, and came back":   {func(f *fleet, c *Candidate, q Request) { f.die(q); f.request("master000", "master") }, Release, false},
		"it was decommissioned":    {func(f *fleet, _ *Candidate, q Request) { f.decommission("master000") }, Hold, true},
		"decommissioned, and back": {func(f *fleet, _ *Candidate, q Request) { f.decommission("master000"); f.request("master000", "master") }, Hold, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			all := f.requests(3, "master")
			first := f.elect(all[0], of(1))
			c.do(f, first, all[0])
			all[1].Rules.OnLost, all[2].Rules.OnLost = c.onLost, c.onLost
			if second := f.elect(all[1], of(1)); second.Chosen() != c.taken {
				t.Fatalf("taken over %v", second.Chosen())
			}
			if !c.taken {
				return
			}
			if err := f.start(first, "init", "1"); !errors.Is(err, ErrFenced) {
				t.Errorf("the first one starts all the same: %v", err)
			}
			if err := first.Publish(f.ctx, chosenStep("init"), "", state.StepResult{Result: "ok"}, []byte("1"), 0); !errors.Is(err, ErrFenced) {
				t.Errorf("the first one's result counts: %v", err)
			}
			if third := f.elect(all[2], of(1)); third.Chosen() || !strings.Contains(third.Others(), "master001") {
				t.Errorf("%v %s", third.Chosen(), third.Others())
			}
		})
	}
}

func (f *fleet) decommission(node string) {
	f.t.Helper()
	_, err := f.Nodes.Decommission(f.ctx, node, "op", true)
	f.must(err)
}

// TestElectionLeaseGone: a node that counts as dead is not chosen, and learns it at once.
func TestElectionLeaseGone(t *testing.T) {
	f := newFleet(t)
	q := f.request("m1", "master")
	f.die(q)
	began := time.Now()
	if _, err := NewSteps(f.Store, q).Elect(f.ctx, of(1)); !errors.Is(err, state.ErrLeaseLost) || time.Since(began) > patience.Stretch(5*time.Second) {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

// TestResults: who reads waits for all that were chosen, is told for whom, and is woken.
func TestResults(t *testing.T) {
	f := newFleet(t)
	all := f.requests(3, "master")
	reader := f.request("worker1", "worker")
	first, second := f.elect(all[0], of(2)), f.elect(all[1], of(2))
	_, wait := f.results(reader, "init", of(2), 0, true)
	f.contains(wait, "result of init|no result yet of master000 (alive), master001 (alive), chosen for it (2 of role=master)|no action needed")
	f.publish(first, "init", `{"StdOut": "a"}`, 0)
	_, wait = f.results(reader, "init", of(2), 0, true)
	f.contains(wait, "no result yet of master001 (alive)")
	told, woken := make(chan struct{}, 10), make(chan map[string]state.StepResult, 1)
	go func() {
		found, err := NewSteps(f.Store, reader).Results(f.ctx, repeatable("init"), of(2), 0, nil, func(*Wait) { told <- struct{}{} })
		if err != nil {
			t.Error(err)
		}
		woken <- found
	}()
	<-told
	f.publish(second, "init", `{"StdOut": "b"}`, 0)
	found := <-woken
	var value struct{ StdOut string }
	f.must(NewSteps(f.Store, reader).Value(f.ctx, found["master001"], &value))
	if len(found) != 2 || value.StdOut != "b" {
		t.Errorf("%v %v", found, value)
	}
}

// TestResultsOfFewer: where fewer nodes match than there are places, all of them are all.
func TestResultsOfFewer(t *testing.T) {
	f := newFleet(t)
	q := f.request("m1", "master")
	f.publish(f.elect(q, of(3)), "init", `1`, 0)
	if found, wait := f.results(q, "init", of(3), 0, true); len(found) != 1 {
		t.Errorf("%v %s", found, wait)
	}
}

// TestResultsFailed: a failed result is read like another, also where it is old.
func TestResultsFailed(t *testing.T) {
	f := newFleet(t)
	q := f.request("m1", "master")
	c := f.elect(q, of(1))
	f.must(c.Publish(f.ctx, chosenStep("init"), "", state.StepResult{Result: "failed", Reason: "exit status 1"}, nil, 0))
	found, wait := f.results(q, "init", of(1), time.Hour, true)
	if r := found["m1"]; r.Result != "failed" || r.Reason != "exit status 1" || wait != "" {
		t.Errorf("%v %s", found, wait)
	}
	if r, err := c.Record(f.ctx, chosenStep("init"), 0); r.Final() || err != nil {
		t.Errorf("it is not tried again: %+v %v", r, err)
	}
}

// TestStartWithoutLease: a chosen node whose lease ended keeps its place, and does not start.
func TestStartWithoutLease(t *testing.T) {
	f := newFleet(t)
	q := f.request("m1", "master")
	c := f.elect(q, of(1))
	f.die(q)
	if err := f.start(c, "init", "1"); !errors.Is(err, state.ErrLeaseLost) {
		t.Errorf("%v", err)
	}
}

// TestResultsUnknown: a chosen node that died in a step: one that may run twice is waited for, of another nobody knows
// what came of it.
func TestResultsUnknown(t *testing.T) {
	for _, repeatable := range []bool{true, false} {
		f := newFleet(t)
		q, reader := f.request("m1", "master"), f.request("web1", "web")
		f.must(f.start(f.elect(q, of(1)), "init", "1"))
		_, wait := f.results(reader, "init", of(1), 0, repeatable)
		f.contains(wait, "no result yet of m1 (alive)")
		f.die(q)
		found, wait := f.results(reader, "init", of(1), 0, repeatable)
		gate := f.gate("web")
		if repeatable {
			f.contains(wait, "(not answering)|start m1 again")
			if gate.State == state.Halted {
				t.Errorf("%v %+v", found, gate)
			}
			continue
		}
		f.contains(found["m1"].Reason, "its result is unknown: it was started on m1, which does not answer, and it must not run twice")
		f.contains(gate.Reason, "step init: its result is unknown")
		if found["m1"].Result != "unknown" || gate.State != state.Halted || gate.Node != "m1" {
			t.Errorf("%v %+v", found, gate)
		}
	}
}

// TestResultsNotStarted: a step that was never started may be begun by its node when it comes back, whatever it is.
func TestResultsNotStarted(t *testing.T) {
	f := newFleet(t)
	q, reader := f.request("m1", "master"), f.request("web1", "web")
	f.elect(q, of(1))
	f.die(q)
	for range 2 {
		_, wait := f.results(reader, "init", of(1), 0, false)
		f.contains(wait, "(not answering)|start m1 again")
	}
	if g := f.gate("web"); g.State == state.Halted {
		t.Errorf("%+v", g)
	}
}

// TestMaxAge: a result that is too old is not read, and made anew.
func TestMaxAge(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	q := f.request("m1", "master")
	c := f.elect(q, of(1))
	f.publish(c, "token", `"old"`, time.Second)
	want := func(fresh bool) {
		t.Helper()
		if r, err := c.Record(f.ctx, chosenStep("token"), time.Second); r.Fresh != fresh || r.Final() != fresh || r.Result.Result != "ok" || err != nil {
			t.Errorf("%+v, %v", r, err)
		}
	}
	want(true)
	if found, wait := f.results(q, "token", of(1), time.Second, true); len(found) != 1 {
		t.Errorf("%v %s", found, wait)
	}
	f.gone(c.steps.resultKey(chosenStep("token"), "fresh", "m1"))
	want(false)
	reader := f.request("web1", "web")
	if found, wait := f.results(reader, "token", of(1), time.Second, true); len(found) != 0 || !strings.Contains(wait, "no result yet of m1") {
		t.Errorf("too old, and read: %v, %s", found, wait)
	}
	if found, wait := f.results(q, "token", of(1), time.Second, true); len(found) != 0 || !strings.Contains(wait, "its own result became older than 1s; its next pull makes it anew") {
		t.Errorf("who made it does not wait for itself: %v, %s", found, wait)
	}
	if found, _ := f.results(q, "token", of(1), 0, true); len(found) != 1 {
		t.Error("without an age it is read")
	}
	f.publish(c, "token", `"new"`, time.Minute)
	want(true)
	if found, _ := f.results(q, "token", of(1), time.Second, true); string(found["m1"].Value) != `"new"` {
		t.Errorf("%v", found)
	}
}

// TestResultsSuperseded: who waits for a result leaves when the fleet moves on.
func TestResultsSuperseded(t *testing.T) {
	f := newFleet(t)
	q := f.request("m1", "master")
	f.propose("v2")
	if _, err := NewSteps(f.Store, q).Results(f.ctx, repeatable("init"), of(1), 0, nil, func(*Wait) {}); !errors.Is(err, ErrSuperseded) {
		t.Errorf("%v", err)
	}
}

// TestPublishLarge: what is large is shared whole; what is too large is refused at once.
func TestPublishLarge(t *testing.T) {
	f := newFleet(t)
	q := f.request("m1", "master")
	c := f.elect(q, of(1))
	large, err := json.Marshal(strings.Repeat("pullet ", 100_000))
	f.must(err)
	f.publish(c, "file", string(large), 0)
	found, _ := f.results(q, "file", of(1), 0, true)
	var got string
	f.must(NewSteps(f.Store, q).Value(f.ctx, found["m1"], &got))
	if len(got) != 700_000 || found["m1"].Value != nil {
		t.Errorf("%d bytes, %d in its key", len(got), len(found["m1"].Value))
	}
	kv, err := f.Client.Get(f.ctx, c.steps.resultKey(chosenStep("file"), "result", "m1"))
	f.must(err)
	if n := len(kv.Kvs[0].Value); n > 1000 {
		t.Errorf("%d bytes in a watched key", n)
	}
	began := time.Now()
	err = c.Publish(f.ctx, chosenStep("huge"), "", state.StepResult{Result: "ok"}, make([]byte, 2<<20+1), 0)
	if !errors.Is(err, state.ErrTooLarge) || time.Since(began) > patience.Stretch(5*time.Second) {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	if got, err := f.Client.Get(f.ctx, c.steps.resultKey(chosenStep("huge"), ""), clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil || got.Count != 0 {
		t.Errorf("%v %v", got, err)
	}
}
