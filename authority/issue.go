package authority

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/pullet/pullet/safetext"
)

// DefaultLife is how long the certificate of a host is valid.
const DefaultLife = 90 * 24 * time.Hour

const (
	maxRequest         = 16 << 10 // bytes
	maxHosts           = 100
	minRSA, maxRSA     = 2048, 8192 // bits; more take seconds to check
	requestNotReadable = "the request for a certificate cannot be read"
)

// Issue signs a certificate for the public key of a request, and takes nothing else of the request: who may have which
// subject is the caller's to decide. The result is a chain in PEM: the certificate, and that of the authority.
//
// Hosts are the DNS names and IP addresses at which a Server answers: it needs one, the other kinds have none. The
// certificate is valid from an hour before now until life is over, at most as long as the authority's own; see
// DefaultLife. Keys may be ECDSA on P-256 or P-384, Ed25519, or RSA of 2048 to 8192 bits. A request that is damaged,
// too long or of another key is a *Refusal.
func (a *Authority) Issue(csr []byte, s Subject, hosts []string, life time.Duration, now time.Time) ([]byte, error) {
	template, err := a.template(s, hosts, life, now)
	if err != nil {
		return nil, err
	}
	key, err := requestedKey(csr)
	if err != nil {
		return nil, err
	}
	signing := a.certificates[0]
	der, err := x509.CreateCertificate(rand.Reader, template, signing, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s %s: %w", s.Kind, s.Name, err)
	}
	return append(encodeCertificate(der), encodeCertificate(signing.Raw)...), nil
}

// template is a certificate without its key.
func (a *Authority) template(s Subject, hosts []string, life time.Duration, now time.Time) (*x509.Certificate, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.Fleet != a.fleet {
		return nil, fmt.Errorf("%s is of the fleet %s: this is the authority of %s", s.Name, s.Fleet, a.fleet)
	}
	if life <= 0 {
		return nil, fmt.Errorf("the certificate of %s is for %s: it has to be valid for some time", s.Name, life)
	}
	if err := a.validAt(now); err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               s.name(),
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(life),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	if end := a.certificates[0].NotAfter; template.NotAfter.After(end) {
		template.NotAfter = end
	}
	return template, answerAt(template, s, hosts)
}

// answerAt has a certificate name where its server answers.
func answerAt(template *x509.Certificate, s Subject, hosts []string) error {
	switch {
	case s.Kind != Server && len(hosts) > 0:
		return fmt.Errorf("%s is of the kind %s: only a %s has addresses in its certificate", s.Name, s.Kind, Server)
	case s.Kind != Server:
		return nil
	case len(hosts) == 0 || len(hosts) > maxHosts:
		return fmt.Errorf("the server %s answers at %d addresses: name 1 to %d, as names of hosts or IP addresses",
			s.Name, len(hosts), maxHosts)
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, host := range hosts {
		ip, err := netip.ParseAddr(host)
		switch {
		case err == nil && ip.Zone() == "":
			template.IPAddresses = append(template.IPAddresses, net.IP(ip.AsSlice()))
		case safetext.Host(host) && !strings.Contains("."+host+".", ".."):
			template.DNSNames = append(template.DNSNames, host)
		default:
			return fmt.Errorf("the server %s answers at %q: write the name of a host or an IP address",
				s.Name, safetext.Line(host, 100))
		}
	}
	return nil
}

// requestedKey is the public key of a request whose sender has the private one.
func requestedKey(text []byte) (crypto.PublicKey, error) {
	if len(text) > maxRequest {
		return nil, refusal("the request for a certificate has %d bytes: at most %d are read", len(text), maxRequest)
	}
	blocks, err := readBlocks(bytes.TrimSpace(text))
	if err != nil || len(blocks) != 1 || blocks[0].Type != requestType {
		return nil, refusal(requestNotReadable + ": it is not one request in PEM")
	}
	request, err := x509.ParseCertificateRequest(blocks[0].Bytes)
	if err != nil {
		return nil, refusal(requestNotReadable+": %v", err)
	}
	if why := unfit(request.PublicKey); why != "" { // first: the signature of a huge key takes long to check
		return nil, refusal("the request for a certificate has %s: use ECDSA on P-256 or P-384, Ed25519, "+
			"or RSA of %d to %d bits", why, minRSA, maxRSA)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, refusal("the request for a certificate is not signed with its own key: %v", err)
	}
	return request.PublicKey, nil
}

// unfit says what is wrong with a key, if anything is.
func unfit(key crypto.PublicKey) string {
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() && key.Curve != elliptic.P384() {
			return "a key on " + key.Curve.Params().Name
		}
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSA || bits > maxRSA {
			return fmt.Sprintf("an RSA key of %d bits", bits)
		}
	case ed25519.PublicKey:
	default:
		return "a key of an unknown kind"
	}
	return ""
}
