package main

import (
	"context"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// TestSinceByRevision: whether an operator acted before or after a node failed is the order on the fleet's record,
// whatever the clocks of the two say, and whatever is added to the records afterwards.
func TestSinceByRevision(t *testing.T) {
	ctx := context.Background()
	s, err := state.Open(ctx, state.Config{Fleet: "f", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.Versions.Propose(ctx, state.Version{ID: "v1"}, nil, 0))
	gate := s.Rollouts.GateKey("v1", state.AllGroups)
	settle := func(how state.Settling) func() {
		return func() {
			result := s.Steps.Key("v1", state.StepHash("init"), "result", "n1")
			must(s.Client.Do(ctx, state.Put(result, state.StepResult{Node: "n1", Step: "init", Result: "unknown"})))
			must(s.Steps.Settle(ctx, "init", "ada", how))
		}
	}
	resume := func() {
		must(s.Client.Do(ctx, state.Put(gate, state.Gate{State: state.Halted, Reason: "x"})))
		must(s.Rollouts.Resume(ctx, "ada"))
	}
	for name, c := range map[string]struct {
		acts    func()
		unknown string
		want    string
	}{
		"done":   {settle(state.Settling{Done: true}), "init", "settled since by ada: it goes on at the next pull"},
		"again":  {settle(state.Settling{}), "init", "settled since by ada: the step runs again at the next pull"},
		"resume": {resume, "", "resumed since by ada: it tries again at its next pull"},
	} {
		for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
			fails := func() {
				st := state.Status{Version: "v1", Run: "r1", Unknown: c.unknown, Remedy: state.Act("look at it"), Time: time.Now().Add(ahead)}
				must(nil, s.Statuses.Set(ctx, "n1", state.Rollout, state.Failed, st))
			}
			shows := func(when, want string) {
				t.Helper()
				o, err := s.Views.Fleet(ctx, false)
				must(o, err)
				if got := failuresOf(o, state.Rollout)[state.Rollout]; len(got) != 1 || got[0].Clear != want {
					t.Errorf("%s, the node's clock %s ahead, %s: %+v, want %q", name, ahead, when, got, want)
				}
			}
			c.acts()
			fails()
			shows("the operator first", "look at it")
			must(s.Client.Do(ctx, clientv3.OpPut(gate, strings.Replace(gateNow(t, s, gate), "{", `{"failed":["n2"],`, 1))))
			shows("another node failed since", "look at it")
			c.acts()
			must(nil, s.Statuses.LinkLog(ctx, "n1", "r1", "http://logs/r1"))
			shows("the node first", c.want)
			must(s.Client.Delete(ctx, gate))
		}
	}
}

// gateNow is the record of an open gate.
func gateNow(t *testing.T, s *state.Store, key string) string {
	t.Helper()
	got, err := s.Client.Get(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range got.Kvs {
		return string(kv.Value)
	}
	return `{"state":"open"}`
}

// TestChosenSinceByRevision: a node that waits for the result of one that was given up goes on when what that one
// started is to run again, asked for after the node looked, whatever the clocks say.
func TestChosenSinceByRevision(t *testing.T) {
	const another, settle = "another host takes its place at its next pull", "pullet rollout settle init --again"
	at := time.Now()
	for _, c := range []struct {
		name string
		said state.Settlement
		want string
	}{
		{"before", state.Settlement{Revision: 4, At: at.Add(time.Hour)}, settle},
		{"after", state.Settlement{Revision: 6, At: at.Add(-time.Hour)}, another},
		{"done on others after", state.Settlement{Revision: 6, Done: true, Waiting: []string{"m1"}}, another},
		{"done after", state.Settlement{Revision: 6, Done: true}, settle},
	} {
		st := state.Status{Version: "v1", Kind: state.WaitResult, Time: at, Holders: []state.Holder{{Node: "m1", Gone: true, Took: []string{"init"}}}}
		o := &state.Overview{
			Current: &state.Version{ID: "v1"}, Nodes: map[string]state.Node{"m2": {Name: "m2"}}, Alive: map[string]bool{"m2": true}, Gone: map[string]bool{"m1": true},
			Settled:  map[string]state.Settlement{"init": c.said},
			Statuses: map[string]map[string]state.StatusLine{"m2": {state.Rollout: {State: state.Pending, Status: st, Revision: 5}}},
		}
		if got := viewOf(o).Nodes[0]; !strings.Contains(got.Clear, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got.Clear, c.want)
		}
	}
}

// TestSettledOnOthersSince: beside a step that is done on other nodes, a node that is still to run it again says so,
// and who asked for it.
func TestSettledOnOthersSince(t *testing.T) {
	said := state.Settlement{Revision: 6, By: "bob", Done: true, Nodes: []string{"n2"}, Waiting: []string{"n1"}, Asked: &state.Asked{By: "ada"}}
	for node, want := range map[string]string{
		"n1": "settled since by ada: the step runs again at the next pull", "n2": "settled since by bob: it goes on at the next pull",
	} {
		n := nodeStatus{Node: node, State: failed, unknown: "init", said: 5}
		if n.refresh(&state.Overview{Settled: map[string]state.Settlement{"init": said}}); n.Clear != want {
			t.Errorf("%s: %q, want %q", node, n.Clear, want)
		}
	}
}
