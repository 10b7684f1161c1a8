package gitremote

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
)

// HostKeyError says that a server's host key is not the one that is known, or
// that none is known.
type HostKeyError struct {
	Addr, File  string
	Key         string // its type and fingerprint
	Changed     bool   // there is another one in File
	Unsupported bool   // File has keys of types that the server does not have
	Unreadable  error  // the first line of File that was skipped; nil: none was
}

func (e *HostKeyError) Error() string {
	scan := keyscan(e.Addr, e.File)
	switch {
	case e.Unsupported:
		return fmt.Sprintf(
			"the server's host keys are of other types than those in %s: run: %s, and compare the fingerprint with its owner",
			e.File,
			scan,
		)
	case e.Changed:
		return fmt.Sprintf(
			"the host key of %s has changed: it shows %s, which is not the one in %s: someone may be in between; if its "+
				"owner confirms the new fingerprint, remove the old line (ssh-keygen -f %s -R '%s') and run: %s",
			e.Addr,
			e.Key,
			e.File,
			e.File,
			knownhosts.Normalize(e.Addr),
			scan,
		)
	}
	text := fmt.Sprintf(
		"the host key of %s is not in %s: run: %s, and compare the fingerprint with its owner (it shows %s)",
		e.Addr, e.File, scan, e.Key,
	)
	if e.Unreadable != nil {
		text += fmt.Sprintf("; a line of that file was skipped: %v", e.Unreadable)
	}
	return text
}

// AlgorithmError says that a server and pullet have no algorithm in common.
type AlgorithmError struct {
	What         string // such as "key exchange", "host key" or "client to server cipher"
	Theirs, Ours []string
}

func (e *AlgorithmError) Error() string {
	setting := "HostKeyAlgorithms"
	switch {
	case e.What == "key exchange":
		setting = "KexAlgorithms"
	case strings.HasSuffix(e.What, "cipher"):
		setting = "Ciphers"
	case strings.HasSuffix(e.What, "MAC"):
		setting = "MACs"
	}
	return fmt.Sprintf(
		"the ssh server and pullet have no algorithm for %s in common: the server has %s; allow one of these there "+
			"(OpenSSH: %s in sshd_config): %s",
		e.What, clean(strings.Join(e.Theirs, ", ")), setting, strings.Join(e.Ours, ", "),
	)
}

// login logs in with a key file and trusts exactly one known_hosts file. What
// happened so far tells why a handshake failed.
type login struct {
	user, addr, file string
	signer           ssh.Signer
	hosts            *knownhosts.HostKeyDB
	unreadable       error // the first line of file that was skipped; nil: none was
	hostError        error
	offered          bool // the host key was right and our key was offered
}

func newLogin(ep *transport.Endpoint, auth Auth) (*login, error) {
	key, err := ReadSecret(auth.SSHKey)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(key)
	if missing := (*ssh.PassphraseMissingError)(nil); errors.As(err, &missing) {
		return nil, fmt.Errorf(
			"the key %s has a passphrase, which nobody can type here: ssh-keygen -p -N '' -f %s",
			auth.SSHKey,
			auth.SSHKey,
		)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the key %s: %w", auth.SSHKey, err)
	}
	hosts, unreadable, err := readKnownHosts(auth.KnownHosts)
	if err != nil {
		return nil, fmt.Errorf("cannot read known hosts: %w", err)
	}
	user := ep.User
	if user == "" {
		user = "git"
	}
	return &login{user: user, addr: address(ep), file: auth.KnownHosts, signer: signer, hosts: hosts,
		unreadable: unreadable}, nil
}

func (l *login) config() *ssh.ClientConfig {
	return &ssh.ClientConfig{
		// The library knows group-exchange-sha256 and does not offer it by itself.
		Config: ssh.Config{KeyExchanges: append(ssh.SupportedAlgorithms().KeyExchanges, ssh.InsecureKeyExchangeDH14SHA1)},
		User:   l.user,
		Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			l.offered = true
			return []ssh.Signer{l.signer}, nil
		})},
		HostKeyCallback: l.checkHost,
		// Without this a server with keys of several types may show one that
		// the file does not have, and look like an impostor.
		HostKeyAlgorithms: l.hosts.HostKeyAlgorithms(l.addr),
	}
}

// checkHost verifies a host key.
func (l *login) checkHost(addr string, remote net.Addr, key ssh.PublicKey) error {
	err := l.hosts.HostKeyCallback()(addr, remote, key)
	if changed := knownhosts.IsHostKeyChanged(err); changed || knownhosts.IsHostUnknown(err) {
		err = &HostKeyError{
			Addr:    addr,
			File:    l.file,
			Key:     key.Type() + " " + ssh.FingerprintSHA256(key),
			Changed: changed, Unreadable: l.unreadable,
		}
	}
	l.hostError = err
	return err
}

// explain says why a handshake failed.
func (l *login) explain(err error) error {
	_, broken := errors.AsType[net.Error](err)
	differ, noCommon := errors.AsType[*ssh.AlgorithmNegotiationError](err)
	switch {
	case l.hostError != nil:
		return l.hostError
	case noCommon && differ.What == "host key" && len(l.hosts.HostKeyAlgorithms(l.addr)) > 0:
		return &HostKeyError{Addr: l.addr, File: l.file, Unsupported: true}
	case noCommon:
		return &AlgorithmError{What: differ.What, Theirs: differ.RequestedAlgorithms, Ours: differ.SupportedAlgorithms}
	case l.offered && !broken:
		return &AuthError{SSH: true}
	}
	return err
}

// keyscan is the command that adds a host's keys to a known_hosts file.
func keyscan(addr, file string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "22" {
		return fmt.Sprintf("ssh-keyscan -H %s >> %s", host, file)
	}
	return fmt.Sprintf("ssh-keyscan -H -p %s %s >> %s", port, host, file)
}
