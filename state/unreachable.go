package state

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pullet/pullet/internal/authority"
)

// UnreachableError says that the store did not answer in time, takes no writes, or does not let this host in.
type UnreachableError struct {
	Endpoints []string // none: the embedded member cannot go on
	Err       error
	Access    Access
	Silent    bool // the operation that ended last had no answer
}

// Access is how this host identifies itself to etcd, for messages.
type Access struct {
	User     string // by password, or the name in the certificate
	Password bool   // it has one, so etcd knows the user
	Prefix   string // of the keys that it needs
	Flags    string // for etcdctl

	Kind  authority.Kind // what it is in a fleet with an authority of its own
	pulls bool           // it is a host at work, and nobody who types a command
}

func (e *UnreachableError) Error() string {
	switch {
	case len(e.Endpoints) == 0:
		return e.Err.Error()
	case e.Full():
		return fmt.Sprintf("etcd at %s is out of space and takes no writes: %s",
			strings.Join(e.Endpoints, ", "), e.Access.whenFull())
	case e.Denied():
		return fmt.Sprintf("etcd at %s refuses this host: %s", strings.Join(e.Endpoints, ", "), e.denial())
	}
	return fmt.Sprintf("etcd is unreachable at %s: %v; try: etcdctl --endpoints %s%s endpoint health",
		strings.Join(e.Endpoints, ", "), e.Err, strings.Join(e.Endpoints, ","), e.Access.Flags)
}

// whenFull is what helps against a store that is full. The keeper of a datastore does what helps, but for records that
// somebody wrote who may.
func (a Access) whenFull() string {
	if a.Kind != "" {
		return "journalctl -u pullet-etcd on the host of the datastore says whose records fill it (docs/datastore.md)"
	}
	return "etcdctl compact, defrag, then alarm disarm"
}

// Full reports that the store is out of space: it answers, and what was to be written is not.
func (e *UnreachableError) Full() bool { return errors.Is(e.Err, rpctypes.ErrNoSpace) }

// Denied reports that the store answers and does not let this host in.
func (e *UnreachableError) Denied() bool { return denied(e.Err) }

func (e *UnreachableError) Unwrap() error { return e.Err }

// denial is what the store refuses, and what an operator does about it.
func (e *UnreachableError) denial() string {
	user := e.Access.User
	switch {
	case errors.Is(e.Err, rpctypes.ErrAuthFailed):
		return fmt.Sprintf("user %s or the password is wrong (etcd.username, etcd.passwordFile)", user)
	case user == "":
		return "it names no user: set etcd.tls.cert and key, or etcd.username and passwordFile (docs/etcd.md)"
	case e.Access.Kind == authority.Node && !e.Access.pulls:
		return "that is for operators, and it has the certificate of the host " + user +
			" alone: run it on a host with etcd.operator, or join here: pullet fleet invite NAME --operator"
	case e.Access.Kind != "":
		return fmt.Sprintf(
			"%s %s may not do that, or was revoked: pullet fleet list; pullet fleet invite %s lets it in again",
			e.Access.Kind,
			user,
			user,
		)
	}
	add := "" // etcd refuses a user that it does not know in the same words
	if !e.Access.Password {
		add = fmt.Sprintf("etcdctl user add %s --no-password, unless etcd has this user; then ", user)
	}
	return fmt.Sprintf(
		"%s may not use the keys below %s: %setcdctl user grant-role %s ROLE, with a role that may (docs/etcd.md)",
		user,
		e.Access.Prefix,
		add,
		user,
	)
}

// denied reports an answer that refuses who asks.
func denied(err error) bool {
	for _, known := range []error{
		rpctypes.ErrPermissionDenied, rpctypes.ErrAuthFailed, rpctypes.ErrUserEmpty, rpctypes.ErrUserNotFound,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return status.Code(err) == codes.PermissionDenied || status.Code(err) == codes.Unauthenticated
}

// access is how a configuration identifies this host.
func (c Config) access() Access {
	a := Access{User: c.Username, Prefix: "/pullet/" + c.Fleet + "/"}
	for _, f := range []struct{ flag, file string }{{"cacert", c.TLS.CA}, {"cert", c.TLS.Cert}, {"key", c.TLS.Key}} {
		if f.file != "" {
			a.Flags += fmt.Sprintf(" --%s %s", f.flag, f.file)
		}
	}
	if c.Username != "" {
		a.Flags += " --user " + c.Username
		a.Password = true
	} else if c.TLS.Cert != "" {
		a.User, a.Kind = certificate(c.TLS.Cert)
		a.pulls = c.Node != ""
	}
	return a
}

// certificate is whom the first certificate of a file names, which etcd takes for the user, and what that is in a fleet
// with an authority of its own; both "" where it cannot be read.
func certificate(file string) (user string, kind authority.Kind) {
	c, err := firstCertificate(file)
	if err != nil {
		return "", ""
	}
	if s, err := authority.SubjectOf(c); err == nil {
		return s.Name, s.Kind
	}
	return c.Subject.CommonName, ""
}

// firstCertificate reads the first certificate of a file, which may have a key before it.
func firstCertificate(file string) (*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%s has no certificate that can be read", file)
}

// CertificateEnds is when the first certificate of a file ends.
func CertificateEnds(file string) (time.Time, error) {
	c, err := firstCertificate(file)
	if err != nil {
		return time.Time{}, err
	}
	return c.NotAfter, nil
}
