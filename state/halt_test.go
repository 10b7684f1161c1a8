package state

import (
	"testing"
	"time"
)

// TestHaltGroup: an operator who resumes knows what is on record by then. What comes later halts the group again, also
// where its gate was written since for another reason.
func TestHaltGroup(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	propose(t, s, "v1")
	halts := func(news int64, want string) {
		t.Helper()
		must(t, HaltGroup(ctx, s, "v1", "web", UnknownGate("m1", "db/migrate", "its result is unknown"), news))
		if g, _, err := s.Rollouts.Gate(ctx, "v1", "web"); err != nil || g.State != want {
			t.Errorf("%+v, %v", g, err)
		}
	}
	news := func() int64 {
		put, err := s.Client.Put(ctx, s.key("wake"), "x")
		must(t, err)
		return put.Header.Revision
	}
	first := news()
	halts(first, Halted)
	_, err := s.Rollouts.Resume(ctx, "ada")
	must(t, err)
	halts(first, "open")
	second := news()
	gate, _, err := s.Rollouts.Gate(ctx, "v1", "web")
	must(t, err)
	gate.Failed = []string{"web3"} // of many that may fail
	_, err = s.Client.Txn(ctx).Then(s.Rollouts.GateOp("v1", "web", gate)).Commit()
	must(t, err)
	halts(first, "open")
	halts(second, Halted)
	g, _, err := s.Rollouts.Gate(ctx, "v1", "web")
	if err != nil || len(g.Failed) != 2 || g.Unknown != "db/migrate" || g.Node != "m1" {
		t.Errorf("%+v, %v", g, err)
	}
}

// TestDecommissionHalts: the group of a node that is given up in a targeted step halts, also where an operator resumed
// it after another failure while the step ran; who resumes afterwards knows of the step.
func TestDecommissionHalts(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	propose(t, s, "v1")
	register(t, s, "m1", "web", "a", time.Minute)
	puts := func(key string, value any) int64 {
		done, err := s.Client.Txn(ctx).Then(Put(key, value)).Commit()
		must(t, err)
		return done.Header.Revision
	}
	puts(s.Rollouts.SlotPrefix("web")+"0", Claim{Node: "m1", Version: "v1", Rollout: "v1"})
	began := puts(s.Steps.Key("v1", StepHash("db/migrate"), "started", "m1"), StepStart{Step: "db/migrate", Attempt: "1"})
	must(t, HaltGroup(ctx, s, "v1", "web", Gate{Node: "m2", Reason: "it failed", Failed: []string{"m2"}}, began))
	for _, want := range []string{Halted, "open"} {
		_, err := s.Rollouts.Resume(ctx, "ada")
		must(t, err)
		left, err := s.Nodes.Decommission(ctx, "m1", "ada", true)
		if g, _, _ := s.Rollouts.Gate(ctx, "v1", "web"); err != nil || g.State != want || len(left.Began) != 1 {
			t.Errorf("%+v: %+v, %v", left, g, err)
		}
	}
}
