package datastore

import (
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/tier"
	"github.com/pullet/pullet/state"
)

// TestDoesNotJoin: why a host does not become a member it says in one line, and it keeps what it has.
func TestDoesNotJoin(t *testing.T) {
	t.Parallel()
	c := clustered(t)
	c.listens("db1", true)
	first := c.hosts["db1"]
	with := func() *carrier {
		h := &carrier{Candidate: Candidate{Config{
			Dir: t.TempDir() + "/d", Addresses: Addresses{Client: freeAddress(t), Door: freeAddress(t), Peer: freeAddress(t)},
		}}}
		return h
	}
	told := func(h *carrier, members string) {
		h.accepts(c, members+",db2="+h.peerURL())
		k, err := readKeys(h.Config, fleetName)
		c.must(err)
		c.must(k.complete(time.Now()))
	}
	ends := func(h *carrier, words string) {
		t.Helper()
		o := c.Options
		o.Config, o.Node = h.Config, "db2"
		wantError(t, words, Run(t.Context(), o), words)
		if !h.Carries() {
			t.Error("it kept nothing: ", words)
		}
	}

	h := with()
	told(h, "db1="+first.peerURL())
	ends(h, "etcd does not start: this host was told of other members than there are now: it is told again, with its next pull")

	at := freeAddress(t)
	h = with()
	told(h, "db1=https://"+at)
	ends(h, "and no member hears it: db1 ("+at+"): dial tcp "+at+": connect: connection refused")

	h = with()
	told(h, "db1="+first.peerURL())
	k, err := readKeys(h.Config, fleetName)
	c.must(err)
	c.must(k.write(time.Now().Add(3 * time.Hour))) // of a clock that is ahead
	ends(h, "and no member hears it: db1 ("+first.peer()+"): remote error: tls: expired certificate")
	wantError(t, "a clock that is behind", k.write(time.Now().AddDate(-1, 0, 0)), "check the clock of this host, which says ")
}

// TestPortInUse: a port that another program has is named, and nothing is lost.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	f := created(t)
	f.end()
	for at, words := range map[string]string{
		f.Client: "etcd does not start: listen tcp " + f.Client + ": bind: address already in use",
		f.Door:   "datastore.door: listen tcp " + f.Door + ": bind: address already in use",
	} {
		l, err := net.Listen("tcp", at)
		f.must(err)
		wantError(t, at, Run(t.Context(), f.Options), words)
		f.must(l.Close())
	}
	_ = os.Remove(f.DoorSocket())
	f.serve()
	f.wantWhole()
}

// TestDiskFull: on a disk without room no record begins, in one line, and with room again it does.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	f := made(t)
	full := t.TempDir()
	mount := func(size string) {
		if err := unix.Mount("tmpfs", full, "tmpfs", 0, "size="+size); err != nil {
			t.Skip("it takes root to mount a disk: ", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(full, unix.MNT_DETACH) })
	}
	mount("1m")
	f.Dir = full + "/d"
	n, err := Create(f.Config, fleetName, time.Now())
	f.must(err)
	key, csr, err := authority.Request()
	f.must(err)
	a, err := n.Admit(state.Invitation{Invitation: authority.Invitation{Name: "admin", Kind: authority.Operator}}, csr)
	f.must(err)
	f.credentials, f.bundle = map[string][]byte{"admin": append(key, a.Certificate...)}, []byte(a.Bundle)
	f.must(n.Finish())
	err = Run(t.Context(), f.Options)
	wantError(t, "a full disk", err, "the disk of "+f.Dir+" is full: ")
	wantError(t, "a full disk", err, " KiB are free, and etcd needs 4 MiB to start")
	f.must(unix.Mount("tmpfs", full, "tmpfs", unix.MS_REMOUNT, "size=100m"))
	f.serve()
	f.wantWhole()
}

// TestLostKey: a host that lost its disk, and with it the key that it offered, is told anew with the key that it offers
// then. Nobody removes it for that.
func TestLostKey(t *testing.T) {
	t.Parallel()
	tier.Long(t, "two members come, which takes a while")
	c := clustered(t, "db2", "db3")
	c.hosts["db2"].lost.Store(true)
	c.must(os.Remove(c.hosts["db2"].file(recipientFile)))
	c.wants("db1", wanted(1, 3, "db1", "db2", "db3"))
	c.becomes("db1 db2 db3")
	d, err := c.store("admin").Datastores.All(t.Context())
	c.must(err)
	for _, s := range d.Steps.Steps {
		if s.Kind == "remove" {
			t.Errorf("%+v", s)
		}
	}
}
