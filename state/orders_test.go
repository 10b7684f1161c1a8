package state

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestFoundOrders: a node that registers finds what operators want of it, for the role that it registers with.
func TestFoundOrders(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	give(t, s, "c1", []string{"n1"})
	must(t, func() error {
		_, err := s.Client.Do(ctx, Put(s.Switches.Key(RoleScope("web")), Switch{AllChanges: true, At: time.Now()}))
		return err
	}())
	for role, frozen := range map[string]bool{"web": true, "db": false} {
		found := register(t, s, "n1", role, "x", time.Minute).Found
		if found.Role != role || (found.Orders.Freeze != nil) != frozen || frozen && found.Orders.Scope != RoleScope("web") || len(found.Orders.Commands) != 1 {
			t.Errorf("%s: %+v", role, found.Orders)
		}
	}
}

// TestOrdersTell: for what a node waits is told with the begin of a run, also where a switch keeps that from beginning,
// and not by a node that was replaced.
func TestOrdersTell(t *testing.T) {
	t.Parallel()
	run, waits := Status{Version: "v1", Reason: InRun}, Status{Version: "v2", Reason: "it waits", Gate: "slot web"}
	for _, c := range []struct {
		name         string
		switched     bool
		replaced     bool
		begun, waits int64 // how many keys say so
	}{
		{"nothing is switched", false, false, 1, 1},
		{"all changes are disabled", true, false, 0, 1},
		{"another host has the name", false, true, 0, 0},
	} {
		s := open(t, t.TempDir())
		p := register(t, s, "n1", "web", "x", time.Minute)
		if c.switched {
			_, err := s.Client.Do(ctx, Put(s.Switches.Key(GlobalScope()), Switch{AllChanges: true, At: time.Now()}))
			must(t, err)
		}
		if c.replaced {
			register(t, s, "n1", "web", "x", time.Minute)
		}
		o, err := s.Switches.Orders(ctx, p, "web", &run, &waits)
		must(t, err)
		got, err := s.Client.Txn(ctx).Then(clientv3.OpGet(s.Statuses.key(Configured, Running, "n1")), clientv3.OpGet(s.Statuses.key(Rollout, Pending, "n1"))).Commit()
		must(t, err)
		begun, told := got.Responses[0].GetResponseRange(), got.Responses[1].GetResponseRange()
		if begun.Count != c.begun || told.Count != c.waits || o.Begun != (c.begun == 1) || (o.Freeze != nil) != c.switched {
			t.Errorf("%s: begun %d, told %d, %+v", c.name, begun.Count, told.Count, o)
		}
		if begun.Count == 1 && told.Count == 1 && begun.Kvs[0].ModRevision != told.Kvs[0].ModRevision {
			t.Errorf("%s: it took two requests", c.name)
		}
	}
}
