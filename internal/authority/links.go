package authority

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"
)

// linkType is the type of a link in PEM: it is a certificate, and none that anybody believes.
const linkType = "PULLET AUTHORITY LINK"

// vouch signs the certificate of a newer authority.
func (a *Authority) vouch(next *Authority) (*x509.Certificate, error) {
	to := next.certificates[0]
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: to.Subject, NotBefore: to.NotBefore, NotAfter: to.NotAfter, KeyUsage: to.KeyUsage,
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificates[0], to.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// Links are the certificates in PEM with which each authority vouched for the one after it: see Follow.
func (a *Authority) Links() []byte {
	var text []byte
	for _, link := range a.links {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: linkType, Bytes: link.Raw})...)
	}
	return text
}

// readLinks reads what Links wrote.
func readLinks(text []byte) ([]*x509.Certificate, error) {
	blocks, err := readBlocks(text)
	if err != nil {
		return nil, err
	}
	return linksIn(blocks)
}

func linksIn(blocks []*pem.Block) (links []*x509.Certificate, err error) {
	if len(blocks) > maxAuthorities {
		return nil, fmt.Errorf("there are %d links between authorities, of %d at most", len(blocks), maxAuthorities)
	}
	for _, block := range blocks {
		if block.Type != linkType {
			return nil, fmt.Errorf("there is a %q in the place of a link between authorities", block.Type)
		}
		link, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("a link between authorities: %w", err)
		}
		links = append(links, link)
	}
	return links, nil
}

// Follow says whether a host that believes one bundle may believe another one in its place: each authority in it is
// one that the host believes, or that such a one vouched for, directly or through others. What it does not vouch for
// is an error.
func Follow(believed, offered, links []byte) error {
	known, err := readBundle(believed)
	if err != nil {
		return err
	}
	next, err := readBundle(offered)
	if err != nil {
		return err
	}
	vouched, err := readLinks(links)
	if err != nil {
		return err
	}
	for range vouched { // each round goes at least one link further
		for _, link := range vouched {
			if slices.ContainsFunc(known, func(by *x509.Certificate) bool { return link.CheckSignatureFrom(by) == nil }) {
				known = append(known, link)
			}
		}
	}
	for _, cert := range next {
		if !slices.ContainsFunc(known, func(k *x509.Certificate) bool { return sameAuthority(k, cert) }) {
			return errors.New("the fleet's record offers the authority " + fingerprint(cert) +
				", for which no authority vouches that this host believes")
		}
	}
	return nil
}

// Expect makes an authority that signs as this one does, and believes the next one beside all that the next one
// believes. Members of a datastore need it: when all of them believe the next authority, the first one may sign with
// it. It fails for what Rotate did not make of this authority.
func (a *Authority) Expect(next *Authority) (*Authority, error) {
	signing := encodeCertificate(a.certificates[0].Raw)
	strange := func(cert *x509.Certificate) bool { return !slices.ContainsFunc(a.certificates, cert.Equal) }
	former := next.certificates[1:]
	err := Follow(signing, encodeCertificate(next.certificates[0].Raw), next.Links())
	if err != nil || len(former) == 0 || !former[0].Equal(a.certificates[0]) || slices.ContainsFunc(former, strange) {
		return nil, fmt.Errorf("the authority %s is not the next one of %s", next.Fingerprint(), a.Fingerprint())
	}
	return &Authority{
		fleet: a.fleet, key: a.key, certificates: append(slices.Clone(former), next.certificates[0]), links: next.links,
	}, nil
}

// sameAuthority reports two certificates of one key and one fleet. A certificate that signed itself proves nothing:
// its key does.
func sameAuthority(a, b *x509.Certificate) bool {
	key, ok := a.PublicKey.(interface{ Equal(x crypto.PublicKey) bool })
	return ok && key.Equal(b.PublicKey) && slices.Equal(a.RawSubject, b.RawSubject) && b.CheckSignatureFrom(b) == nil
}

// Fits says why a host cannot use a certificate, in a chain of PEM, with its key: it is of another key or another
// subject, or none of the authorities signed it.
func Fits(key, chain, bundle []byte, s Subject, now time.Time) error {
	believed, err := readBundle(bundle)
	if err != nil {
		return err
	}
	cert, err := firstCertificate(chain)
	if err != nil {
		return err
	}
	if _, err := tls.X509KeyPair(chain, key); err != nil {
		return err
	}
	is, err := believe(cert, believed, x509.ExtKeyUsageClientAuth, "", now)
	if err == nil && is != s {
		err = fmt.Errorf("it is for %s %s of the fleet %s", is.Kind, is.Name, is.Fleet)
	}
	return err
}
