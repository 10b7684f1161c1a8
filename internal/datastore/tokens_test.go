package datastore

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/state"
)

// TestTokens: a token lets one in once, in time, and as what an operator may invite.
func TestTokens(t *testing.T) {
	t.Parallel()
	f := created(t)
	s := f.store("admin")
	later := time.Now().Add(time.Hour)

	token := f.invited(s, "web1", authority.Node, later)
	var wait sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wait.Go(func() { _, errs[i] = f.asks(token) })
	}
	wait.Wait()
	if won := len(slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err != nil })); won != 1 {
		t.Errorf("%d of several at once got in: %v", won, errs)
	}
	_, err := f.asks(token)
	wantError(t, "used twice", err, "the token was used")

	_, err = f.asks(f.invited(s, "web2", authority.Node, time.Now().Add(-time.Second)))
	wantError(t, "late", err, "ended")
	_, other, err := authority.Invite("web2", authority.Node, "eve", later)
	f.must(err)
	_, err = f.asks(other)
	wantError(t, "of another fleet", err, "of another fleet")
	_, err = f.asks(f.invited(s, "admin", authority.Node, later))
	wantError(t, "the name of an operator", err, "admin is the name of operator already")
	f.join(s, "web1", authority.Node)
}

// TestForgedInvitations: what an operator writes past pullet makes nobody a keeper or a server.
func TestForgedInvitations(t *testing.T) {
	t.Parallel()
	f := created(t)
	s, c := f.store("admin"), f.client("admin")
	for _, forged := range []authority.Invitation{
		{Name: "root", Kind: authority.Keeper},
		{Name: "root", Kind: authority.Operator},
		{Name: "etcd2", Kind: authority.Server},
		{Name: "x/../../y", Kind: authority.Node},
		{Name: "web1", Kind: "x"},
	} {
		good, token, err := authority.Invite("any", authority.Node, "admin", time.Now().Add(time.Hour).UTC())
		f.must(err)
		forged.ID, forged.Hash, forged.Until = good.ID, good.Hash, good.Until
		_, err = c.Do(t.Context(), state.Put("/pullet/prod/invitation/"+good.ID, &state.Invitation{Invitation: forged}))
		f.must(err)
		if _, err := f.asks(token); err == nil {
			t.Errorf("%s %s got in", forged.Kind, forged.Name)
		}
	}
	all, err := s.Identities.All(t.Context())
	f.must(err)
	if len(all.Identities) != 2 {
		t.Error(all.Identities)
	}
}

// TestRequests: a request that says nothing useful gets nothing, and takes nothing from others.
func TestRequests(t *testing.T) {
	t.Parallel()
	f := created(t)
	s, c := f.store("admin"), f.client("db1")
	ask := func(csr string) state.Identity {
		t.Helper()
		before, _, err := s.Identities.Issued(t.Context(), "db1")
		f.must(err)
		_, err = c.Do(t.Context(), state.Put("/pullet/prod/request/db1", &state.Request{CSR: csr}))
		f.must(err)
		f.until("the request is answered", func() bool {
			got, err := c.Get(t.Context(), "/pullet/prod/request/db1", clientv3.WithCountOnly())
			return err == nil && got.Count == 0
		})
		after, _, err := s.Identities.Issued(t.Context(), "db1")
		f.must(err)
		if len(after.Serials)-len(before.Serials) > 1 {
			t.Error(len(before.Serials), len(after.Serials))
		}
		return after
	}
	_, good, err := authority.Request()
	f.must(err)
	for what, csr := range map[string]string{
		"nothing": "", "garbage": "x", "two": string(good) + string(good), "another subject": forRoot(f),
		"long": strings.Repeat("\n", 20<<10) + string(good),
	} {
		i := ask(csr)
		if is, err := authority.Inspect([]byte(i.Certificate)); err != nil || is.Name != "db1" || is.Kind != authority.Node {
			t.Error(what, is, err)
		}
		if want := map[bool]int{true: 2, false: 1}[what == "another subject" || len(i.Serials) == 2]; len(i.Serials) != want {
			t.Errorf("%s: %d certificates", what, len(i.Serials))
		}
	}
	once, twice := ask(string(good)), ask(string(good))
	if again := ask(string(good)); len(once.Serials) != len(again.Serials) || again.Certificate != twice.Certificate {
		t.Error("a request that was answered got another certificate")
	}
	// One that cannot be read at all stays, and the keeper goes on.
	_, err = c.Put(t.Context(), "/pullet/prod/request/db1", "{")
	f.must(err)
	f.join(s, "web1", authority.Node)
}

// forRoot is a request that names the keeper, for a key of another kind.
func forRoot(f *fleet) string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	f.must(err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{"root"}}, key)
	f.must(err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// TestFlood: a host that asks without end gets a bounded number of certificates, and can be revoked all the same.
func TestFlood(t *testing.T) {
	t.Parallel()
	f := made(t)
	k, err := readKeys(f.Config, fleetName)
	f.must(err)
	_, csr, err := authority.Request()
	f.must(err)
	i, now := state.Identity{Kind: authority.Node}, time.Now()
	for n := range mostValid {
		if i, err = k.certificate("db1", i, string(csr), now); err != nil {
			t.Fatal(n, err)
		}
	}
	_, err = k.certificate("db1", i, string(csr), now)
	wantError(t, "one more", err, "invite it again")
	if i, err = k.certificate("db1", i, string(csr), now.Add(authority.DefaultLife+time.Hour)); err != nil || len(i.Serials) != 1 {
		t.Error(len(i.Serials), err)
	}
	f.serve()
	keeper := f.keeperStore()
	for n := range 300 { // of a keeper that did not count
		i.Serials = append(i.Serials, state.Serial{Number: fmt.Sprintf("%x", n+1), Until: now.Add(time.Hour)})
	}
	_, err = keeper.Client.Do(t.Context(), state.Put("/pullet/prod/identity/db1", &i))
	f.must(err)
	s := f.store("admin")
	f.must(s.Identities.Revoke(t.Context(), "db1"))
	f.must(s.Identities.AwaitRevoked(t.Context(), "db1"))
	all, err := s.Identities.All(t.Context())
	f.must(err)
	if _, there := all.Identities["db1"]; there || len(all.Revoked) < 300 {
		t.Error(there, len(all.Revoked))
	}
}
