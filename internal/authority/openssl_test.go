package authority

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestOpenSSL: another implementation believes what the authority signs and nothing else, and its requests are signed.
func TestOpenSSL(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old := created(t, "prod", now)
	both, err := old.Rotate(now)
	if err != nil {
		t.Fatal(err)
	}
	before := file("before.pem", credentialsOf(t, old, Subject{"prod", "web1", Node}, nil, now))
	server := file("server.pem", credentialsOf(t, both, door1, []string{"door1.example.org", "10.0.0.1"}, now))
	believed, former, strange := file("both.pem", both.Bundle()), file("old.pem", old.Bundle()), file("other.pem", created(t, "prod", now).Bundle())
	for _, c := range []struct {
		what, believed, cert string
		further              []string
		good                 bool
	}{
		{"a client", former, before, []string{"-purpose", "sslclient"}, true},
		{"a client in a rotation", believed, before, []string{"-purpose", "sslclient"}, true},
		{"a server in a rotation", believed, server, []string{"-purpose", "sslserver", "-verify_hostname", "door1.example.org"}, true},
		{"a server by its address", believed, server, []string{"-purpose", "sslserver", "-verify_ip", "10.0.0.1"}, true},
		{"a server as a client", believed, server, []string{"-purpose", "sslclient"}, true},
		{"a server of another address", believed, server, []string{"-verify_ip", "10.0.0.2"}, false},
		{"a client as a server", believed, before, []string{"-purpose", "sslserver"}, false},
		{"a new one by the former authority", former, server, nil, false},
		{"another authority", strange, before, nil, false},
	} {
		args := append([]string{"verify", "-x509_strict", "-CAfile", c.believed}, c.further...)
		out, err := exec.Command("openssl", append(args, c.cert)...).CombinedOutput()
		var exit *exec.ExitError
		if (err == nil) != c.good || err != nil && !errors.As(err, &exit) {
			t.Errorf("%s: %v\n%s", c.what, err, out)
		}
	}
	out, err := exec.Command("openssl", "x509", "-in", server, "-noout", "-subject", "-nameopt", "RFC2253").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "CN=door1,OU=server,O=pullet:prod") {
		t.Errorf("%v: %s", err, out)
	}
	requestsOfOpenSSL(t, dir, old)
}

// requestsOfOpenSSL: requests with openssl's keys and subjects become certificates of whom the caller names.
func requestsOfOpenSSL(t *testing.T, dir string, a *Authority) {
	for kind, c := range map[string]struct {
		options []string
		err     string
	}{
		"P-256":            {[]string{"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"}, ""},
		"Ed25519":          {[]string{"-newkey", "ed25519"}, ""},
		"RSA of 2048 bits": {[]string{"-newkey", "rsa:2048"}, ""},
		"RSA of 1024 bits": {[]string{"-newkey", "rsa:1024"}, "an RSA key of 1024 bits"},
	} {
		args := append([]string{"req", "-new", "-nodes", "-subj", "/CN=root", "-keyout", filepath.Join(dir, "key.pem")}, c.options...)
		command := exec.Command("openssl", args...)
		command.Env = append(os.Environ(), "LC_ALL=C")
		csr, err := command.Output()
		if err != nil {
			t.Fatal(kind, err)
		}
		s := Subject{"prod", "web1", Node}
		chain, err := a.Issue(csr, s, nil, time.Hour, time.Now())
		wantError(t, kind, err, c.err)
		if err == nil {
			if got, err := SubjectOf(first(t, chain)); got != s {
				t.Error(kind, got, err)
			}
		}
	}
}
