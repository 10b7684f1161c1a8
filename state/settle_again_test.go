package state

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// ran puts on record that a node started step init, and how an attempt of it ended.
func ran(t *testing.T, s *Store, scope, node, started, result, of string) {
	t.Helper()
	hash := StepHash("init")
	_, err := s.Client.Txn(ctx).Then(Put(s.Steps.Key(scope, hash, "started", node), StepStart{Step: "init", Attempt: started}),
		Put(s.Steps.Key(scope, hash, "result", node), StepResult{Node: node, Step: "init", Result: result, Attempt: of})).Commit()
	must(t, err)
}

// waits checks where step init is to run again, and who asked for it.
func waits(t *testing.T, s *Store, nodes, asker string) {
	t.Helper()
	o, err := s.Views.Fleet(ctx, false)
	must(t, err)
	got := o.Settled["init"]
	if strings.Join(got.Waiting, " ") != nodes || got.Asker().By != asker {
		t.Errorf("%+v, want it to wait on %q for %s", got, nodes, asker)
	}
}

// TestSettleLastAttempt: the success of an earlier attempt says nothing of the last one.
func TestSettleLastAttempt(t *testing.T) {
	t.Parallel()
	for _, how := range []Settling{{Done: true}, {}} {
		s := open(t, t.TempDir())
		_, err := s.Versions.Propose(ctx, Version{ID: "v1"}, nil, 0)
		must(t, err)
		ran(t, s, "v1", "n1", "2", "ok", "1")
		ran(t, s, "v1", "n2", "1", "unknown", "1")
		ran(t, s, "v1", "n3", "1", "ok", "1")
		settled, err := s.Steps.Settle(ctx, "init", "ada", how)
		must(t, err)
		if !slices.Equal(settled.Nodes, []string{"n1", "n2"}) || !slices.Equal(settled.Kept, []string{"n3"}) {
			t.Errorf("%+v: %+v", how, settled)
		}
	}
}

// TestSettleMoved: who settles a step by a record that is not the last one fails, whether it was settled since or began
// somewhere.
func TestSettleMoved(t *testing.T) {
	t.Parallel()
	settles := func(done bool) func(*Store, *stepRecord) error {
		return func(s *Store, r *stepRecord) error {
			return s.Steps.write(ctx, r, always(s), Settlement{Step: "init", By: "ada", At: time.Now(), Done: done, Nodes: []string{"n1"}, Version: "v1"})
		}
	}
	begins := func(s *Store, _ *stepRecord) error {
		_, err := s.Client.Do(ctx, Put(s.Steps.Key("v1", StepHash("init"), "started", "n2"), StepStart{Step: "init", Attempt: "1"}))
		return err
	}
	for name, first := range map[string]func(*Store, *stepRecord) error{"again": settles(false), "done": settles(true), "begun elsewhere": begins} {
		for _, done := range []bool{false, true} {
			s := open(t, t.TempDir())
			ran(t, s, "v1", "n1", "1", "unknown", "1")
			read, err := s.Steps.record(ctx, "v1", "init")
			must(t, err)
			must(t, first(s, read))
			var moved *MovedError
			if err := settles(done)(s, read); !errors.As(err, &moved) {
				t.Errorf("%s, then done %v: %v", name, done, err)
			}
		}
	}
}

// always is a comparison that holds.
func always(s *Store) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(s.Versions.CurrentKey()), "=", 0)
}

// TestSettleDoneAfterAgain: where a step is still to run again stays on record when it is settled as done on another
// node.
func TestSettleDoneAfterAgain(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	_, err := s.Versions.Propose(ctx, Version{ID: "v1"}, nil, 0)
	must(t, err)
	settle := func(by string, how Settling) {
		t.Helper()
		_, err := s.Steps.Settle(ctx, "init", by, how)
		must(t, err)
	}
	ran(t, s, "v1", "n1", "1", "unknown", "1")
	ran(t, s, "v1", "n2", "1", "unknown", "1")
	settle("ada", Settling{})
	waits(t, s, "n1 n2", "ada")
	before, err := s.Views.Fleet(ctx, false)
	must(t, err)
	ran(t, s, "v1", "n1", "2", "unknown", "2")
	settle("bob", Settling{Done: true})
	waits(t, s, "n2", "ada")
	o, err := s.Views.Fleet(ctx, false)
	must(t, err)
	if got := o.Settled["init"]; !got.Done || got.By != "bob" || got.Again == "" || got.Again != before.Settled["init"].Again {
		t.Errorf("%+v", got)
	}
	var asked *AskedError
	if _, err := s.Steps.Settle(ctx, "init", "eve", Settling{}); !errors.As(err, &asked) || asked.By != "ada" || asked.Where != "n2" {
		t.Errorf("%v", err)
	}
	ran(t, s, "v1", "n1", "3", "unknown", "3")
	settle("cyd", Settling{Done: true})
	waits(t, s, "n2", "ada")
	ran(t, s, "v1", "n2", "2", "ok", "2")
	waits(t, s, "", "ada")
}

