package storm

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// slot is a claim of a slot.
type slot struct {
	node  string
	fence int64
}

// slots maps the keys of all slots to their claims.
type slots map[string]slot

// read reads the claims at a revision. It tries again until ctx ends, because members of etcd start and stop.
func (k slots) read(ctx context.Context, client *clientv3.Client, rev int64) {
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		got, err := client.Get(ctx, prefix+"slot/", clientv3.WithPrefix(), clientv3.WithRev(rev))
		if errors.Is(err, rpctypes.ErrCompacted) {
			return // the watcher reports that
		} else if err != nil {
			continue
		}
		for _, kv := range got.Kvs {
			var c state.Claim
			if json.Unmarshal(kv.Value, &c) == nil {
				k[string(kv.Key)] = slot{c.Node, kv.CreateRevision}
			}
		}
		return
	}
}

// moves returns the claims that go from one slot to another in one transaction, by its revision, which is the fence of
// the new claim.
func (k slots) moves(events []*clientv3.Event) map[int64]slot {
	made, out := map[int64]string{}, map[int64]slot{}
	for _, e := range events {
		var c state.Claim
		if strings.HasPrefix(string(e.Kv.Key), prefix+"slot/") && e.IsCreate() && json.Unmarshal(e.Kv.Value, &c) == nil {
			made[e.Kv.ModRevision] = c.Node
		}
	}
	for _, e := range events {
		old, known := k[string(e.Kv.Key)]
		var c state.Claim
		switch {
		case !strings.HasPrefix(string(e.Kv.Key), prefix+"slot/"):
		case e.Type == clientv3.EventTypeDelete:
			if known && made[e.Kv.ModRevision] == old.node {
				out[e.Kv.ModRevision] = old
			}
			delete(k, string(e.Kv.Key))
		case json.Unmarshal(e.Kv.Value, &c) == nil:
			k[string(e.Kv.Key)] = slot{c.Node, e.Kv.CreateRevision}
		}
	}
	return out
}

// putBacks returns the nodes of claims that no admission made, by revision: an admission writes in the same transaction
// that the node runs.
func putBacks(events []*clientv3.Event) map[int64]string {
	made, begun := map[int64]string{}, map[int64]bool{}
	for _, e := range events {
		key := strings.TrimPrefix(string(e.Kv.Key), prefix)
		var c state.Claim
		switch {
		case strings.HasPrefix(key, "status/rollout/running/"):
			begun[e.Kv.ModRevision] = true
		case strings.HasPrefix(key, "slot/") && e.IsCreate() && json.Unmarshal(e.Kv.Value, &c) == nil:
			made[e.Kv.ModRevision] = c.Node
		}
	}
	maps.DeleteFunc(made, func(rev int64, _ string) bool { return begun[rev] })
	return made
}
