package datastore

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/state"
)

// held is what a host holds on to that is about to be shut out.
type held struct {
	*clientv3.Client
	lease clientv3.LeaseID
	watch clientv3.WatchChan
	alive <-chan *clientv3.LeaseKeepAliveResponse
	old   []byte // its credentials
	fleet *fleet
}

func (f *fleet) holds(name string) *held {
	f.Helper()
	c := f.client(name)
	lease, err := c.Grant(f.Context(), 5)
	f.must(err)
	_, err = c.Put(f.Context(), "/pullet/prod/alive/"+name, "{}", clientv3.WithLease(lease.ID))
	f.must(err)
	alive, err := c.KeepAlive(f.Context(), lease.ID)
	f.must(err)
	<-alive
	h := &held{
		Client: c, lease: lease.ID, alive: alive, old: f.credentials[name], fleet: f,
		watch: c.Watch(f.Context(), "/pullet/prod/", clientv3.WithPrefix(), clientv3.WithCreatedNotify()),
	}
	<-h.watch
	return h
}

// wantOut fails unless nothing works any more.
func (h *held) wantOut(what string) {
	t := h.fleet.T
	t.Helper()
	_, err := h.Get(t.Context(), "/pullet/prod/current_version")
	wantError(t, what+": reads", err, "permission denied")
	_, err = h.Put(t.Context(), "/pullet/prod/bell", "")
	wantError(t, what+": writes", err, "permission denied")
	_, err = h.Grant(t.Context(), 60)
	wantError(t, what+": takes a lease", err, "permission denied")
	if _, err = h.KeepAliveOnce(t.Context(), h.lease); err == nil {
		t.Error(what, "keeps its lease")
	}
	if _, err = h.MemberList(t.Context()); err == nil {
		t.Error(what, "lists members")
	}
	watching, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if w, open := <-h.Watch(watching, "/pullet/prod/", clientv3.WithPrefix()); open && w.Err() == nil {
		t.Error(what, "watches")
	}
	h.fleet.until(what+": its watch ends", func() bool {
		select {
		case w, open := <-h.watch:
			return !open || w.Err() != nil
		default:
			return false
		}
	})
	if c, err := h.fleet.connect(h.old); err == nil {
		defer func() { _ = c.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Get(ctx, "/pullet/prod/current_version"); err == nil {
			t.Error(what, ": connects")
		}
	}
}

// TestRevocation: who is decommissioned is out at once, on connections that are open, too, and stays out when the name
// is somebody else's.
func TestRevocation(t *testing.T) {
	t.Parallel()
	f := created(t)
	s := f.store("admin")
	f.join(s, "web1", authority.Node)
	h := f.holds("web1")
	register(f, s, "web1")
	_, err := s.Nodes.Decommission(t.Context(), "web1", "admin", true)
	f.must(err)
	f.must(s.Identities.AwaitRevoked(t.Context(), "web1"))
	h.wantOut("decommissioned")
	f.join(s, "web1", authority.Node)
	h.wantOut("invited again")
	f.holds("web1")

	second := f.holds("web1")
	f.join(s, "web1", authority.Node) // reinstalled: nobody decommissioned it
	second.wantOut("reinstalled")
	third := f.holds("web1")
	f.end()
	f.serve()
	if _, err := third.Get(t.Context(), "/pullet/prod/current_version"); err != nil {
		t.Error("after a restart: ", err)
	}
	f.join(f.store("admin"), "eve", authority.Viewer)
	f.must(f.store("admin").Identities.Revoke(t.Context(), "admin"))
	f.until("an operator is out", func() bool {
		_, err := s.Identities.All(t.Context())
		return err != nil
	})
}

// register puts a node on record as its pull does.
func register(f *fleet, s *state.Store, name string) {
	f.Helper()
	_, err := s.Client.Do(f.Context(), state.Put(s.Nodes.Key(name), &state.Node{Name: name, Role: "web"}))
	f.must(err)
}

// TestDecommissionUnseen: a host that never pulled, or took its own record away, is decommissioned all the same.
func TestDecommissionUnseen(t *testing.T) {
	t.Parallel()
	f := created(t)
	s := f.store("admin")
	f.join(s, "web1", authority.Node)
	_, err := s.Nodes.Decommission(t.Context(), "web1", "admin", false)
	f.must(err)
	f.must(s.Identities.AwaitRevoked(t.Context(), "web1"))
	_, err = s.Nodes.Decommission(t.Context(), "admin", "admin", true)
	wantError(t, "an operator is no host", err, "there is no node")
}

// TestDodge: a host that takes its mark away, or asks for certificates all the time, is decommissioned all the same.
func TestDodge(t *testing.T) {
	t.Parallel()
	f := created(t)
	s := f.store("admin")
	f.join(s, "web1", authority.Node)
	register(f, s, "web1")
	c := f.client("web1")
	stop, ended := context.WithCancel(t.Context())
	defer ended()
	go func() {
		for stop.Err() == nil {
			_, csr, _ := authority.Request()
			_, _ = c.Do(stop, state.Put("/pullet/prod/request/web1", &state.Request{CSR: string(csr)}))
			_, _ = c.Delete(stop, "/pullet/prod/decommissioned/web1")
		}
	}()
	if _, err := s.Nodes.Decommission(t.Context(), "web1", "admin", true); err != nil {
		t.Log(err) // it says that the node came back
	}
	f.must(s.Identities.AwaitRevoked(t.Context(), "web1"))
	all, err := s.Identities.All(t.Context())
	f.must(err)
	if _, there := all.Identities["web1"]; there {
		t.Error("it is still one of the fleet")
	}
}

// TestAnswerKeepsRevocation: a request that was read before an operator revoked does not undo that.
func TestAnswerKeepsRevocation(t *testing.T) {
	t.Parallel()
	f := made(t)
	f.serve()
	f.end()
	k := &keeper{Options: f.Options, guard: newGuard()}
	var err error
	k.keys, err = readKeys(f.Config, fleetName)
	f.must(err)
	f.must(k.open(t.Context()))
	defer func() { f.must(k.close()) }()
	ids := k.store.Identities
	before, err := ids.All(t.Context())
	f.must(err)
	_, csr, err := authority.Request()
	f.must(err)
	f.must(ids.Revoke(t.Context(), "db1"))
	before.Requests["db1"] = state.Request{CSR: string(csr)}
	f.must(k.issue(t.Context(), "db1", before, time.Now()))
	after, err := ids.All(t.Context())
	f.must(err)
	if !after.Revoking["db1"] {
		t.Error("the answer undid the revocation")
	}
	err = doors{k}.enter(t.Context(), "db1", before.Identities["db1"], before, time.Now())
	wantError(t, "joins while it is revoked", err, "was revoked while it joined")
}
