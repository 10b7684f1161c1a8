package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

// TestDoctorNamesClocks: nodes whose clocks are a day off, either way, are named; when it is most of them, this clock
// is.
func TestDoctorNamesClocks(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name string
		off  []time.Duration // of the clocks of the others
		want []string
	}{
		{"all is well", []time.Duration{0, 0, -time.Hour}, nil},
		{"one is ahead", []time.Duration{24 * time.Hour, 0, 0}, []string{"seen in the future: n0 (2", "their clocks are ahead: set them there"}},
		{"one is behind", []time.Duration{-24 * time.Hour, 0, 0}, []string{"answer and were seen last in the past: n0 (about 24h)", "their clocks are behind: set them there"}},
		{"this one is behind", []time.Duration{24 * time.Hour, 24 * time.Hour, 0}, []string{"seen in the future: n0 (2", "this clock is behind, or theirs are ahead", "chronyc makestep"}},
		{"this one is ahead", []time.Duration{-24 * time.Hour, -24 * time.Hour, -24 * time.Hour}, []string{"this clock is ahead, or theirs are behind", "chronyc makestep"}},
	} {
		s, err := state.Open(ctx, state.Config{Fleet: "f", Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		for i, off := range append(c.off, 0) {
			n := state.Node{Name: fmt.Sprint("n", i), LastSeen: time.Now().Add(off)}
			if _, err := s.Presences.Register(ctx, n, state.Alive{Owner: n.Name}, nil, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		var text strings.Builder
		for _, f := range clocks(ctx, s, fmt.Sprint("n", len(c.off))) {
			if f.State == bad {
				fmt.Fprintf(&text, "%s; %s\n", f.What, f.Do)
			}
		}
		for _, want := range c.want {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s: there is no %q in %q", c.name, want, &text)
			}
		}
		if c.want == nil && text.Len() > 0 {
			t.Errorf("%s: %s", c.name, &text)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDoctorNamesTheClockOfCertificates: a server whose certificate does not hold yet, or any longer, is told apart
// from one that is away, for the repository and for etcd.
func TestDoctorNamesTheClockOfCertificates(t *testing.T) {
	t.Parallel()
	cert, authority := certificateOf(t, time.Now().Add(24*time.Hour)) // for a clock that is a day behind
	server := httptest.NewUnstartedServer(nil)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	ca, config := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "pullet.yaml")
	text := fmt.Sprintf("node: {name: web1}\nrepositories: [{name: main, url: %q}]\netcd: {endpoints: [%q], tls: {ca: %s}}\npaths: {state: %s}\n",
		server.URL+"/state.git", server.URL, ca, filepath.Join(dir, "state"))
	for name, data := range map[string][]byte{ca: authority, config: []byte(text)} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"doctor", "--config", config, "--root", dir}, &out, &errs, nil); code != 1 {
		t.Errorf("exit code %d: %s", code, &errs)
	}
	for _, check := range []string{"repositories", "etcd"} {
		found := false
		for line := range strings.Lines(out.String()) {
			found = found || strings.HasPrefix(line, check+" ") && strings.Contains(line, "not yet valid") && strings.Contains(line, "by this clock: where that is wrong, set it")
		}
		if !found {
			t.Errorf("%s: nothing of the clock in\n%s", check, &out)
		}
	}
}

// certificateOf is a server's certificate that holds from a time on, and its authority: itself.
func certificateOf(t *testing.T, from time.Time) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: from.Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
