package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// TestOffersAnotherKey: a host that cannot open what it got to carry the datastore, such as behind the loss of a disk,
// says so, and offers the key that it has now.
func TestOffersAnotherKey(t *testing.T) {
	t.Parallel()
	web1, _, _ := pair(t, job("one", "true"), nil)
	store, c, dir := web1.open(), web1.Config, t.TempDir()
	c.file, c.Etcd.Renew, c.Etcd.TLS.CA = filepath.Join(dir, "pullet.yaml"), true, filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(c.Etcd.TLS.CA, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.Datastore = datastore.Config{Dir: filepath.Join(dir, "ds"), Candidate: datastore.At("192.0.2.1")}
	got := &state.Presence{Found: state.Found{Handed: &state.Handed{Sealed: []byte("for a key that is gone")}}}
	carries := &carrying{self: &self{config: c}, joined: &joined{store: store, presence: got}, out: &Outcome{}}
	wants := &render.Catalog{Inventory: render.Inventory{"web1": {Name: "web1"}}}
	wants.Fleet.Config.DataStore.Count = 1
	carries.compiled(&state.Version{ID: "v"}, wants)
	carries.tend(t.Context(), true)
	if said := saidBy(carries.out, nil); !strings.Contains(said, "the fleet's datastore: what this host got to carry the datastore: ") {
		t.Errorf("%q", said)
	}
	d, err := store.Datastores.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.Carriers["web1"].Recipient == "" {
		t.Errorf("it offers nothing: %+v", d.Carriers)
	}
}
