package datastore

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/internal/tier"
)

// TestReopenFails: a member that was stopped to be started anew, and does not start, was not removed by others: what it
// has stays where it is, and the next start goes on.
func TestReopenFails(t *testing.T) {
	t.Parallel()
	f := made(t)
	ended := make(chan error, 1)
	go func() { ended <- Run(t.Context(), f.Options) }()
	f.until("the door is open", func() bool {
		_, err := os.Stat(f.DoorSocket())
		return err == nil
	})
	f.must(os.Remove(f.file(bundleFile)))
	f.must(os.Mkdir(f.file(bundleFile), 0o700)) // it cannot be written
	_, err := Rotate(t.Context(), f.Config, false)
	wantError(t, "rotate", err, bundleFile)
	select {
	case err = <-ended:
	case <-time.After(patience.Stretch(time.Minute)):
		t.Fatal("it goes on")
	}
	wantError(t, "the datastore", err, bundleFile)
	if _, err := os.Stat(f.file(memberDir)); err != nil || !f.Carries() {
		t.Error("the record was put aside: ", err)
	}
	f.must(os.Remove(f.file(bundleFile)))
	f.serve()
	f.bundle, err = os.ReadFile(f.file(bundleFile))
	f.must(err)
	f.wantWhole()
}

// TestPeerPortInUse: where another program has the port at which the first member is to be reached, the member goes on
// alone, and says so.
func TestPeerPortInUse(t *testing.T) {
	t.Parallel()
	tier.Long(t, "three members come one behind the other")
	c := clustered(t, "db2", "db3")
	l, err := net.Listen("tcp", c.hosts["db1"].peer())
	c.must(err)
	c.wants("db1", wanted(1, 3, "db1", "db2", "db3"))
	c.logs("db1", "datastore.peer: listen tcp "+c.hosts["db1"].peer()+": bind: address already in use")
	if _, err := c.client("admin").Put(t.Context(), "/pullet/prod/hold/kept", ""); err != nil {
		t.Error(err)
	}
	c.must(l.Close())
	c.becomes("db1 db2 db3")
}
