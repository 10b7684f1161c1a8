package authority

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pullet/pullet/internal/safetext"
)

// believe says whom a certificate names, when one of these authorities signed it for this usage, and it is valid at the
// time and, where a host is given, for that host. The system's own authorities do not count.
func believe(cert *x509.Certificate, believed []*x509.Certificate, usage x509.ExtKeyUsage, host string,
	now time.Time) (Subject, error) {
	s, err := SubjectOf(cert)
	if err != nil {
		return Subject{}, err
	}
	roots := x509.NewCertPool()
	for _, authority := range believed {
		roots.AddCert(authority)
	}
	_, err = cert.Verify(x509.VerifyOptions{
		Roots: roots, DNSName: host, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage},
	})
	if err != nil {
		return Subject{}, fmt.Errorf("the certificate of %s %s: %w", s.Kind, s.Name, unbelieved(cert, believed, err, now))
	}
	for _, authority := range believed {
		if !slices.Equal(authority.Subject.Organization, []string{ofFleet + s.Fleet}) {
			return Subject{}, fmt.Errorf("the certificate of %s %s is of the fleet %s, and its authority of another",
				s.Kind, s.Name, s.Fleet)
		}
	}
	return s, nil
}

// unbelieved says what is wrong with a certificate in the field's words.
func unbelieved(cert *x509.Certificate, believed []*x509.Certificate, err error, now time.Time) error {
	var invalid x509.CertificateInvalidError
	var stranger x509.UnknownAuthorityError
	var elsewhere x509.HostnameError
	signed := func(authority *x509.Certificate) bool { return cert.CheckSignatureFrom(authority) == nil }
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && now.Before(cert.NotBefore):
		return fmt.Errorf("it is valid from %s, and the clock of this host says %s", moment(cert.NotBefore), moment(now))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && now.After(cert.NotAfter):
		return fmt.Errorf("it ended at %s, and the clock of this host says %s", moment(cert.NotAfter), moment(now))
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return errors.New("it is not for this use")
	case errors.As(err, &stranger) && !slices.ContainsFunc(believed, signed):
		return errors.New("the fleet's authority did not sign it")
	case errors.As(err, &elsewhere):
		return fmt.Errorf("it is not for the address %s", safetext.Line(elsewhere.Host, 100))
	}
	return errors.New(safetext.Line(err.Error(), maxReason))
}
