package authority

import (
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/safetext"
)

// DefaultLife is how long the certificate of a host is valid.
const DefaultLife = 90 * 24 * time.Hour

// maxHosts is at how many addresses a server answers.
const maxHosts = 100

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

// Answers reports a chain that answers a request: its certificate is for the key of the request.
func Answers(chain, csr []byte) bool {
	cert, err := firstCertificate(chain)
	return err == nil && sameKey(cert, string(csr)) == nil
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
