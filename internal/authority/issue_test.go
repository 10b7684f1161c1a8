package authority

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestIssueProperty: whatever is signed is believed at any time of its life and at no other one, says the subject and
// the addresses that were asked for, and outlives neither its life nor the authority.
func TestIssueProperty(t *testing.T) {
	a := created(t, "prod", noon)
	end := noon.AddDate(10, 0, 0)
	_, csr, err := Request()
	if err != nil {
		t.Fatal(err)
	}
	serials := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		s := Subject{Fleet: "prod", Name: "root", Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		if s.Kind != Keeper {
			s.Name = rapid.StringMatching(`[a-z]([a-z0-9._-]{0,20}[a-z0-9])?`).Filter(func(name string) bool { return name != "root" }).Draw(t, "name")
		}
		var hosts []string
		if s.Kind == Server {
			hosts = rapid.SliceOfN(rapid.SampledFrom([]string{"etcd-1.example.org", "etcd_2", "10.0.0.1", "::1", "fd00::2"}), 1, 4).Draw(t, "hosts")
		}
		now := noon.Add(time.Duration(rapid.Int64Range(0, int64(end.Sub(noon)/time.Second)-1).Draw(t, "after")) * time.Second)
		life := time.Duration(rapid.Int64Range(1, 20*366*24*3600).Draw(t, "life")) * time.Second
		chain, err := a.Issue(csr, s, hosts, life, now)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Inspect(chain)
		if err != nil || c.Subject != s || !c.NotBefore.Equal(now.Add(-time.Hour)) || serials[c.Serial] {
			t.Fatal(c, err)
		}
		serials[c.Serial] = true
		want := now.Add(life)
		if want.After(end) {
			want = end
		}
		if !c.NotAfter.Equal(want) {
			t.Fatalf("it ends at %s, not at %s", c.NotAfter, want)
		}
		cert, _ := firstCertificate(chain)
		for at, good := range map[time.Time]bool{
			now: true, c.NotAfter: true, c.RenewAt(): true, c.NotAfter.Add(time.Second): false, c.NotBefore.Add(-time.Second): false,
		} {
			if _, err := believe(cert, a.certificates, x509.ExtKeyUsageClientAuth, "", at); (err == nil) != good {
				t.Fatalf("valid at %s of %s to %s: %v", at, c.NotBefore, c.NotAfter, err)
			}
		}
		serves(t, cert, a, hosts, now)
	})
}

// serves checks that a certificate is for these hosts alone, and for a server only with hosts.
func serves(t *rapid.T, cert *x509.Certificate, a *Authority, hosts []string, now time.Time) {
	if cert.IsCA || len(cert.DNSNames)+len(cert.IPAddresses) != len(hosts) {
		t.Fatal(cert.IsCA, cert.DNSNames, cert.IPAddresses)
	}
	for _, host := range []string{"etcd-1.example.org", "etcd_2", "10.0.0.1", "::1", "fd00::2", "other"} {
		_, err := believe(cert, a.certificates, x509.ExtKeyUsageServerAuth, host, now)
		if (err == nil) != slices.Contains(hosts, host) {
			t.Fatalf("%s of %s: %v", host, hosts, err)
		}
	}
}

// TestIssueNearTheEnd: no certificate outlives its authority.
func TestIssueNearTheEnd(t *testing.T) {
	a := created(t, "prod", noon)
	end := noon.AddDate(10, 0, 0)
	for before, want := range map[time.Duration]time.Time{
		DefaultLife + time.Second: end.Add(-time.Second), DefaultLife: end, DefaultLife - time.Second: end, time.Second: end,
	} {
		c, err := Inspect(credentialsOf(t, a, Subject{"prod", "web1", Node}, nil, end.Add(-before)))
		if err != nil || !c.NotAfter.Equal(want) {
			t.Errorf("%s before the end: it is valid until %s, not until %s: %v", before, c.NotAfter, want, err)
		}
	}
}

