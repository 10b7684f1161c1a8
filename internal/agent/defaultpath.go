package agent

import (
	"cmp"
	"fmt"

	securejoin "github.com/cyphar/filepath-securejoin"
)

// DefaultPath is a path of pullet's own on a host whose configuration does not set it. It has a type of its own so that
// nobody opens it without asking Below first: --root DIR is another host.
type DefaultPath string

// The default paths. Those below the state directory or beside the configuration follow from them, such as etcd,
// program and upgrade.json.
const (
	DefaultConfig    DefaultPath = "/etc/pullet/pullet.yaml"
	DefaultState     DefaultPath = "/var/lib/pullet"
	DefaultHostVars  DefaultPath = "/etc/pullet/vars.d"
	DefaultDatastore DefaultPath = "/var/lib/pullet-datastore"

	// The keys of the host's SSH server, in place of secrets.identities.
	defaultEd25519Key DefaultPath = "/etc/ssh/ssh_host_ed25519_key"
	defaultRSAKey     DefaultPath = "/etc/ssh/ssh_host_rsa_key"
)

// Below returns where the path of the host with this root is on this machine. Links are followed beneath the root.
func (p DefaultPath) Below(root string) (string, error) {
	if root == "/" || root == "" { // a link in the path is for the reader to follow, and to check
		return string(p), nil
	}
	at, err := securejoin.SecureJoin(root, string(p))
	if err != nil {
		return "", fmt.Errorf("%s below --root %s: %w", p, root, err)
	}
	return at, nil
}

// fillPaths sets the paths that are empty to their defaults, below the root.
func fillPaths(c *Config) error {
	for _, f := range []struct {
		path *string
		is   DefaultPath
	}{
		{&c.Paths.State, DefaultState}, {&c.Paths.HostVars, DefaultHostVars}, {&c.Datastore.Dir, DefaultDatastore},
	} {
		at, err := f.is.Below(c.Root)
		if err != nil {
			return err
		}
		*f.path = cmp.Or(*f.path, at)
	}
	return nil
}
