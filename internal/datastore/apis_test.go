package datastore

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	electionpb "go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	lockpb "go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/patience"
)

// TestClosedKeys: what is not of the fleet is closed, for reading, too.
func TestClosedKeys(t *testing.T) {
	t.Parallel()
	f := created(t)
	f.join(f.store("admin"), "eve", authority.Viewer)
	for _, who := range []string{"db1", "admin", "eve"} {
		c := f.client(who)
		for _, key := range []string{
			"/pullet/other/current_version", "/pullet/prodigal/x", "/pullet/prod", "/pullet/", "/", "/skydns", "/skydnsx", "x", "\x00",
			"/pullet/pro", "/pullet/prod0", "/registry/x",
		} {
			_, err := c.Get(t.Context(), key)
			wantError(t, who+" reads "+key, err, "permission denied")
			_, err = c.Put(t.Context(), key, "")
			wantError(t, who+" writes "+key, err, "permission denied")
			_, err = c.Txn(t.Context()).If(clientv3.Compare(clientv3.Value(key), ">", "a")).Commit()
			wantError(t, who+" compares "+key, err, "permission denied")
			watching, cancel := context.WithTimeout(t.Context(), patience.Stretch(5*time.Second))
			w := <-c.Watch(watching, key)
			wantError(t, who+" watches "+key, w.Err(), "permission denied")
			cancel()
		}
		_, err := c.Get(t.Context(), "\x00", clientv3.WithFromKey())
		wantError(t, who+" reads everything", err, "permission denied")
		_, err = c.Delete(t.Context(), "/pullet/prod/", clientv3.WithPrefix())
		wantError(t, who+" deletes the fleet", err, "permission denied")
		_, err = c.Delete(t.Context(), "/pullet/prod/identity/", clientv3.WithPrefix())
		wantError(t, who+" deletes identities", err, "permission denied")
		if _, err = c.Get(t.Context(), "/pullet/prod/", clientv3.WithPrefix()); err != nil {
			t.Error(who, err)
		}
	}
}

// TestClosedCalls: what concerns all of etcd is for the keeper alone.
func TestClosedCalls(t *testing.T) {
	t.Parallel()
	f := created(t)
	f.join(f.store("admin"), "eve", authority.Viewer)
	for _, who := range []string{"db1", "admin", "eve"} {
		c := f.client(who)
		ctx, cancel := context.WithTimeout(t.Context(), patience.Stretch(10*time.Second))
		defer cancel()
		member := uint64(1)
		for what, call := range map[string]func() error{
			"user add":          func() error { _, err := c.UserAdd(ctx, "x", "y"); return err },
			"user delete":       func() error { _, err := c.UserDelete(ctx, "db1"); return err },
			"user list":         func() error { _, err := c.UserList(ctx); return err },
			"user get root":     func() error { _, err := c.UserGet(ctx, "root"); return err },
			"user password":     func() error { _, err := c.UserChangePassword(ctx, "root", "x"); return err },
			"user grant":        func() error { _, err := c.UserGrantRole(ctx, who, "root"); return err },
			"role add":          func() error { _, err := c.RoleAdd(ctx, "x"); return err },
			"role list":         func() error { _, err := c.RoleList(ctx); return err },
			"role get root":     func() error { _, err := c.RoleGet(ctx, "root"); return err },
			"role delete":       func() error { _, err := c.RoleDelete(ctx, "nodes"); return err },
			"role revoke":       func() error { _, err := c.RoleRevokePermission(ctx, "nodes", "a", ""); return err },
			"role grant":        func() error { _, err := c.RoleGrantPermission(ctx, "nodes", "a", "z", 2); return err },
			"auth enable":       func() error { _, err := c.AuthEnable(ctx); return err },
			"auth disable":      func() error { _, err := c.AuthDisable(ctx); return err },
			"password of root":  func() error { _, err := c.Authenticate(ctx, "root", ""); return err },
			"password of admin": func() error { _, err := c.Authenticate(ctx, "admin", ""); return err },
			"compact":           func() error { _, err := c.Compact(ctx, 2); return err },
			"defragment":        func() error { _, err := c.Defragment(ctx, f.Endpoint()); return err },
			"alarm":             func() error { _, err := c.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: 1, Alarm: 1}); return err },
			"move leader":       func() error { _, err := c.MoveLeader(ctx, 1); return err },
			"hash":              func() error { _, err := c.HashKV(ctx, f.Endpoint(), 0); return err },
			"downgrade":         func() error { _, err := c.Downgrade(ctx, clientv3.DowngradeEnable, "3.6.0"); return err },
			"downgrade cancel":  func() error { _, err := c.Downgrade(ctx, clientv3.DowngradeCancel, ""); return err },
			"member add":        func() error { _, err := c.MemberAdd(ctx, []string{"http://127.0.0.1:1"}); return err },
			"member learner":    func() error { _, err := c.MemberAddAsLearner(ctx, []string{"http://127.0.0.1:1"}); return err },
			"member promote":    func() error { _, err := c.MemberPromote(ctx, member); return err },
			"member update":     func() error { _, err := c.MemberUpdate(ctx, member, []string{"http://127.0.0.1:1"}); return err },
			"member remove":     func() error { _, err := c.MemberRemove(ctx, member); return err },
			"snapshot": func() error {
				r, err := c.Snapshot(ctx)
				if err == nil {
					_, err = r.Read(make([]byte, 10))
				}
				return err
			},
			"lock within the fleet": func() error {
				_, err := lockpb.NewLockClient(c.ActiveConnection()).Lock(ctx, &lockpb.LockRequest{Name: []byte("/pullet/prod/run")})
				return err
			},
			"campaign within the fleet": func() error {
				_, err := electionpb.NewElectionClient(c.ActiveConnection()).
					Campaign(ctx, &electionpb.CampaignRequest{Name: []byte("/pullet/prod/run")})
				return err
			},
			"lock": func() error {
				_, err := lockpb.NewLockClient(c.ActiveConnection()).Lock(ctx, &lockpb.LockRequest{Name: []byte("/pullet/other/x")})
				return err
			},
		} {
			if err := call(); err == nil {
				t.Errorf("%s may: %s", who, what)
			}
		}
	}
}

// TestLeases: what hangs on a lease decides who may touch it.
func TestLeases(t *testing.T) {
	t.Parallel()
	f := created(t)
	s := f.store("admin")
	f.join(s, "web1", authority.Node)
	f.join(s, "eve", authority.Viewer)
	h := f.holds("db1")
	for _, who := range []string{"web1", "eve"} {
		c := f.client(who)
		_, err := c.Revoke(t.Context(), h.lease)
		wantError(t, who+" revokes", err, "permission denied")
		_, err = c.Put(t.Context(), "/pullet/prod/bell", "", clientv3.WithLease(h.lease))
		wantError(t, who+" hangs a key on it", err, "permission denied")
		_, err = c.KeepAliveOnce(t.Context(), h.lease)
		wantError(t, who+" renews", err, "permission denied")
	}
}
