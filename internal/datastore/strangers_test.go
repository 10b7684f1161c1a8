package datastore

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/authority"
)

// signed is a key with a certificate of an authority, for a while.
func (f *fleet) signed(a *authority.Authority, s authority.Subject, life time.Duration) []byte {
	f.Helper()
	key, csr, err := authority.Request()
	f.must(err)
	chain, err := a.Issue(csr, s, nil, life, time.Now())
	f.must(err)
	return append(key, chain...)
}

// TestStrangers: who has no certificate of the fleet's authority does not get as far as etcd, and who has one that
// nobody knows may do nothing.
func TestStrangers(t *testing.T) {
	t.Parallel()
	f := created(t)
	other, err := authority.Create(fleetName, time.Now())
	f.must(err)
	k, err := readKeys(f.Config, fleetName)
	f.must(err)
	server, err := os.ReadFile(f.file(serverFile))
	f.must(err)
	for what, credentials := range map[string][]byte{
		"another authority's keeper": f.signed(other, authority.Subject{Fleet: fleetName, Name: "root", Kind: authority.Keeper}, time.Hour),
		"a node that nobody invited": f.signed(k.authority, authority.Subject{Fleet: fleetName, Name: "ghost", Kind: authority.Node}, time.Hour),
		"the server itself":          server,
	} {
		c, err := f.connect(credentials)
		f.must(err)
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Get(ctx, "/pullet/prod/current_version"); err == nil {
			t.Error(what, "reads")
		}
		if _, err := c.Put(ctx, "/pullet/prod/bell", ""); err == nil {
			t.Error(what, "writes")
		}
	}
	bare := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a stranger does not care
	}}
	for _, path := range []string{"/health", "/metrics", "/version", "/v3/kv/range"} {
		if got, err := bare.Get(f.Endpoint() + path); err == nil {
			t.Error(path, got.Status)
			_ = got.Body.Close()
		}
	}
}

// TestExpired: a connection is worth no more than the certificate with which it was opened.
func TestExpired(t *testing.T) {
	t.Parallel()
	f := created(t)
	k, err := readKeys(f.Config, fleetName)
	f.must(err)
	c, err := f.connect(f.signed(k.authority, authority.Subject{Fleet: fleetName, Name: "db1", Kind: authority.Node}, 3*time.Second))
	f.must(err)
	defer c.Close()
	if _, err := c.Put(t.Context(), "/pullet/prod/bell", ""); err != nil {
		t.Fatal(err)
	}
	watch := c.Watch(t.Context(), "/pullet/prod/", clientv3.WithPrefix())
	f.until("its watch ends", func() bool {
		select {
		case w, open := <-watch:
			return !open || w.Err() != nil
		default:
			return false
		}
	})
	_, err = c.Put(t.Context(), "/pullet/prod/bell", "")
	wantError(t, "writes", err, "permission denied")
}
