package datastore

import (
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/tier"
	"github.com/pullet/pullet/state"
)

// TestHostileCarriers: what a host offers keeps no other host from becoming a member: the address of a member, an
// invalid key, an invalid address. The status names what is wrong. A host that has the address of a member that
// is lost takes its place.
func TestHostileCarriers(t *testing.T) {
	t.Parallel()
	tier.Long(t, "a member is replaced, which takes a while")
	c := clustered(t, "db2", "db3", "db4", "db5", "db6")
	offer := func(name string, change func(*state.Carrier)) {
		t.Helper()
		o, err := c.hosts[name].Offer(c.hosts[name].Addresses)
		c.must(err)
		change(&o)
		_, err = c.client(name).Do(t.Context(), state.Put("/pullet/prod/datastore/host/"+name, &o))
		c.must(err)
	}
	first := c.hosts["db1"].peer()
	offer("db2", func(o *state.Carrier) { o.Peer = first })
	offer("db3", func(o *state.Carrier) { o.Recipient = "age1nobody" })
	offer("db4", func(o *state.Carrier) { o.Peer = "127.0.0.1:+80" })
	c.wants("db1", wanted(1, 3, "db1", "db2", "db3", "db4"))
	waits := func(words string) {
		t.Helper()
		admin := c.store("admin")
		c.until("it waits: "+words, func() bool {
			d, err := admin.Datastores.All(t.Context())
			return err == nil && strings.Contains(d.Steps.Waits, words)
		})
	}
	waits("it needs 2 more hosts, and no further host that may carry it is ready; db2 offers the address of db1; db3: its recipient: ")
	c.wants("db1", wanted(2, 3, "db1", "db2", "db3", "db5", "db6"))
	c.becomes("db1 db5 db6")
	c.keeps()

	c.kill("db1")
	c.hosts["db2"].Peer = first
	c.becomes("db2 db5 db6")
	c.keeps()
}

// TestNobodyElseWrites: what members are handed, and who they are to be, the keepers alone write. A host writes its own
// offer.
func TestNobodyElseWrites(t *testing.T) {
	t.Parallel()
	f := created(t)
	f.join(f.store("admin"), "web1", authority.Node)
	for _, name := range []string{"web1", "admin"} {
		client := f.client(name)
		for _, key := range []string{"wanted", "handed/web1", "reach/db1", "turn", "steps", "rotation"} {
			_, err := client.Put(t.Context(), "/pullet/prod/datastore/"+key, "{}")
			wantError(t, name+" writes "+key, err, "permission denied")
			_, err = client.Delete(t.Context(), "/pullet/prod/datastore/"+key)
			wantError(t, name+" removes "+key, err, "permission denied")
		}
	}
	_, err := f.client("web1").Put(t.Context(), "/pullet/prod/datastore/host/db1", "{}")
	wantError(t, "the offer of another host", err, "permission denied")
	_, err = f.client("web1").Put(t.Context(), "/pullet/prod/datastore/moving/db1", "")
	wantError(t, "a move", err, "permission denied")
	_, err = f.client("web1").Put(t.Context(), "/pullet/prod/datastore/host/web1", "{}")
	f.must(err)
	_, err = f.client("admin").Delete(t.Context(), "/pullet/prod/datastore/", clientv3.WithPrefix())
	wantError(t, "all of it", err, "permission denied")
}
