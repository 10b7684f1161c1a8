package action

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/pullet/pullet/apply"
)

// gitSSH logs in with a key and trusts one file of host keys. The library's own ways also ask the known hosts of whoever runs it.
type gitSSH struct {
	user, addr, file string
	signer           ssh.Signer
	hosts            *knownhosts.HostKeyDB
}

func newGitSSH(h *apply.Host, to *transport.Endpoint, auth GitAuth) (*gitSSH, error) {
	key, err := readSecret(h, auth.SSHKey)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(key)
	if missing := (*ssh.PassphraseMissingError)(nil); errors.As(err, &missing) {
		return nil, fmt.Errorf("%s has a passphrase, which nobody can type here: ssh-keygen -p -N '' -f %s", auth.SSHKey, auth.SSHKey)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", auth.SSHKey, err)
	}
	path, err := h.Resolve(auth.KnownHosts)
	if err != nil {
		return nil, err
	}
	hosts, err := knownhosts.NewDB(path)
	if err != nil {
		return nil, fmt.Errorf("known hosts: %w", err)
	}
	l := &gitSSH{user: to.User, file: auth.KnownHosts, signer: signer, hosts: hosts}
	if l.user == "" {
		l.user = "git"
	}
	port := to.Port
	if port <= 0 {
		port = 22
	}
	l.addr = net.JoinHostPort(to.Host, strconv.Itoa(port))
	return l, nil
}

func (l *gitSSH) Name() string   { return "ssh-public-keys" }
func (l *gitSSH) String() string { return "user: " + l.user + ", name: " + l.Name() }

// ClientConfig is what the library's ssh transport asks for.
func (l *gitSSH) ClientConfig() (*ssh.ClientConfig, error) {
	return &ssh.ClientConfig{
		User: l.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(l.signer)}, HostKeyCallback: l.checkHost,
		// Otherwise a server with keys of several types may show one that the file does not have.
		HostKeyAlgorithms: l.hosts.HostKeyAlgorithms(l.addr),
		Timeout:           gitListTimeout,
	}, nil
}

// checkHost verifies a host key and says what helps when it is not known.
func (l *gitSSH) checkHost(addr string, remote net.Addr, key ssh.PublicKey) error {
	err := l.hosts.HostKeyCallback()(addr, remote, key)
	shows := key.Type() + " " + ssh.FingerprintSHA256(key)
	switch {
	case knownhosts.IsHostKeyChanged(err):
		return fmt.Errorf("the host key of %s is not the one in %s, it shows %s: someone may be in between; ask its owner before you replace the line", addr, l.file, shows)
	case knownhosts.IsHostUnknown(err):
		host, port, _ := net.SplitHostPort(l.addr) // as it was joined
		return fmt.Errorf("the host key of %s is not in %s: run: ssh-keyscan -H -p %s %s >> %s, and compare the fingerprint with its owner (it shows %s)",
			addr, l.file, port, host, l.file, shows)
	}
	return err
}
