package authority

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAuthority: what a new authority's certificate says, and that its texts have what they should.
func TestAuthority(t *testing.T) {
	a := created(t, "prod", noon)
	cert := first(t, a.Bundle())
	switch {
	case cert.Subject.String() != "CN=pullet prod authority,O=pullet:prod":
		t.Error(cert.Subject)
	case !cert.IsCA || cert.MaxPathLen != 0 || !cert.MaxPathLenZero || cert.KeyUsage&x509.KeyUsageCertSign == 0:
		t.Error("it is not an authority for certificates of hosts alone")
	case !cert.NotBefore.Equal(noon.Add(-time.Hour)) || !cert.NotAfter.Equal(noon.AddDate(10, 0, 0)):
		t.Error(cert.NotBefore, cert.NotAfter)
	}
	if sum := sha256.Sum256(cert.Raw); a.Fingerprint() != "sha256:"+hex.EncodeToString(sum[:]) {
		t.Error(a.Fingerprint())
	}
	if bytes.Contains(a.Bundle(), []byte("KEY-----")) || !bytes.HasSuffix(a.Encode(), a.Bundle()) {
		t.Error("the bundle has a key, or is not what the authority believes")
	}
	for _, fleet := range []string{"", "a b", "a/b", strings.Repeat("a", 48)} {
		if _, err := Create(fleet, noon); err == nil {
			t.Errorf("there is an authority of the fleet %q", fleet)
		}
	}
	wantError(t, "the longest name", checkFleet(strings.Repeat("a", 47)), "")
}

// TestRotate: during a rotation what both authorities signed is believed, and after it what the new one signed.
func TestRotate(t *testing.T) {
	old := created(t, "prod", noon)
	both, err := old.Rotate(noon)
	if err != nil {
		t.Fatal(err)
	}
	if !both.Rotating() || old.Rotating() || both.Fingerprint() == old.Fingerprint() {
		t.Error("the new authority does not sign, or the old one changed")
	}
	after := both.Finish()
	if after.Rotating() || after.Fingerprint() != both.Fingerprint() || !both.Rotating() {
		t.Error("the rotation is not over, or finishing it changed what was there")
	}
	s := Subject{Fleet: "prod", Name: "web1", Kind: Node}
	before, since := first(t, credentialsOf(t, old, s, nil, noon)), first(t, credentialsOf(t, both, s, nil, noon))
	for _, c := range []struct {
		what   string
		cert   *x509.Certificate
		bundle *Authority
		err    string
	}{
		{"old by old", before, old, ""}, {"old by both", before, both, ""}, {"old by new", before, after, "did not sign it"},
		{"new by old", since, old, "did not sign it"}, {"new by both", since, both, ""}, {"new by new", since, after, ""},
	} {
		read, err := readBundle(c.bundle.Bundle())
		if err != nil {
			t.Fatal(err)
		}
		got, err := believe(c.cert, read, x509.ExtKeyUsageClientAuth, "", noon)
		wantError(t, c.what, err, c.err)
		if err == nil && got != s {
			t.Error(c.what, got)
		}
	}
}

// TestRotateTooOften: who rotates and never finishes is told before the text of the authority cannot be read.
func TestRotateTooOften(t *testing.T) {
	a := created(t, "prod", noon)
	for range maxAuthorities - 1 {
		next, err := a.Rotate(noon)
		if err != nil {
			t.Fatal(err)
		}
		a = next
	}
	if _, err := Parse(a.Encode()); err != nil {
		t.Error(err)
	}
	_, err := a.Rotate(noon)
	wantError(t, "one more", err, "finish the rotation")
}

func TestParse(t *testing.T) {
	a, other := created(t, "prod", noon), created(t, "test", noon)
	both, err := a.Rotate(noon)
	if err != nil {
		t.Fatal(err)
	}
	leaf := credentialsOf(t, a, Subject{Fleet: "prod", Name: "web1", Kind: Node}, nil, noon)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key := encodeKey(a.key)
	for _, c := range []struct {
		what string
		text []byte
		err  string
	}{
		{"one", a.Encode(), ""},
		{"two", both.Encode(), ""},
		{"words around", joined([]byte("the authority of prod\n"), a.Encode(), []byte("\n\n")), ""},
		{"nothing", nil, "does not begin with its private key"},
		{"no certificate", key, "0 certificates"},
		{"no key", a.Bundle(), "does not begin with its private key"},
		{"the key last", joined(a.Bundle(), key), "does not begin with its private key"},
		{"two keys", joined(key, key, a.Bundle()), "in the place of a certificate"},
		{"another key", joined(encodeKey(other.key), a.Bundle()), "of another key"},
		{"the new key, the old certificate first", joined(encodeKey(both.key), a.Bundle(), both.Bundle()), "of another key"},
		{"two fleets", joined(a.Encode(), other.Bundle()), "several fleets"},
		{"a host's", leaf, "not of an authority"},
		{"P-384", joined(encodeKey(p384), a.Bundle()), "not an ECDSA key on P-256"},
		{"no PKCS #8", joined(pemOf(keyType, []byte("x")), a.Bundle()), "its private key"},
		{"a damaged certificate", joined(key, pemOf(certType, []byte("x"))), "certificate of an authority"},
		{"too many", joined(key, bytes.Repeat(a.Bundle(), 9)), "9 certificates"},
		{"too long", make([]byte, maxPEM+1), "at most 65536 are read"},
	} {
		got, err := Parse(c.text)
		wantError(t, c.what, err, c.err)
		if err == nil && (got.Fingerprint() != fingerprint(first(t, c.text)) || got.fleet != "prod") {
			t.Error(c.what, got.fleet)
		}
	}
}

// TestParseCutOff: an authority that was cut off or has a bad byte in its frame is damaged. One that ends between two
// certificates, or before the links, cannot be told from a whole one.
func TestParseCutOff(t *testing.T) {
	a := created(t, "prod", noon)
	both, err := a.Rotate(noon)
	if err != nil {
		t.Fatal(err)
	}
	text := both.Encode()
	linked := len(text) - len(both.Links())
	whole := []int{len(text), linked, linked - len(a.Bundle())}
	for n := range text {
		_, err := Parse(text[:n])
		if err == nil && !slices.Contains(whole, n) && !slices.Contains(whole, n+1) { // without its last line end, too
			t.Fatalf("%d of %d bytes are an authority", n, len(text))
		}
	}
}

func FuzzParse(f *testing.F) {
	a := created(f, "prod", noon)
	both, err := a.Rotate(noon)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(a.Encode())
	f.Add(both.Encode())
	f.Add(a.Bundle())
	_, csr, err := Request()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		read, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(read.Encode())
		if err != nil || !bytes.Equal(again.Encode(), read.Encode()) {
			t.Errorf("it reads its own text as another authority: %v", err)
		}
		signing := read.certificates[0]
		if _, err := read.Issue(csr, Subject{Fleet: read.fleet, Name: "a", Kind: Node}, nil, time.Hour, signing.NotBefore); err != nil {
			t.Logf("it cannot sign: %v", err) // and does not panic
		}
	})
}
