package state

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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
}

func (e *UnreachableError) Error() string {
	switch {
	case len(e.Endpoints) == 0:
		return e.Err.Error()
	case e.Full():
		return fmt.Sprintf(
			"etcd at %s is out of space and takes no writes: etcdctl compact, defrag, then alarm disarm",
			strings.Join(e.Endpoints, ", "),
		)
	case e.Denied():
		return fmt.Sprintf("etcd at %s refuses this host: %s", strings.Join(e.Endpoints, ", "), e.denial())
	}
	return fmt.Sprintf("etcd is unreachable at %s: %v; try: etcdctl --endpoints %s%s endpoint health",
		strings.Join(e.Endpoints, ", "), e.Err, strings.Join(e.Endpoints, ","), e.Access.Flags)
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
		a.User = commonName(c.TLS.Cert)
	}
	return a
}

// commonName is the name in a certificate, which etcd takes for the user; "" where it cannot be read.
func commonName(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return ""
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return ""
	}
	return c.Subject.CommonName
}
