package git

import (
	"path/filepath"
	"strings"

	"github.com/pullet/pullet/apply"
)

// Auth names files on the host with credentials, which are read at each use. Those with a secret have mode 0600.
type Auth struct {
	SSHKey       string `yaml:"sshKey"`       // a private key without a passphrase
	KnownHosts   string `yaml:"knownHosts"`   // the only place where a server's host key is looked up
	Username     string `yaml:"username"`     // for https; with a token default git
	PasswordFile string `yaml:"passwordFile"` // the password of username
	TokenFile    string `yaml:"tokenFile"`    // an access token
}

func (g Auth) check(protocol string) error {
	paths := map[string]string{
		"sshKey":       g.SSHKey,
		"knownHosts":   g.KnownHosts,
		"passwordFile": g.PasswordFile,
		"tokenFile":    g.TokenFile,
	}
	for param, path := range paths {
		if path != "" && !filepath.IsAbs(path) {
			return apply.BadParam("auth", "%s: %q is not an absolute path", param, path)
		}
	}
	ssh, web := protocol == "ssh", strings.HasPrefix(protocol, "http")
	switch {
	case ssh && (g.SSHKey == "" || g.KnownHosts == ""):
		return apply.BadParam(
			"auth",
			"an ssh url needs sshKey, a private key, and knownHosts, a file made with ssh-keyscan",
		)
	case !ssh && (g.SSHKey != "" || g.KnownHosts != ""):
		return apply.BadParam("auth", "sshKey and knownHosts are for ssh urls")
	case !web && (g.Username != "" || g.PasswordFile != "" || g.TokenFile != ""):
		return apply.BadParam("auth", "username, passwordFile and tokenFile are for https urls")
	case g.PasswordFile != "" && g.TokenFile != "":
		return apply.BadParam("auth", "passwordFile and tokenFile exclude each other: keep one")
	case g.PasswordFile != "" && g.Username == "":
		return apply.BadParam("auth", "passwordFile needs username")
	}
	return nil
}
