package datastore

import (
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestWalk: all records are visited, those that etcd did not write to its file yet, too, and more than are looked at
// together.
func TestWalk(t *testing.T) {
	t.Parallel()
	f, k, _ := leastRoom(t)
	f.keeperStore()
	c := f.client("root")
	const parts = 2*walkedAtOnce/removedAtOnce + 1
	for i := range parts {
		var ops []clientv3.Op
		for j := range removedAtOnce {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("/pullet/prod/service/db1/%d/%d", i, j), ""))
		}
		_, err := c.Txn(t.Context()).Then(ops...).Commit()
		f.must(err)
	}
	seen := map[string]bool{}
	f.must(k.member.walk(func(key string, _ int) error {
		if strings.HasPrefix(key, "/pullet/prod/service/db1/") {
			seen[key] = true
		}
		return nil
	}))
	if len(seen) != parts*removedAtOnce {
		t.Errorf("%d of %d records are visited", len(seen), parts*removedAtOnce)
	}
	removed, err := roomOf(k).removeOwn(t.Context(), "db1")
	f.must(err)
	left, err := c.Get(t.Context(), "/pullet/prod/service/db1/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	f.must(err)
	if removed != parts*removedAtOnce || left.Count != 0 {
		t.Errorf("%d are removed, %d are left", removed, left.Count)
	}
}

// TestRemoveOwn: what a node alone may write goes, but for its lasting record; what others may write, and have, stays.
func TestRemoveOwn(t *testing.T) {
	t.Parallel()
	f, k, _ := leastRoom(t)
	f.keeperStore()
	c := f.client("root")
	gone := []string{
		"facts/web1", "service/web1/http", "service/web1/x/y/z", "status/rollout/failed/web1", "alive/web1", "rival/web1/x",
		"claimed/web1", "doubting/web1", "decommissioned/web1", "request/web1",
	}
	stays := []string{
		"node/web1", "facts/web10", "facts/web2", "service/web2/http", "blob/web1/001", "identity/web1", "run/v/h/result/web1",
	}
	for range 2 { // also what was written more than once is removed once
		for _, key := range append(gone, stays...) {
			_, err := c.Put(t.Context(), "/pullet/prod/"+key, "x")
			f.must(err)
		}
	}
	removed, err := roomOf(k).removeOwn(t.Context(), "web1")
	f.must(err)
	if removed != int64(len(gone)) {
		t.Errorf("%d records are removed", removed)
	}
	for _, key := range stays {
		if got, err := c.Get(t.Context(), "/pullet/prod/"+key); err != nil || got.Count == 0 {
			t.Error("removed: ", key, err)
		}
	}
}
