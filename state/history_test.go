package state

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"go.uber.org/zap"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestPropose: of all who saw the same revision one wins, in every round, and the others learn whose version it is in
// the same request.
func TestPropose(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for round := range 10 {
		_, seen, err := s.Versions.Current(ctx)
		must(t, err)
		var mu sync.Mutex
		var won []string
		told := map[string]bool{}
		atOnce(t, 20, func(i int) error {
			v := Version{ID: fmt.Sprintf("v%d-%d", round, i)}
			is, err := s.Versions.Propose(ctx, v, nil, seen)
			mu.Lock()
			defer mu.Unlock()
			if is.Done {
				won = append(won, v.ID)
			}
			if err == nil {
				told[is.Version.ID] = true
			}
			return err
		})
		current, rev, err := s.Versions.Current(ctx)
		if err != nil || len(won) != 1 || current.ID != won[0] || rev <= seen || len(told) != 1 || !told[won[0]] {
			t.Errorf("round %d: %q won, current %v at %d, told %v, %v", round, won, current, rev, told, err)
		}
	}
	if writes := history(t, s, s.Versions.CurrentKey()); len(writes) != 10 {
		t.Errorf("%d writes, want 10", len(writes))
	}
}

// propose makes a version the current one.
func propose(t *testing.T, s *Store, id string) *Version {
	t.Helper()
	current, rev, err := s.Versions.Current(ctx)
	must(t, err)
	if is, err := s.Versions.Propose(ctx, Version{ID: id}, current, rev); !is.Done || err != nil {
		t.Fatalf("%s: %v %v", id, is.Done, err)
	}
	current, _, err = s.Versions.Current(ctx)
	must(t, err)
	return current
}

// TestEpochs: a version that the fleet comes back to has a rollout of its own; what is said of the current one changes
// nothing of it.
func TestEpochs(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	seen := map[string]bool{}
	for i, id := range []string{"a", "b", "a", "b", "b", "a"} {
		v := propose(t, s, id)
		if again := i == 4; seen[v.Rollout()] != again {
			t.Errorf("%d: the rollout %s was there before: %v", i, v.Rollout(), !again)
		}
		seen[v.Rollout()] = true
	}
	if !seen["a"] || !seen["b"] || len(seen) != 5 {
		t.Errorf("%v", seen)
	}
	current, rev, err := s.Versions.Current(ctx)
	must(t, err)
	if is, err := s.Versions.Propose(ctx, Version{ID: "a", Release: "v1.0"}, current, rev); !is.Done || err != nil { // its tag was seen later
		t.Fatal(is.Done, err)
	}
	after, _, err := s.Versions.Current(ctx)
	must(t, err)
	if after.Rollout() != current.Rollout() || after.Seq != current.Seq || after.Release != "v1.0" {
		t.Errorf("%+v, before %+v", after, current)
	}
	all, err := s.Versions.History(ctx)
	must(t, err)
	if len(all) != 5 || all[4].Release != "v1.0" || !slices.IsSortedFunc(all, func(a, b Version) int { return a.Seq - b.Seq }) {
		t.Errorf("history %+v", all)
	}
}

// TestProposeEndsQueues: the queues of the older rollout end with it, and nothing else of it does.
func TestProposeEndsQueues(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	v := propose(t, s, "v1")
	must(t, put(s, s.Rollouts.QueuePrefix("v1", "web")+"1-a", s.Rollouts.DoneKey("v1", "web", "b"), s.Rollouts.SlotPrefix("web")+"0"))
	current, rev, err := s.Versions.Current(ctx)
	must(t, err)
	v.Held = true
	if is, err := s.Versions.Propose(ctx, *v, current, rev); !is.Done || err != nil {
		t.Fatal(is.Done, err)
	}
	if n := count(t, s, s.Rollouts.QueuesPrefix("v1")); n != 1 {
		t.Errorf("it is still the same version, and %d wait", n)
	}
	propose(t, s, "v2")
	if a, b, c := count(t, s, s.Rollouts.QueuesPrefix("v1")), count(t, s, s.Rollouts.key("v1", "done")+"/"), count(t, s, s.Rollouts.SlotPrefix("")); a != 0 || b != 1 || c != 1 {
		t.Errorf("%d in queues, %d through, %d claims", a, b, c)
	}
}

