package datastore

import (
	"testing"
	"time"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/state"
)

// second is a keeper beside the one that serves, such as that of a member which does not know yet that another one
// leads.
func (f *fleet) second() *keeper {
	f.Helper()
	store := f.keeperStore()
	k := &keeper{Options: f.Options, guard: newGuard(), store: store, users: users{store.Client, fleetName}}
	keys, err := readKeys(f.Config, fleetName)
	f.must(err)
	keys.Dir = f.TempDir() // what it writes about who was revoked is its own
	k.keys, k.Dir = keys, keys.Dir
	return k
}

// TestTwoKeepers: a keeper that decides from what it read before another one changed it does nothing: nobody who was
// revoked comes back, and no certificate is forgotten that has to be revoked one day.
func TestTwoKeepers(t *testing.T) {
	t.Parallel()
	f := created(t)
	s, late, now := f.store("admin"), f.second(), time.Now()
	for _, name := range []string{"web1", "web2", "web3"} {
		f.join(s, name, authority.Node)
	}
	before, err := s.Identities.All(t.Context())
	f.must(err)
	_, csr, err := authority.Request()
	f.must(err)
	const changed = "another member of the datastore changed the certificates of "

	before.Requests["web1"] = state.Request{CSR: string(csr)}
	f.must(s.Identities.Revoke(t.Context(), "web1"))
	f.must(s.Identities.AwaitRevoked(t.Context(), "web1"))
	wantError(t, "a certificate for who was revoked", late.issue(t.Context(), "web1", before, now), changed+"web1")
	wantError(t, "what who was revoked uses", rotation{late}.confirm(t.Context(), "web1", before), changed+"web1")

	host := f.store("web2")
	f.must(host.Identities.Ask(t.Context(), "web2", state.Request{CSR: string(csr)}))
	var has state.Identity
	f.until("web2 has two certificates", func() bool {
		has, _, err = s.Identities.Issued(t.Context(), "web2")
		return err == nil && len(has.Serials) == 2
	})
	before.Requests["web2"] = before.Requests["web1"]
	wantError(t, "one more", late.issue(t.Context(), "web2", before, now), changed+"web2")
	wantError(t, "its end", late.strike(t.Context(), "web2", before), changed+"web2")

	f.join(s, "web3", authority.Node)
	next, err := late.keys.certificate("web3", state.Identity{Kind: authority.Node}, string(csr), now)
	f.must(err)
	wantError(t, "at two doors", doors{late}.enter(t.Context(), "web3", next, before, now), "invite it again")

	f.must(s.Identities.Revoke(t.Context(), "web2"))
	f.must(s.Identities.AwaitRevoked(t.Context(), "web2"))
	after, err := s.Identities.All(t.Context())
	f.must(err)
	for _, one := range has.Serials {
		if _, revoked := after.Revoked[one.Number]; !revoked {
			t.Error("it was forgotten: ", one.Number)
		}
	}
	if _, back := after.Identities["web1"]; back {
		t.Error("web1 is back")
	}
	f.wantUsers(s)
}

// wantUsers waits until those on record are the users of etcd.
func (f *fleet) wantUsers(s *state.Store) {
	f.Helper()
	f.until("those on record are the users", func() bool {
		users, err := users{f.keeperStore().Client, fleetName}.list(f.Context())
		c, failed := s.Identities.All(f.Context())
		return err == nil && failed == nil && len(users) == len(c.Identities)
	})
}
