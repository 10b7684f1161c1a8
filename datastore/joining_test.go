package datastore

import (
	"net"
	"os"
	"testing"
	"time"
)

// TestDoesNotJoin: why a host does not become a member it says in one line, and it keeps what it has.
func TestDoesNotJoin(t *testing.T) {
	t.Parallel()
	c := clustered(t)
	c.listens("db1", true)
	first := c.hosts["db1"]
	with := func() *carrier {
		h := &carrier{Config: Config{
			Dir: t.TempDir() + "/d", Addresses: Addresses{Client: freeAddress(t), Door: freeAddress(t), Peer: freeAddress(t)},
		}}
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
