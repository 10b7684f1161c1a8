package authority

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// created is a new authority.
func created(t testing.TB, fleet string, at time.Time) *Authority {
	t.Helper()
	a, err := Create(fleet, at)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// credentialsOf is a key and its certificate, as a host keeps them.
func credentialsOf(t testing.TB, a *Authority, s Subject, hosts []string, at time.Time) []byte {
	t.Helper()
	key, csr, err := Request()
	if err != nil {
		t.Fatal(err)
	}
	chain, err := a.Issue(csr, s, hosts, DefaultLife, at)
	if err != nil {
		t.Fatal(err)
	}
	return append(key, chain...)
}

// withKey is a file of credentials of another kind of key.
func withKey(t testing.TB, a *Authority, key crypto.Signer, s Subject, at time.Time) []byte {
	t.Helper()
	chain, err := a.Issue(requestOf(t, key, &x509.CertificateRequest{}), s, nil, DefaultLife, at)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: keyType, Bytes: der}), chain...)
}

func requestOf(t testing.TB, key crypto.Signer, wanted *x509.CertificateRequest) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, wanted, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: requestType, Bytes: der})
}

func first(t testing.TB, text []byte) *x509.Certificate {
	t.Helper()
	cert, err := firstCertificate(text)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// wantError fails unless the error has these words; "" wants none.
func wantError(t testing.TB, what string, err error, words string) {
	t.Helper()
	if words == "" && err != nil || words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
		t.Errorf("%s: the error is %v, and has to have %q", what, err, words)
	}
}

// pemOf is a text with one block.
func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func joined(texts ...[]byte) []byte { return bytes.Join(texts, nil) }
