package state

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestProven: every node of the fleet ran a version whose groups are through. A roster that cannot be read proves
// nothing.
func TestProven(t *testing.T) {
	t.Parallel()
	for roster, want := range map[string]bool{(&Roster{Size: 1, Roles: []string{"web"}, names: []byte("\nweb1\n")}).encode(): true, "{": false} {
		s := open(t, t.TempDir())
		register(t, s, "web1", "web", "secret", time.Minute)
		v := Version{ID: "v1"}
		etcd, err := raw(s) // pullet writes no such roster
		must(t, err)
		_, err = etcd.Txn(ctx).Then(clientv3.OpPut(s.Rosters.Key(v.Rollout(), "web"), roster), clientv3.OpPut(s.Rollouts.ClosedKey(v.Rollout(), "web"), "")).Commit()
		must(t, err, etcd.Close())
		if proven, err := s.Versions.proven(ctx, v); err != nil || proven != want {
			t.Errorf("%q: %t, %v", roster, proven, err)
		}
	}
}
