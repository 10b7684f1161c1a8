package agent

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/event/webhook"
	"github.com/pullet/pullet/internal/freeport"
	"github.com/pullet/pullet/state"
)

// TestListenConfig: what is wrong with where an agent listens, and with its webhooks, is said when they are read.
func TestListenConfig(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"listen: '127.0.0.1:8642'": "", "listen: '[::1]:0'": "", "listen: ':8642', tls: {cert: a, key: b}": "",
		"webhooks: [{name: a, type: json, tokenFile: b, event: a/b}]": "agent.listen is missing: where webhooks come to, such as 127.0.0.1:8642",
		"tls: {cert: a, key: b}":                "agent.listen is missing",
		"metrics: {tokenFile: a}":               "agent.listen is missing: where metrics are read, such as 127.0.0.1:8642",
		"metrics: {textfile: /a/pullet.prom}":   "",
		"metrics: {textfile: pullet.prom}":      "agent.metrics.textfile: pullet.prom: give an absolute path, such as /var/lib/prometheus/node-exporter/pullet.prom",
		"metrics: {textfile: /a/pullet.txt}":    "agent.metrics.textfile: /a/pullet.txt: node exporter reads only files whose names end in .prom",
		"listen: 127.0.0.1":                     `agent.listen: "127.0.0.1" is not an address with a port, such as 127.0.0.1:8642`,
		"listen: ':8642'":                       "agent.listen: :8642 can be reached from elsewhere: give agent.tls, or listen on 127.0.0.1",
		"listen: 'localhost:8642'":              "agent.listen: localhost:8642 can be reached from elsewhere",
		"listen: '192.0.2.1:8642'":              "agent.listen: 192.0.2.1:8642 can be reached from elsewhere",
		"listen: '127.0.0.1:1', tls: {cert: a}": "agent.tls: cert and key belong together",
		"listen: '127.0.0.1:1', webhooks: [{}]": `agent.webhooks: webhook "": name: use letters, digits`,
		"listen: '127.0.0.1:1', webhooks: [{name: a, type: github, secretFile: b, repository: mian}]": `agent.webhooks: webhook a: repository: there is no "mian": use main`,
		"listen: '127.0.0.1:1', webhooks: [{name: a, type: alertmanager}]":                            "agent.webhooks: webhook a: tokenFile is missing",
	} {
		file := filepath.Join(t.TempDir(), "pullet.yaml")
		if err := os.WriteFile(file, []byte(repositories+"node: {name: web1}\nagent: {"+text+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := ReadConfig(file, t.TempDir())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if err == nil && c.Agent.TLS.Cert != "" && !filepath.IsAbs(c.Agent.TLS.Cert) {
			t.Errorf("%+v", c.Agent.TLS)
		}
	}
}

// listens gives a host an address and a hook whose token is in a file.
func (h *host) listens() {
	h.t.Helper()
	address, err := freeport.Address()
	if err != nil {
		h.t.Fatal(err)
	}
	h.write("token", "0123456789abcdef")
	h.Agent.Listen = address
	h.Agent.Webhooks = []webhook.Hook{{Name: "door", Type: "json", TokenFile: filepath.Join(h.home, "token"), Event: "door/opened"}}
}

// TestListenErrors: an agent that cannot listen says so at its start, and a configuration with which it could not is
// not taken.
func TestListenErrors(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.listens()
	taken, err := net.Listen("tcp", h.Agent.Listen)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	tries := func(want string) {
		t.Helper()
		a, err := New(h.Config, "test", h.entry())
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		_, err = a.listen()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if err := a.CanListen(""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	tries("agent.listen: another program listens at " + h.Agent.Listen + ": find it with ss -ltnp, or give another port")
	h.Agent.TLS = Served{Cert: filepath.Join(h.home, "token"), Key: filepath.Join(h.home, "token")}
	tries("agent.tls: tls: failed to find any PEM data")
	h.write("token", "short")
	tries("agent.webhooks: webhook door: a secret in " + filepath.Join(h.home, "token") + " has 5 characters")
	if err := os.Chmod(filepath.Join(h.home, "token"), 0o644); err != nil {
		t.Fatal(err)
	}
	tries("are open to others (mode 0644): chmod 600")
	if err := os.Chmod(filepath.Join(h.home, "token"), 0o666); err != nil {
		t.Fatal(err)
	}
	tries("can be written by everybody (mode 0666): chmod o-w")
}

// certify writes a certificate for 127.0.0.1 and its key.
func (h *host) certify(serial int64) *x509.CertPool {
	h.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		h.t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "web1"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		h.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		h.t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	h.write("cert", string(cert))
	h.write("key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}

// TestListenTLS: an agent serves its hooks over TLS with the certificate that is in the files now, and with the last
// one while they do not fit together. Without TLS it is silent. Its end is the end of that.
func TestListenTLS(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.listens()
	h.Agent.TLS = Served{Cert: filepath.Join(h.home, "cert"), Key: filepath.Join(h.home, "key")}
	first := h.certify(1)
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	closes, err := a.listen()
	if err != nil {
		t.Fatal(err)
	}
	post := func(url string, pool *x509.CertPool, token string) (int, error) {
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}, Timeout: time.Minute}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	url := "https://" + h.Agent.Listen + webhook.Path + "door"
	if code, err := post(url, first, "wrong"); code != 401 || err != nil {
		t.Error(code, err)
	}
	if code, err := post("http"+strings.TrimPrefix(url, "https"), first, "0123456789abcdef"); code != 400 || err != nil {
		t.Error(code, err) // the server says that it speaks TLS
	}
	h.write("cert", "x")
	if code, err := post(url, first, "wrong"); code != 401 || err != nil {
		t.Error(code, err)
	}
	second := h.certify(2)
	if code, err := post(url, second, "wrong"); code != 401 || err != nil {
		t.Error(code, err)
	}
	if _, err := post(url, first, "wrong"); err == nil {
		t.Error("the certificate of before counts")
	}
	if err := a.CanListen(h.Agent.Listen); err != nil {
		t.Error(err)
	}
	closes()
	if code, err := post(url, second, "wrong"); err == nil {
		t.Error(code)
	}
}

// TestRaise: an event is kept with an id, its host and its time.
func TestRaise(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	events := []state.Event{{Name: "a"}, {Name: "b"}}
	if err := a.raise(t.Context(), events...); err != nil { // no store is open: they stay on the host
		t.Fatal(err)
	}
	for _, e := range events {
		if err := e.Check(); err != nil || e.By != "web1" || time.Since(e.Time) > time.Minute {
			t.Errorf("%+v %v", e, err)
		}
	}
	if events[0].ID == events[1].ID {
		t.Errorf("%s is the id of two", events[0].ID)
	}
}

// TestSlowClients: whoever sends nothing, or a header without end, loses the connection, and others are heard.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.listens()
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	closes, err := a.listen()
	if err != nil {
		t.Fatal(err)
	}
	defer closes()
	var idle []net.Conn
	for range maxConnections {
		c, err := net.Dial("tcp", h.Agent.Listen)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		idle = append(idle, c)
	}
	began := time.Now()
	answer, err := (&http.Client{Timeout: time.Minute}).Get("http://" + h.Agent.Listen + "/")
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode != 404 || time.Since(began) < 4*time.Second {
		t.Error(answer.StatusCode, err, time.Since(began))
	}
	buffer := make([]byte, 1)
	for _, c := range idle {
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(buffer); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	c, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", h.Agent.Listen)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() { _, _ = c.Write(bytes.Repeat([]byte("X"), 1<<20)) }()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(buffer); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}
