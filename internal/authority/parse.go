package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Parse reads what Encode wrote. Any damage is an error: an authority that was cut off would no longer believe hosts.
func Parse(text []byte) (*Authority, error) {
	a, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	return a, nil
}

func parse(text []byte) (*Authority, error) {
	blocks, err := readBlocks(text)
	if err != nil {
		return nil, err
	}
	if len(blocks) == 0 || blocks[0].Type != keyType {
		return nil, errors.New("it does not begin with its private key")
	}
	rest := blocks[1:]
	first := slices.IndexFunc(rest, func(b *pem.Block) bool { return b.Type == linkType })
	if first < 0 {
		first = len(rest)
	}
	certificates, err := authorities(rest[:first])
	if err != nil {
		return nil, err
	}
	links, err := linksIn(rest[first:])
	if err != nil {
		return nil, err
	}
	key, err := parseKey(blocks[0].Bytes)
	if err != nil {
		return nil, err
	}
	if !key.PublicKey.Equal(certificates[0].PublicKey) {
		return nil, errors.New("its first certificate is of another key")
	}
	fleet := strings.TrimPrefix(certificates[0].Subject.Organization[0], ofFleet)
	return &Authority{fleet: fleet, key: key, certificates: certificates, links: links}, nil
}

func parseKey(der []byte) (*ecdsa.PrivateKey, error) {
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("its private key: %w", err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("its private key is not an ECDSA key on P-256")
	}
	return key, nil
}

// authorities reads the certificates of authorities of one fleet, one to eight.
func authorities(blocks []*pem.Block) (certificates []*x509.Certificate, err error) {
	if len(blocks) == 0 || len(blocks) > maxAuthorities {
		return nil, fmt.Errorf("there are %d certificates of authorities: there have to be 1 to %d",
			len(blocks), maxAuthorities)
	}
	for _, block := range blocks {
		cert, err := authorityIn(block)
		if err != nil {
			return nil, err
		}
		if len(certificates) > 0 && !slices.Equal(cert.Subject.Organization, certificates[0].Subject.Organization) {
			return nil, errors.New("its certificates are of several fleets")
		}
		certificates = append(certificates, cert)
	}
	return certificates, nil
}

// authorityIn reads the certificate of an authority of a fleet.
func authorityIn(block *pem.Block) (*x509.Certificate, error) {
	if block.Type != certType {
		return nil, fmt.Errorf("there is a %q in the place of a certificate", block.Type)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the certificate of an authority: %w", err)
	}
	if !cert.BasicConstraintsValid || !cert.IsCA || len(cert.Subject.Organization) != 1 {
		return nil, errors.New("a certificate is not of an authority")
	}
	fleet, ours := strings.CutPrefix(cert.Subject.Organization[0], ofFleet)
	if !ours {
		return nil, errors.New("a certificate is not of a fleet's authority")
	}
	return cert, checkFleet(fleet)
}

// readBundle reads certificates of authorities, as Bundle writes them.
func readBundle(text []byte) ([]*x509.Certificate, error) {
	blocks, err := readBlocks(text)
	if err == nil {
		var certificates []*x509.Certificate
		if certificates, err = authorities(blocks); err == nil {
			return certificates, nil
		}
	}
	return nil, fmt.Errorf("the bundle of authorities: %w", err)
}

// Encode writes the authority as one text in PEM, a secret: its key in PKCS #8, the certificate that signs, and those
// that are still believed, and the links between them.
func (a *Authority) Encode() []byte {
	return slices.Concat(encodeKey(a.key), a.Bundle(), a.Links())
}

// Bundle is the certificates of the authority in PEM: what a host believes. The first one signs.
func (a *Authority) Bundle() []byte {
	var text []byte
	for _, cert := range a.certificates {
		text = append(text, encodeCertificate(cert.Raw)...)
	}
	return text
}