// put writes empty keys.
func put(s *Store, keys ...string) error {
	var ops []clientv3.Op
	for _, k := range keys {
		ops = append(ops, clientv3.OpPut(k, ""))
	}
	etcd, err := raw(s)
	if err != nil {
		return err
	}
	_, err = etcd.Txn(ctx).Then(ops...).Commit()
	return errors.Join(err, etcd.Close())
}

// raw is a client that writes anything.
func raw(s *Store) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: s.Client.Endpoints(), Logger: zap.NewNop()})
}

// count is how many keys begin so.
func count(t *testing.T, s *Store, prefix string) int64 {
	t.Helper()
	got, err := s.Client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	must(t, err)
	return got.Count
}

// TestRetire: the last ten versions keep what belongs to them, however often each was changed, and older ones do not.
func TestRetire(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for i := range 13 {
		v := propose(t, s, fmt.Sprintf("v%02d", i))
		must(t, put(s, s.Rollouts.DoneKey(v.Rollout(), "web", "a"), s.Steps.Key(v.Rollout(), "x", "open")))
		for range 3 {
			propose(t, s, v.ID)
		}
		kept := min(i+1, keptVersions)
		all, err := s.Versions.History(ctx)
		must(t, err)
		if len(all) != kept || all[kept-1].ID != v.ID {
			t.Fatalf("after %s: %d are kept", v.ID, len(all))
		}
	}
	for i := range 13 {
		id := fmt.Sprintf("v%02d", i)
		a, b := count(t, s, s.key("rollout", id)+"/"), count(t, s, s.key("run", id)+"/")
		if want := int64(min(max(i-2, 0), 1)); a != want || b != want {
			t.Errorf("%s: %d keys of its rollout and %d of its runs are left", id, a, b)
		}
	}
	back := propose(t, s, "v00") // nobody remembers it
	if back.Rollout() != "v00" {
		t.Errorf("%+v", back)
	}
}

// TestRetireSparesRunning: what a node runs keeps what belongs to it until the node leaves it, once however often the
// fleet was there.
func TestRetireSparesRunning(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	place := s.Steps.Key("a", "election", "place", "0")
	must(t, put(s, s.Statuses.RunningKey("a", "web1"), place))
	for _, id := range []string{"a", "b", "a"} {
		propose(t, s, id)
	}
	for i := range 2 * keptVersions {
		propose(t, s, fmt.Sprint("v", i))
	}
	all, err := s.Versions.History(ctx)
	must(t, err)
	if n := count(t, s, place); n != 1 || len(all) != keptVersions+1 || all[0].ID != "a" {
		t.Errorf("%d places are left, and of %d versions the oldest is %s", n, len(all), all[0].ID)
	}
	_, err = s.Client.Delete(ctx, s.Statuses.RunningKey("a", "web1"))
	must(t, err)
	propose(t, s, "last")
	all, err = s.Versions.History(ctx)
	must(t, err)
	if n := count(t, s, place); n != 0 || len(all) != keptVersions {
		t.Errorf("%d places and %d versions are left", n, len(all))
	}
}

// TestRetireSparesRollouts: a rollout that a kept version still has is kept with it.
func TestRetireSparesRollouts(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	must(t, put(s, s.Rollouts.DoneKey("a", "web", "n"), s.Rollouts.DoneKey("a.2", "web", "n")))
	for _, id := range []string{"a", "b", "a"} {
		propose(t, s, id)
	}
	for i := range keptVersions - 1 {
		propose(t, s, fmt.Sprint("v", i))
	}
	if a, b := count(t, s, s.key("rollout", "a")+"/"), count(t, s, s.key("rollout", "a.2")+"/"); a != 0 || b != 1 {
		t.Errorf("%d keys of the first rollout of it, %d of the second", a, b)
	}
}
