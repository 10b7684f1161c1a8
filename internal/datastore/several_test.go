package datastore

import (
	"os"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/internal/tier"
	"github.com/pullet/pullet/state"
)

// revokedIn is how long it takes at most until a host that was shut out is out at each member.
const revokedIn = 3 * time.Second

// TestSeveralMembers: at each of several members hosts join, and who is revoked is out at each of them within a moment,
// on open connections, too. Certificates are renewed whoever leads.
func TestSeveralMembers(t *testing.T) {
	t.Parallel()
	tier.Long(t, "three members come one behind the other")
	c := clustered(t, "db2", "db3")
	names := []string{"db1", "db2", "db3"}
	c.wants("db1", wanted(1, 3, names...))
	c.becomes("db1 db2 db3")
	for _, name := range names {
		c.until(name+" opens its door", func() bool {
			_, err := os.Stat(c.hosts[name].DoorSocket())
			return err == nil
		})
	}
	admin := c.store("admin")
	c.rests(admin)
	for _, name := range names {
		at := "at-" + name
		token := c.invited(admin, at, authority.Node, time.Now().Add(time.Hour))
		key, csr, err := authority.Request()
		c.must(err)
		asked := authority.Asked{Token: token, Request: string(csr)}
		a, err := authority.AskInside(t.Context(), c.hosts[name].DoorSocket(), asked)
		c.must(err)
		c.credentials[at] = append(key, a.Certificate...)
		if _, err := authority.AskInside(t.Context(), c.hosts[name].DoorSocket(), asked); err == nil {
			t.Error("a token was used twice at ", name)
		}
	}
	held, watches := map[string]*clientv3.Client{}, map[string]clientv3.WatchChan{}
	for _, name := range names {
		client, err := c.connectTo(c.hosts[name].Endpoint(), c.credentials["at-db2"])
		c.must(err)
		defer client.Close()
		held[name] = client
		watches[name] = client.Watch(t.Context(), "/pullet/prod/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
		if w := <-watches[name]; w.Err() != nil {
			t.Fatal(name, w.Err())
		}
	}
	c.must(admin.Identities.Revoke(t.Context(), "at-db2"))
	end := time.After(patience.Stretch(revokedIn))
	for _, name := range names {
		for ended := false; !ended; {
			select {
			case w, open := <-watches[name]:
				ended = !open || w.Err() != nil
			case <-end:
				t.Fatal("it still watches at ", name)
			}
		}
		_, err := held[name].Get(t.Context(), "/pullet/prod/current_version")
		wantError(t, "reads at "+name, err, "permission denied")
	}

	host := c.store("at-db1")
	for range 2 {
		c.kill(c.leader())
		_, csr, err := authority.Request()
		c.must(err)
		got, err := c.members(t.Context())
		c.must(err)
		host.Client.SetEndpoints(got.endpoints...)
		before, _, err := host.Identities.Issued(t.Context(), "at-db1")
		c.must(err)
		c.must(host.Identities.Ask(t.Context(), "at-db1", state.Request{CSR: string(csr)}))
		c.until("its certificate is renewed", func() bool {
			now, _, err := host.Identities.Issued(t.Context(), "at-db1")
			return err == nil && len(now.Serials) == len(before.Serials)+1
		})
		for _, name := range names {
			if !c.hosts[name].alive() {
				c.start(name)
			}
		}
		c.becomes("db1 db2 db3")
	}
}

// rests waits until nothing is written any more: the members look at each other all the time, and what they find is the
// same.
func (c *cluster) rests(s *state.Store) {
	c.Helper()
	const looks = 2 * time.Second // ten of each member
	var before int64
	var since time.Time
	c.until("an idle datastore is not written to", func() bool {
		now, err := s.Client.Get(c.Context(), "/pullet/prod/authority")
		c.must(err)
		if now.Header.Revision != before {
			before, since = now.Header.Revision, time.Now()
		}
		return time.Since(since) > looks
	})
}

// alive reports a host whose member runs.
func (h *carrier) alive() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.ended:
		return false
	default:
		return true
	}
}
