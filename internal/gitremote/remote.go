package gitremote

import (
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
)

// Remote is a git repository and how to reach it.
type Remote struct {
	// URL is an https, http, ssh or file URL, user@host:path, or an absolute
	// path to a repository on this machine.
	URL   string
	Auth  Auth
	TLS   TLS
	Proxy string // URL of a proxy for http and https; default: HTTPS_PROXY, HTTP_PROXY and NO_PROXY
}

// Auth names the files with credentials. They are read at each use, so they can
// be rotated under a running agent, and must be readable by their owner only.
type Auth struct {
	// SSHKey is a private key without a passphrase.
	SSHKey string `yaml:"sshKey"`
	// KnownHosts is the only place where an ssh server's host key is looked
	// up; a server that is not in it is refused.
	KnownHosts string `yaml:"knownHosts"`
	// Username is the user for https; with TokenFile default git.
	Username string `yaml:"username"`
	// PasswordFile holds the password of Username.
	PasswordFile string `yaml:"passwordFile"`
	// TokenFile holds an access token, as GitHub, GitLab and Gitea issue them.
	TokenFile string `yaml:"tokenFile"`
}

// TLS says whom to believe in https.
type TLS struct {
	// CA is a file with the certificates of the authorities that may have
	// signed the server's, in PEM; default: those of the host.
	CA string `yaml:"ca"`
}

// ParseURL parses a URL as git does, or user@host:path. A host that is an IPv6 address stands in brackets in both. The
// error quotes the whole URL, which may hold secrets.
func ParseURL(raw string) (*transport.Endpoint, error) {
	login, rest, found := strings.Cut(raw, "[")
	address, path, closed := strings.Cut(rest, "]:")
	user, at := strings.CutSuffix(login, "@")
	if ip, err := netip.ParseAddr(address); found && closed && err == nil && ip.Is6() && path != "" &&
		(at || login == "") && !strings.ContainsAny(user, "@:/") { // go-git takes the address for host and path
		return &transport.Endpoint{Protocol: "ssh", User: user, Host: address, Port: defaultSSHPort, Path: path}, nil
	}
	ep, err := transport.NewEndpoint(raw)
	if err == nil && ep.Protocol == "ssh" {
		ep.Host = strings.TrimSuffix(strings.TrimPrefix(ep.Host, "["), "]")
	}
	return ep, err
}

// Endpoint is the parsed URL: its Protocol is http, https, ssh or file.
func (r Remote) Endpoint() (*transport.Endpoint, error) {
	ep, err := ParseURL(r.URL)
	if err != nil {
		// The cause quotes the whole URL, secrets included.
		return nil, fmt.Errorf("url %s cannot be parsed", r.Redacted())
	}
	switch ep.Protocol {
	case "http", "https", "ssh":
		return ep, nil
	case "file":
		if !strings.HasPrefix(r.URL, "file://") && !filepath.IsAbs(r.URL) {
			return nil, fmt.Errorf("url %s is neither a URL nor an absolute path", r.URL)
		}
		if path, ok := strings.CutPrefix(r.URL, "file://"); ok && !filepath.IsAbs(path) {
			return nil, fmt.Errorf("url %s has no absolute path: write file:///PATH, with three slashes", r.URL)
		}
		return ep, nil
	}
	return nil, fmt.Errorf(
		"url %s: %s is not supported: use https, http, ssh, file or an absolute path",
		r.Redacted(),
		ep.Protocol,
	)
}

// Local says whether the repository is on this machine.
func (r Remote) Local() bool {
	ep, err := r.Endpoint()
	return err == nil && ep.Protocol == "file"
}

// Redacted is the URL as messages may show it: a user may be needed to understand
// an ssh URL, everything else before the @ or after the ? may be a secret.
func (r Remote) Redacted() string {
	scheme, rest, ok := strings.Cut(r.URL, "://")
	if !ok {
		return r.URL
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		return scheme + "://" + rest[strings.LastIndex(rest, "@")+1:]
	}
	u.RawQuery, u.Fragment = "", ""
	if u.User != nil && scheme == "ssh" {
		u.User = url.User(u.User.Username())
	} else {
		u.User = nil
	}
	return u.String()
}

// Try is a command that reads the remote as this package does, but for a password or a token.
func (r Remote) Try() string {
	ls := "git ls-remote " + r.Redacted()
	ep, err := r.Endpoint()
	if err != nil {
		return ls
	}
	if r.Proxy != "" && ep.Protocol != "ssh" {
		ls = "git -c http.proxy=" + r.Proxy + " ls-remote " + r.Redacted()
	}
	switch {
	case ep.Protocol == "ssh" && r.Auth.SSHKey != "":
		return fmt.Sprintf(
			"GIT_SSH_COMMAND='ssh -i %s -o IdentitiesOnly=yes -o UserKnownHostsFile=%s' %s",
			r.Auth.SSHKey,
			r.Auth.KnownHosts,
			ls,
		)
	case ep.Protocol == "https" && r.TLS.CA != "":
		return fmt.Sprintf("GIT_SSL_CAINFO=%s %s", r.TLS.CA, ls)
	}
	return ls
}
