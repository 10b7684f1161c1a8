package puller

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
)

// sshLogin logs in with a key file and trusts exactly one known_hosts file.
// go-git's own method would consult the known hosts of whoever runs it for the
// host key algorithms, and fail where there are none.
type sshLogin struct {
	user, addr string // addr is host:port
	signer     ssh.Signer
	hosts      *knownhosts.HostKeyDB
	hostsFile  string
}

func newSSHLogin(ep *transport.Endpoint, auth Auth) (*sshLogin, error) {
	key, err := ReadSecret(auth.SSHKey)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(key)
	if missing := (*ssh.PassphraseMissingError)(nil); errors.As(err, &missing) {
		return nil, fmt.Errorf("the key %s has a passphrase, which nobody can type here: ssh-keygen -p -N '' -f %s", auth.SSHKey, auth.SSHKey)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the key %s: %w", auth.SSHKey, err)
	}
	hosts, err := knownhosts.NewDB(auth.KnownHosts)
	if err != nil {
		return nil, fmt.Errorf("cannot read known hosts: %w", err)
	}
	user, port := ep.User, ep.Port
	if user == "" {
		user = "git"
	}
	if port <= 0 {
		port = 22
	}
	addr := net.JoinHostPort(ep.Host, strconv.Itoa(port))
	return &sshLogin{user: user, addr: addr, signer: signer, hosts: hosts, hostsFile: auth.KnownHosts}, nil
}

func (l *sshLogin) Name() string   { return "ssh-public-keys" }
func (l *sshLogin) String() string { return "user: " + l.user + ", name: " + l.Name() }

// ClientConfig is what go-git's ssh transport asks for.
func (l *sshLogin) ClientConfig() (*ssh.ClientConfig, error) {
	return &ssh.ClientConfig{
		User:            l.user,
		Auth:            []ssh.AuthMethod{ssh.PublicKeys(l.signer)},
		HostKeyCallback: l.checkHost,
		// Without this a server with keys of several types may show one that
		// the file does not have, and look like an impostor.
		HostKeyAlgorithms: l.hosts.HostKeyAlgorithms(l.addr),
		Timeout:           listTimeout,
	}, nil
}

// checkHost verifies a host key and explains a refusal.
func (l *sshLogin) checkHost(addr string, remote net.Addr, key ssh.PublicKey) error {
	err := l.hosts.HostKeyCallback()(addr, remote, key)
	fingerprint := ssh.FingerprintSHA256(key)
	switch {
	case knownhosts.IsHostKeyChanged(err):
		return fmt.Errorf("the host key of %s has changed: it shows %s %s, which is not the one in %s: someone may be in between; if its owner confirms the new fingerprint, remove the old line (ssh-keygen -f %s -R '%s') and run: %s",
			addr, key.Type(), fingerprint, l.hostsFile, l.hostsFile, knownhosts.Normalize(addr), keyscan(addr, l.hostsFile))
	case knownhosts.IsHostUnknown(err):
		return fmt.Errorf("the host key of %s is not in %s: run: %s, and compare the fingerprint with its owner (it shows %s %s)",
			addr, l.hostsFile, keyscan(addr, l.hostsFile), key.Type(), fingerprint)
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