func TestIssueRefuses(t *testing.T) {
	a := created(t, "prod", noon)
	_, csr, err := Request()
	if err != nil {
		t.Fatal(err)
	}
	node, server := Subject{"prod", "web1", Node}, Subject{"prod", "etcd1", Server}
	for _, c := range []struct {
		what  string
		s     Subject
		hosts []string
		life  time.Duration
		now   time.Time
		err   string
	}{
		{"a node", node, nil, time.Hour, noon, ""},
		{"another fleet", Subject{"test", "web1", Node}, nil, time.Hour, noon, "this is the authority of prod"},
		{"a bad name", Subject{"prod", "root", Node}, nil, time.Hour, noon, "the name of the keeper"},
		{"a node with an address", node, []string{"web1"}, time.Hour, noon, "only a server has addresses"},
		{"a server without one", server, nil, time.Hour, noon, "answers at 0 addresses"},
		{"a server with too many", server, slices.Repeat([]string{"a"}, 101), time.Hour, noon, "answers at 101 addresses"},
		{"a wildcard", server, []string{"*.example.org"}, time.Hour, noon, `answers at "*.example.org"`},
		{"an empty label", server, []string{"a..b"}, time.Hour, noon, `answers at "a..b"`},
		{"a dot at the end", server, []string{"a."}, time.Hour, noon, `answers at "a."`},
		{"a URL", server, []string{"https://a"}, time.Hour, noon, `answers at "https://a"`},
		{"a zone", server, []string{"fe80::1%eth0"}, time.Hour, noon, `answers at "fe80::1%eth0"`},
		{"an empty address", server, []string{""}, time.Hour, noon, `answers at ""`},
		{"no life", node, nil, 0, noon, "valid for some time"},
		{"a life in the past", node, nil, -time.Hour, noon, "valid for some time"},
		{"before the authority", node, nil, time.Hour, noon.Add(-2 * time.Hour), "check the clock"},
		{"after the authority", node, nil, time.Hour, noon.AddDate(10, 0, 0), "rotate it"},
	} {
		_, err := a.Issue(csr, c.s, c.hosts, c.life, c.now)
		wantError(t, c.what, err, c.err)
	}
}

// TestIssueRequests: which requests are signed. Those that are not are the fault of who asks, and said to them.
func TestIssueRequests(t *testing.T) {
	a, s := created(t, "prod", noon), Subject{"prod", "web1", Node}
	key := func(curve elliptic.Curve) crypto.Signer {
		made, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	plain := &x509.CertificateRequest{}
	good := requestOf(t, key(elliptic.P256()), plain)
	block, _ := pem.Decode(good)
	forged := bytes.Clone(block.Bytes)
	forged[len(forged)-1] ^= 1
	for _, c := range []struct {
		what    string
		request []byte
		err     string
	}{
		{"P-256", good, ""},
		{"P-384", requestOf(t, key(elliptic.P384()), plain), ""},
		{"Ed25519", requestOf(t, edKey, plain), ""},
		{"P-224", requestOf(t, key(elliptic.P224()), plain), "a key on P-224: use ECDSA"},
		{"P-521", requestOf(t, key(elliptic.P521()), plain), "a key on P-521: use ECDSA"},
		{"a forged signature", pemOf(requestType, forged), "not signed with its own key"},
		{"nothing", nil, "not one request in PEM"},
		{"two", joined(good, good), "not one request in PEM"},
		{"a certificate", a.Bundle(), "not one request in PEM"},
		{"no DER", pemOf(requestType, []byte("x")), "cannot be read"},
		{"too long", append(bytes.Clone(good), make([]byte, maxRequest)...), "at most 16384 are read"},
	} {
		_, err := a.Issue(c.request, s, nil, time.Hour, noon)
		wantError(t, c.what, err, c.err)
		var refusal *Refusal
		if err != nil && !errors.As(err, &refusal) {
			t.Errorf("%s: %T is not said to who asks", c.what, err)
		}
	}
	for bits, fit := range map[uint]bool{1024: false, 2047: false, 2048: true, 8192: true, 8193: false} {
		if why := unfit(&rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), bits-1), E: 65537}); (why == "") != fit {
			t.Errorf("RSA of %d bits: %q", bits, why)
		}
	}
}

// TestIssueTakesTheKeyAlone: a request that asks to be root, a server or an authority gets what the caller said.
func TestIssueTakesTheKeyAlone(t *testing.T) {
	a := created(t, "prod", noon)
	key, _, err := Request()
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(key)
	parsed, err := parseKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	s := Subject{"prod", "web1", Node}
	chain, err := a.Issue(requestOf(t, parsed, &x509.CertificateRequest{
		Subject:  Subject{"prod", "root", Keeper}.name(),
		DNSNames: []string{"etcd1"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}, EmailAddresses: []string{"a@example.org"},
		ExtraExtensions: []pkix.Extension{{Id: []int{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 3, 1, 1, 0xff}}}, // an authority
	}), s, nil, time.Hour, noon)
	if err != nil {
		t.Fatal(err)
	}
	cert := first(t, chain)
	got, err := SubjectOf(cert)
	if err != nil || got != s || cert.IsCA || len(cert.DNSNames)+len(cert.IPAddresses)+len(cert.EmailAddresses) > 0 {
		t.Error(got, err, cert.IsCA, cert.DNSNames, cert.IPAddresses, cert.EmailAddresses)
	}
	if pair, err := tls.X509KeyPair(append(key, chain...), append(key, chain...)); err != nil || len(pair.Certificate) != 2 {
		t.Error("the file of credentials is not one that TLS reads:", err)
	}
}
