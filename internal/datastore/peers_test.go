package datastore

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/authority"
)

// peerClient is somebody who asks the port for other members, from one address of this machine.
func (f *fleet) peerClient(credentials []byte, from string) *http.Client {
	f.Helper()
	c := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // who attacks does not care
	if credentials != nil {
		pair, err := tls.X509KeyPair(credentials, credentials)
		f.must(err)
		c.Certificates = []tls.Certificate{pair}
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: c, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return d.DialContext(ctx, network, addr)
		},
	}}
}

// TestPeerPort: at the port for other members those with a certificate of the datastore alone are heard, from whatever
// address they come. What the datastore has for its peers, and its keeper's calls, are closed to nodes and operators.
func TestPeerPort(t *testing.T) {
	t.Parallel()
	f := made(t)
	f.must(os.WriteFile(f.file(clusterFile), []byte("db1="+f.peerURL()+"\n"), 0o600))
	config, err := f.member("db1")
	f.must(err)
	if !config.PeerTLSInfo.ClientCertAuth || config.PeerTLSInfo.CRLFile == "" {
		t.Error(config.PeerTLSInfo)
	}
	f.must(os.Remove(f.file(clusterFile)))
	c := &cluster{f, map[string]*carrier{"db1": {Candidate: Candidate{f.Config}, name: "db1", log: t.TempDir() + "/log"}}}
	c.start("db1")
	f.until("it serves", func() bool { _, err := os.Stat(f.DoorSocket()); return err == nil })
	c.listens("db1", true)
	server, err := os.ReadFile(f.file(serverFile))
	f.must(err)
	keeper, err := os.ReadFile(f.file(keeperFile))
	f.must(err)
	other, err := authority.Create(fleetName, time.Now())
	f.must(err)
	key, csr, err := authority.Request()
	f.must(err)
	datastores := authority.Subject{Fleet: fleetName, Name: authority.ServerName, Kind: authority.Server}
	chain, err := other.Issue(csr, datastores, []string{"127.0.0.1"}, time.Hour, time.Now())
	f.must(err)
	foreign := append(key, chain...)
	for what, credentials := range map[string][]byte{
		"nobody": nil, "a node": f.credentials["db1"], "an operator": f.credentials["admin"], "a keeper": keeper,
		"another authority": foreign,
	} {
		for _, path := range []string{"/members", "/raft/probing", "/version"} {
			if got, err := f.peerClient(credentials, "127.0.0.1").Get(f.peerURL() + path); err == nil {
				text, _ := io.ReadAll(got.Body)
				_ = got.Body.Close()
				t.Errorf("%s gets %s: %s %s", what, path, got.Status, text)
			}
		}
	}
	for _, from := range []string{"127.0.0.1", "127.0.0.9"} { // a host has addresses of which it does not know
		got, err := f.peerClient(server, from).Get(f.peerURL() + "/members")
		if err != nil {
			t.Error("a member at ", from, ": ", err)
			continue
		}
		_ = got.Body.Close()
	}
}
