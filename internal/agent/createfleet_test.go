package agent

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/internal/freeport"
	"github.com/pullet/pullet/internal/patience"
)

// founder is a host that makes a fleet.
type founder struct {
	*host
	file string
	data datastore.Config
}

func newFounder(t *testing.T) *founder {
	t.Helper()
	f := &founder{host: newHost(t, "steps: [{name: s, action: test.succeed}]\n")}
	short, err := os.MkdirTemp("", "ds") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	f.file, f.data = filepath.Join(f.home, "pullet.yaml"), datastore.Config{
		Dir: filepath.Join(short, "d"), Addresses: datastore.Addresses{Client: loopback(t), Door: loopback(t)},
	}
	f.write("pullet.yaml", fmt.Sprintf("node: {name: web1, labels: {role: web}}\npaths: {state: %s, hostVars: %s}\n"+
		"repositories: [{name: main, url: %q}]\n", f.Paths.State, f.Paths.HostVars, f.Repositories[0].URL))
	f.reads()
	return f
}

// reads reads the configuration, as each command does.
func (f *founder) reads() {
	f.t.Helper()
	agent := f.Agent
	c, err := ReadConfig(f.file, f.Root)
	if err != nil {
		f.t.Fatal(err)
	}
	c.Agent = agent
	f.Config = c
}

func (f *founder) create() error {
	_, err := f.CreateFleet(f.t.Context(), f.data, "admin", time.Now())
	return err
}

// serves serves the datastore until the test ends.
func (f *founder) serves() {
	f.t.Helper()
	f.reads()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- datastore.Run(ctx, datastore.Options{
			Config: f.Datastore, Fleet: f.Fleet, Node: f.Node.Name, Log: f.entry(), Invited: f.Invited,
		})
	}()
	f.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	})
	f.until("the door is open", func() bool {
		conn, err := net.Dial("unix", f.Datastore.DoorSocket()) // the file is there before anybody listens
		return err == nil && conn.Close() == nil
	})
}

func (f *founder) until(what string, holds func() bool) {
	f.t.Helper()
	patience.Until(f.t, what, holds)
}

// TestCreateFleetAgain: where making a fleet ended before one of its files was in place, it is done again from the
// start.
func TestCreateFleetAgain(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"D/ca.pem", "D/server.pem", "D/keeper.pem", "D/crl.pem", "conf.d/datastore.yaml", "fleet/ca.pem", "fleet/host.pem",
		"conf.d/fleet.yaml", "fleet/operator.pem", "conf.d/operator.yaml", "D/first.json", // and last the authority
	} {
		f := newFounder(t)
		path := filepath.Join(f.home, name)
		if in, ok := strings.CutPrefix(name, "D/"); ok {
			path = filepath.Join(f.data.Dir, in)
		}
		if err := os.MkdirAll(filepath.Join(path, "taken"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := f.create(); err == nil {
			t.Fatal(name, " was placed over a directory")
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		f.reads()
		if err := f.create(); err != nil {
			t.Errorf("again behind %s: %v", name, err)
			continue
		}
		f.reads()
		if err := f.create(); err == nil || !strings.Contains(err.Error(), "there is a datastore") {
			t.Errorf("made over one that is there: %v", err)
		}
		if ca, err := authority.Fingerprints(contentOf(t, f.Etcd.TLS.CA)); err != nil || len(ca) != 1 {
			t.Error(ca, err)
		}
	}
}

func contentOf(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func loopback(t *testing.T) string {
	t.Helper()
	at, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestCreateFleetHandsOver: what a host had on record for itself goes on in the fleet's datastore, also where it was
// killed behind the move of the record.
func TestCreateFleetHandsOver(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		f := newFounder(t)
		f.pull()
		before, err := f.ReadLocal()
		if err != nil {
			t.Fatal(err)
		}
		if killed { // behind the move of the record
			first := filepath.Join(f.data.Dir, "first.json", "taken")
			if err := os.MkdirAll(first, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := f.create(); err == nil {
				t.Fatal("it was not ended")
			}
			if err := os.RemoveAll(filepath.Dir(first)); err != nil {
				t.Fatal(err)
			}
			f.reads()
		}
		if err := f.create(); err != nil {
			t.Fatal(err)
		}
		f.serves()
		out, err := f.tryPull(t.Context())
		if err != nil {
			t.Fatalf("killed %v: %v", killed, err)
		}
		after, err := f.ReadLocal()
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Warnings) > 0 || after.Store.Revision < before.Store.Revision {
			t.Errorf("killed %v: %v, then %v: %v", killed, before.Store, after.Store, out.Warnings)
		}
	}
}
