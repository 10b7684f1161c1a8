package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// Request makes a new key, a secret, and the request for its certificate, both in PEM. The request names nobody: the
// authority knows whom it asked about.
func Request() (key, csr []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, private)
	if err != nil {
		return nil, nil, fmt.Errorf("make a request for a certificate: %w", err)
	}
	return encodeKey(private), pem.EncodeToMemory(&pem.Block{Type: requestType, Bytes: der}), nil
}

// Certificate is what a host wants to know of a certificate.
type Certificate struct {
	Subject
	NotBefore, NotAfter time.Time
	Issuer              string // the identifier of the authority's key, hexadecimal
	Serial              string // hexadecimal
}

// Inspect reads the first certificate of a text in PEM, which may be a host's file of credentials. It neither asks who
// signed it nor whether it is valid now.
func Inspect(text []byte) (Certificate, error) {
	cert, err := firstCertificate(text)
	if err != nil {
		return Certificate{}, fmt.Errorf("read the certificate: %w", err)
	}
	s, err := SubjectOf(cert)
	if err != nil {
		return Certificate{}, err
	}
	return Certificate{
		Subject:   s,
		NotBefore: cert.NotBefore, NotAfter: cert.NotAfter,
		Issuer: hex.EncodeToString(cert.AuthorityKeyId),
		Serial: cert.SerialNumber.Text(16),
	}, nil
}

// RenewAt is when the holder asks for the next certificate: after two thirds of this one's life.
func (c Certificate) RenewAt() time.Time {
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 3 * 2)
}

// firstCertificate is the first certificate of a text that may have keys, too.
func firstCertificate(text []byte) (*x509.Certificate, error) {
	blocks, err := readBlocks(text)
	if err != nil {
		return nil, err
	}
	for _, block := range blocks {
		if block.Type == certType {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, errors.New("there is none in the text")
}
