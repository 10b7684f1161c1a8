// Package authority is a fleet's own certificate authority: what it signs, and how a host asks for a certificate. It
// knows neither where its texts are kept nor who may ask: its callers do.
//
// A host has one file of credentials: its key and behind it the chain that Issue made, its certificate and the
// authority's. So both are replaced at once, tls.LoadX509KeyPair(file, file) reads them, and a server shows the
// authority's certificate in the handshake, which Join needs.
//
// All functions and methods may be used by several goroutines at once.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"time"
)

const (
	authorityYears = 10
	maxAuthorities = 8         // certificates that an authority believes at a time
	backdated      = time.Hour // how far the clock of a host may be behind
)

// Authority signs the certificates of one fleet. It is immutable; Create, Parse, Rotate and Finish make one.
type Authority struct {
	fleet        string
	key          *ecdsa.PrivateKey
	certificates []*x509.Certificate // the first is the key's
	links        []*x509.Certificate // keys of newer authorities, as the ones before them signed them
}

// Create makes the authority of a fleet: a new key, and a certificate of ten years from an hour before now. It fails
// for a name of a fleet that a certificate cannot have: see Subject.
func Create(fleet string, now time.Time) (*Authority, error) {
	if err := checkFleet(fleet); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the authority's key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject: pkix.Name{
			CommonName:   "pullet " + fleet + " authority",
			Organization: []string{ofFleet + fleet},
		},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.AddDate(authorityYears, 0, 0),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the authority's certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the authority's new certificate: %w", err)
	}
	return &Authority{fleet: fleet, key: key, certificates: []*x509.Certificate{cert}}, nil
}

// Rotate makes an authority that signs with a new key and still believes what the former ones signed. Hosts have to
// learn its Bundle before the first of them gets a certificate that it signed, and a server needs one of those before
// an invitation names the new Fingerprint. It fails while eight are believed.
func (a *Authority) Rotate(now time.Time) (*Authority, error) {
	if len(a.certificates) >= maxAuthorities {
		return nil, fmt.Errorf("the fleet %s believes %d authorities already: finish the rotation before another one",
			a.fleet, len(a.certificates))
	}
	next, err := Create(a.fleet, now)
	if err != nil {
		return nil, err
	}
	link, err := a.vouch(next)
	if err != nil {
		return nil, fmt.Errorf("vouch for the authority's new certificate: %w", err)
	}
	next.certificates = append(next.certificates, a.certificates...)
	next.links = append(slices.Clone(a.links), link)
	next.links = next.links[max(0, len(next.links)-maxAuthorities):]
	return next, nil
}

// Finish makes an authority that believes its own certificate alone: what former ones signed is no longer valid.
func (a *Authority) Finish() *Authority {
	return &Authority{fleet: a.fleet, key: a.key, certificates: slices.Clone(a.certificates[:1]), links: a.links}
}

// Rotating reports whether former authorities are still believed.
func (a *Authority) Rotating() bool { return len(a.certificates) > 1 }

// Fleet is the name of the fleet.
func (a *Authority) Fleet() string { return a.fleet }

// Fingerprint names the certificate that signs: "sha256:" and the SHA-256 of its DER in 64 hexadecimal digits.
func (a *Authority) Fingerprint() string { return fingerprint(a.certificates[0]) }

func fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return fingerprintPrefix + hex.EncodeToString(sum[:])
}

const fingerprintPrefix = "sha256:"

// serial is a random serial number of 128 bits, which nobody can foresee.
func serial() *big.Int {
	var number [16]byte
	_, _ = rand.Read(number[:]) // never fails
	return new(big.Int).SetBytes(number[:])
}

// validAt says why the certificate that signs cannot do so at a time.
func (a *Authority) validAt(now time.Time) error {
	signing := a.certificates[0]
	switch {
	case now.Before(signing.NotBefore):
		return fmt.Errorf("the authority of %s is valid from %s: check the clock of this host, which says %s",
			a.fleet, moment(signing.NotBefore), moment(now))
	case !now.Before(signing.NotAfter):
		return fmt.Errorf("the authority of %s ended at %s: rotate it", a.fleet, moment(signing.NotAfter))
	}
	return nil
}

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }
