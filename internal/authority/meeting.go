package authority

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pullet/pullet/internal/safetext"
)

// meeting is how a new host comes to believe the server at an address, of which it knows the authority's fingerprint
// alone.
type meeting struct {
	address, host string
	pin           string
	now           func() time.Time
	server        atomic.Pointer[Subject] // when it is believed: a handshake may outlive its request
}

// strangerError is a server that is not believed.
type strangerError struct{ why string }

func (e *strangerError) Error() string { return e.why }

func (m *meeting) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		ServerName:         m.host,
		InsecureSkipVerify: true, // the host has no authorities yet: VerifyConnection believes the pinned one alone
		VerifyConnection: func(state tls.ConnectionState) error {
			s, err := m.meet(state.PeerCertificates)
			if err == nil {
				m.server.Store(&s)
			}
			return err
		},
	}
}

// meet says who the server is that presents these certificates.
func (m *meeting) meet(presented []*x509.Certificate) (Subject, error) {
	if len(presented) == 0 {
		return Subject{}, &strangerError{why: "the server at " + m.address + " presents no certificate"}
	}
	behind := presented[1:]
	at := slices.IndexFunc(behind, func(cert *x509.Certificate) bool { return fingerprint(cert) == m.pin })
	if at < 0 {
		return Subject{}, m.another(behind)
	}
	s, err := believe(presented[0], behind[at:at+1], x509.ExtKeyUsageServerAuth, m.host, m.now())
	if err != nil {
		return Subject{}, &strangerError{why: fmt.Sprintf("the server at %s is not believed: %v", m.address, err)}
	}
	if s.Kind != Server {
		return Subject{}, &strangerError{why: fmt.Sprintf("what answers at %s is the %s %s, and not a %s of the fleet %s",
			m.address, s.Kind, s.Name, Server, s.Fleet)}
	}
	return s, nil
}

// another is the error of a server whose authority is not the pinned one.
func (m *meeting) another(behind []*x509.Certificate) error {
	if len(behind) == 0 {
		return &strangerError{why: fmt.Sprintf("the server at %s presents no authority, the invitation names %s: "+
			"it is not the fleet's, or somebody answers in its place", m.address, m.pin)}
	}
	return &strangerError{why: fmt.Sprintf("the server at %s presents an authority %s, the invitation names %s: "+
		"it is another fleet, or somebody answers in its place", m.address, fingerprint(behind[len(behind)-1]), m.pin)}
}

// failure says why there is no answer.
func (m *meeting) failure(err error) error {
	var stranger *strangerError
	var network *net.OpError
	var timeout net.Error
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err // without the address, which the message has
	}
	reason := safetext.Line(err.Error(), maxReason)
	switch {
	case errors.As(err, &stranger):
		return stranger
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &network) && network.Op == "dial":
		return fmt.Errorf("nobody answers at %s: %s: check the address, and that the port is open", m.address, reason)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("nobody answers at %s in time: check the address, and the load of the server", m.address)
	case m.server.Load() == nil:
		return fmt.Errorf("what answers at %s is not a fleet's door, which speaks TLS 1.3: %s", m.address, reason)
	}
	return fmt.Errorf("the server at %s went away without an answer: %s", m.address, reason)
}