// TestSettleOnceInTheNextVersion: that a step is to run again stays on record as long as its results do.
func TestSettleOnceInTheNextVersion(t *testing.T) {
	t.Parallel()
	for scope, want := range map[string]string{OnceScope: "n1", "v1": ""} {
		s := open(t, t.TempDir())
		_, err := s.Versions.Propose(ctx, Version{ID: "v1"}, nil, 0)
		must(t, err)
		ran(t, s, scope, "n1", "1", "unknown", "1")
		_, err = s.Steps.Settle(ctx, "init", "ada", Settling{})
		must(t, err)
		waits(t, s, "n1", "ada")
		current, rev, err := s.Versions.Current(ctx)
		must(t, err)
		_, err = s.Versions.Propose(ctx, Version{ID: "v2"}, current, rev)
		must(t, err)
		o, err := s.Views.Fleet(ctx, false)
		must(t, err)
		if got := strings.Join(o.Settled["init"].Waiting, " "); got != want {
			t.Errorf("%s: waits on %q, want %q", scope, got, want)
		}
	}
}

// TestSettleDoneAfterAgainElsewhere: where the node that is still to run the step was given up, the host that takes its
// place is.
func TestSettleDoneAfterAgainElsewhere(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	_, err := s.Versions.Propose(ctx, Version{ID: "v1"}, nil, 0)
	must(t, err)
	ran(t, s, "v1", "n1", "1", "unknown", "1")
	ran(t, s, "v1", "n2", "1", "unknown", "1")
	_, err = s.Steps.Settle(ctx, "init", "ada", Settling{})
	must(t, err)
	ran(t, s, "v1", "n1", "2", "unknown", "2")
	_, err = s.Client.Txn(ctx).Then(Put(s.Nodes.DecommissionedKey("n2"), gone{By: "ada"}), Put(s.Nodes.Key("n2"), Node{Name: "n2", Decommissioned: true})).Commit()
	must(t, err)
	_, err = s.Steps.Settle(ctx, "init", "bob", Settling{Done: true})
	must(t, err)
	var asked *AskedError
	if _, err := s.Steps.Settle(ctx, "init", "eve", Settling{}); !errors.As(err, &asked) || asked.Where != "the host that takes the place of n2 (decommissioned)" {
		t.Errorf("%v", err)
	}
	waits(t, s, "n2", "ada")
	ran(t, s, "v1", "n3", "1", "ok", "1")
	waits(t, s, "", "ada")
}

// TestSettleAgainReplaced: where another host took the place of the node that is to run the step again, that one stands
// for it; one that has a place of its own does not.
func TestSettleAgainReplaced(t *testing.T) {
	t.Parallel()
	for _, replaced := range []bool{true, false} {
		s := open(t, t.TempDir())
		_, err := s.Versions.Propose(ctx, Version{ID: "v1"}, nil, 0)
		must(t, err)
		ran(t, s, OnceScope, "n1", "1", "ok", "1")
		_, err = s.Steps.Settle(ctx, "init", "ada", Settling{Force: true})
		must(t, err)
		election, hash := StepHash("election\x001 of role=web for init"), StepHash("init")
		ops := []clientv3.Op{clientv3.OpPut(s.Steps.Key(OnceScope, election, "place", "0"), "n2"), clientv3.OpPut(s.Steps.Key(OnceScope, election, "took", "n2", hash), "init")}
		if !replaced {
			ops = append(ops, clientv3.OpPut(s.Steps.Key(OnceScope, election, "place", "1"), "n1"))
		}
		_, err = s.Client.Txn(ctx).Then(ops...).Commit()
		must(t, err)
		waits(t, s, "n1", "ada")
		ran(t, s, OnceScope, "n2", "1", "ok", "1")
		waits(t, s, map[bool]string{false: "n1"}[replaced], "ada")
		var asked *AskedError
		if _, err := s.Steps.Settle(ctx, "init", "eve", Settling{}); errors.As(err, &asked) == replaced {
			t.Errorf("replaced %v: %v", replaced, err)
		}
	}
}

// TestSettleBothScopes: of a step that was settled in the version and in the fleet's life, the later settlement counts.
func TestSettleBothScopes(t *testing.T) {
	t.Parallel()
	for _, scopes := range [][]string{{OnceScope, "v1"}, {"v1", OnceScope}, {OnceScope, "a1"}, {"a1", OnceScope}} { // either order of the keys
		s := open(t, t.TempDir())
		version := scopes[0]
		if version == OnceScope {
			version = scopes[1]
		}
		_, err := s.Versions.Propose(ctx, Version{ID: version}, nil, 0)
		must(t, err)
		for i, scope := range scopes {
			said := Settlement{Step: "init", By: scope, At: time.Now().Add(-time.Duration(i) * time.Hour), Nodes: []string{"n1"}, Version: version}
			_, err := s.Client.Do(ctx, Put(s.Steps.SettledKey(scope, StepHash("init")), said))
			must(t, err)
		}
		waits(t, s, "n1", scopes[1])
	}
}

// TestSettleThrough: a step whose end is not on record is settled while its node lives once the node was through with
// the version after it began the step. Where the node began it later, it may run now.
func TestSettleThrough(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	propose(t, s, "v1")
	p := register(t, s, "m1", "web", "a", time.Minute)
	begins := func(attempt string) {
		start := StepStart{Step: "db/migrate", Attempt: attempt}
		_, err := s.Client.Txn(ctx).Then(Put(s.Steps.Key("v1", StepHash("db/migrate"), "started", "m1"), start)).Commit()
		must(t, err)
	}
	settles := func(want string) {
		t.Helper()
		_, err := s.Steps.Settle(ctx, "db/migrate", "ada", Settling{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	begins("1")
	settles("m1 runs db/migrate since ")
	_, err := s.Client.Txn(ctx).Then(s.Statuses.RunningOps(p, "v1")...).Commit()
	must(t, err)
	settles("")
	begins("2")
	settles("m1 runs db/migrate since ")
}
