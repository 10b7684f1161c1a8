package datastore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/freeport"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/state"
)

// fleet is a datastore that a test made, with the credentials of whom it let in: the node db1 and the operator admin
// from the start.
type fleet struct {
	*testing.T
	Options
	bundle      []byte            // what hosts believe that do not follow
	credentials map[string][]byte // by name: a key and the chain behind it
	mu          sync.Mutex        // of the following
	followed    []byte            // what hosts believe that follow the fleet's authority; nothing: as the others
	end         func()            // of what serves it
}

const fleetName = "prod"

// created makes a datastore and serves it until the test ends.
func created(t *testing.T) *fleet {
	t.Helper()
	f := made(t)
	f.serve()
	return f
}

// made makes a datastore that nobody serves.
func made(t *testing.T) *fleet {
	t.Helper()
	dir, err := os.MkdirTemp("", "ds") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	log := logrus.New()
	log.Out = io.Discard
	f := &fleet{T: t, credentials: map[string][]byte{}, Options: Options{
		Config: Config{Dir: filepath.Join(dir, "d"), Addresses: Addresses{Client: freeAddress(t), Door: freeAddress(t), Peer: freeAddress(t)}},
		Fleet:  fleetName, Node: "db1", Log: logrus.NewEntry(log),
		Invited: func(state.Invitation, *authority.Answer) error { return nil },
	}}
	n, err := Create(f.Config, fleetName, time.Now())
	f.must(err)
	for name, kind := range map[string]authority.Kind{"db1": authority.Node, "admin": authority.Operator} {
		key, csr, err := authority.Request()
		f.must(err)
		a, err := n.Admit(state.Invitation{Invitation: authority.Invitation{Name: name, Kind: kind}}, csr)
		f.must(err)
		f.credentials[name], f.bundle = append(key, a.Certificate...), []byte(a.Bundle)
	}
	f.must(n.Finish())
	return f
}

func (f *fleet) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// serve serves the datastore, until end is called or the test ends.
func (f *fleet) serve() {
	f.Helper()
	_ = os.Remove(f.DoorSocket()) // of one that was killed
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, f.Options) }()
	f.end = func() {
		cancel()
		if err, running := <-ended; running && err != nil {
			f.Error(err)
		}
	}
	f.Cleanup(func() { f.end() })
	f.until("the door is open", func() bool {
		select {
		case err := <-ended:
			close(ended)
			f.Fatal("the datastore ended: ", err)
		default:
		}
		_, err := os.Stat(f.DoorSocket())
		return err == nil
	})
	end := f.end
	f.end = func() { end(); f.end = func() {} }
}

// until waits for a condition.
func (f *fleet) until(what string, holds func() bool) {
	f.Helper()
	patience.UntilWithin(f.T, time.Minute, what, holds)
}

// client is a client of etcd with somebody's certificate, and with nothing of pullet's between them.
func (f *fleet) client(name string) *clientv3.Client {
	f.Helper()
	c, err := f.connect(f.credentials[name])
	f.must(err)
	f.Cleanup(func() { _ = c.Close() })
	return c
}

func (f *fleet) connect(credentials []byte) (*clientv3.Client, error) {
	return f.connectTo(f.Endpoint(), credentials)
}

// connectTo connects to one of several members.
func (f *fleet) connectTo(endpoint string, credentials []byte) (*clientv3.Client, error) {
	pair, err := tls.X509KeyPair(credentials, credentials)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(f.believed())
	return clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint}, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
		TLS: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12},
	})
}

// believed is what hosts believe.
func (f *fleet) believed() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followed != nil {
		return f.followed
	}
	return f.bundle
}

// keeperStore is the record as the keeper opens it.
func (f *fleet) keeperStore() *state.Store {
	f.Helper()
	text, err := os.ReadFile(f.file(keeperFile))
	f.must(err)
	f.credentials["root"] = text
	return f.store("root")
}

// store is the fleet's record as somebody opens it.
func (f *fleet) store(name string) *state.Store {
	f.Helper()
	file := filepath.Join(f.TempDir(), "host.pem")
	ca := file + ".ca"
	f.must(os.WriteFile(ca, f.believed(), 0o600))
	f.must(os.WriteFile(file, f.credentials[name], 0o600))
	var s *state.Store
	patience.Succeeds(f.T, "open the record as "+name, func() (err error) { // its member may start again at the moment
		s, err = state.Open(f.Context(), state.Config{
			Endpoints: []string{f.Endpoint()}, Fleet: fleetName, TLS: state.TLS{CA: ca, Cert: file, Key: file},
		})
		return err
	})
	f.Cleanup(func() { _ = s.Close() })
	return s
}

// invited is the token of an invitation that is on record.
func (f *fleet) invited(s *state.Store, name string, kind authority.Kind, until time.Time) string {
	f.Helper()
	i, token, err := authority.Invite(name, kind, "admin", until.UTC())
	f.must(err)
	f.must(s.Identities.Invite(f.Context(), state.Invitation{Invitation: i}))
	return token
}

// asks asks at the door of the host, with a new key.
func (f *fleet) asks(token string) (credentials []byte, err error) {
	f.Helper()
	key, csr, err := authority.Request()
	f.must(err)
	a, err := authority.AskInside(f.Context(), f.DoorSocket(), authority.Asked{Token: token, Request: string(csr)})
	return append(key, a.Certificate...), err
}

// join lets somebody in.
func (f *fleet) join(s *state.Store, name string, kind authority.Kind) {
	f.Helper()
	credentials, err := f.asks(f.invited(s, name, kind, time.Now().Add(time.Hour)))
	f.must(err)
	f.credentials[name] = credentials
}

// wantError fails unless the error has these words.
func wantError(t *testing.T, what string, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: the error is %v, and has to have %q", what, err, words)
	}
}

// freeAddress is one on this host at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	at, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return at
}
