package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/ownfile"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// ownFile is a file or a directory that the configuration names.
type ownFile struct {
	key    string // of the configuration
	path   *string
	secret secrecy
}

// secrecy is what becomes of a file that others can read.
type secrecy int

const (
	public  secrecy = iota // nothing
	warned                 // a warning of each pull
	refused                // who uses it refuses it
)

// ownFiles are the files and directories that say what pullet does here. A test holds the list to the fields of Config.
func (c *Config) ownFiles() []ownFile {
	out := []ownFile{
		{"paths.state", &c.Paths.State, public},
		{"paths.hostVars", &c.Paths.HostVars, public},
		{"etcd.dir", &c.Etcd.Dir, public},
		{"etcd.tls.ca", &c.Etcd.TLS.CA, public},
		{"etcd.tls.cert", &c.Etcd.TLS.Cert, public},
		{"etcd.tls.key", &c.Etcd.TLS.Key, warned},
		{"etcd.operator.ca", &c.Etcd.Operator.CA, public},
		{"etcd.operator.cert", &c.Etcd.Operator.Cert, public},
		{"etcd.operator.key", &c.Etcd.Operator.Key, warned},
		{"datastore.dir", &c.Datastore.Dir, public},
		{"datastore.backup.headersFile", &c.Datastore.Backup.HeadersFile, refused},
		{"datastore.backup.ca", &c.Datastore.Backup.CA, public},
		{"etcd.passwordFile", &c.Etcd.PasswordFile, warned},
		{"agent.logs.ca", &c.Agent.Logs.CA, public},
		{"agent.logs.headersFile", &c.Agent.Logs.HeadersFile, refused},
		{"agent.logs.tokenFile", &c.Agent.Logs.TokenFile, refused},
		{"agent.metrics.tokenFile", &c.Agent.Metrics.TokenFile, refused},
		{"agent.traces.ca", &c.Agent.Traces.CA, public},
		{"agent.traces.headersFile", &c.Agent.Traces.HeadersFile, refused},
		{"agent.tls.cert", &c.Agent.TLS.Cert, public},
		{"agent.tls.key", &c.Agent.TLS.Key, refused},
		{"extensions.allowedSigners", &c.Extensions.AllowedSigners, public},
	}
	for i := range c.Secrets.Identities {
		out = append(out, ownFile{"secrets.identities", &c.Secrets.Identities[i], refused})
	}
	for i := range c.Agent.Webhooks {
		h := &c.Agent.Webhooks[i]
		key := "agent.webhooks." + h.Name + "."
		out = append(
			out,
			ownFile{key + "tokenFile", &h.TokenFile, refused},
			ownFile{key + "secretFile", &h.SecretFile, refused},
		)
	}
	for i := range c.Repositories {
		r := &c.Repositories[i]
		verify := "repositories." + r.Name + ".verify."
		for _, keys := range []ownFile{
			{verify + "openpgp", &r.Verify.OpenPGP, public},
			{verify + "allowedSigners", &r.Verify.AllowedSigners, public},
		} {
			if !strings.HasPrefix(*keys.path, puller.InRepository) {
				out = append(out, keys)
			}
		}
		key := "repositories." + r.Name + ".auth."
		out = append(
			out,
			ownFile{"repositories." + r.Name + ".tls.ca", &r.TLS.CA, public},
			ownFile{key + "sshKey", &r.Auth.SSHKey, refused},
			ownFile{key + "knownHosts", &r.Auth.KnownHosts, public},
			ownFile{
				key + "passwordFile",
				&r.Auth.PasswordFile,
				refused,
			},
			ownFile{key + "tokenFile", &r.Auth.TokenFile, refused},
		)
	}
	return out
}

// anchor makes relative paths relative to the directory of the configuration,
// wherever pullet is started.
func (c *Config) anchor() error {
	dir, err := filepath.Abs(filepath.Dir(c.file))
	if err != nil {
		return err
	}
	for _, f := range c.ownFiles() {
		if *f.path != "" && !filepath.IsAbs(*f.path) {
			*f.path = filepath.Join(dir, *f.path)
		}
	}
	return nil
}

// CheckFiles refuses files that tell pullet what to do and that somebody else can write. What is not there is the
// reader's to report.
func (c *Config) CheckFiles() error {
	files := c.ownFiles()
	for _, file := range c.varFiles() {
		files = append(files, ownFile{"paths.hostVars", &file, public})
	}
	var errs []error
	for _, f := range files {
		if *f.path == "" {
			continue
		}
		if err := ownfile.Check(*f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("%s: %w", f.key, err))
		}
	}
	return errors.Join(errs...)
}

// OpenSecrets are the files with secrets that others can read.
func (c *Config) OpenSecrets() []error { return c.openSecrets(warned, refused) }

func (c *Config) openSecrets(kinds ...secrecy) (errs []error) {
	for _, f := range append(c.ownFiles(), c.secretVars()...) {
		var open *ownfile.OpenError
		if slices.Contains(kinds, f.secret) && *f.path != "" && errors.As(ownfile.Private(*f.path), &open) {
			errs = append(errs, fmt.Errorf("%s: %w", f.key, open))
		}
	}
	return errs
}

// varFiles are the files of host variables.
func (c *Config) varFiles() []string {
	files, err := filepath.Glob(filepath.Join(c.Paths.HostVars, "*.yaml"))
	if err != nil { // a name that is no pattern has no such files for the reader either
		return nil
	}
	return files
}

// secretVars are the files of host variables with secrets.
func (c *Config) secretVars() []ownFile {
	var out []ownFile
	for _, file := range c.varFiles() {
		text, err := os.ReadFile(file) // one that cannot be read fails elsewhere
		if err == nil && render.HoldsSecrets(string(text)) {
			out = append(out, ownFile{"paths.hostVars", &file, warned})
		}
	}
	return out
}

// checkEndpoints refuses members of etcd that do not say whether TLS is used, or do not say the same: the client takes
// what the first one says for all, and drops TLS where that is http.
func (c *Config) checkEndpoints() (errs []error) {
	say := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("etcd.endpoints: "+format, args...))
	}
	first := ""
	for _, endpoint := range c.Etcd.Endpoints {
		scheme, _, found := strings.Cut(endpoint, "://")
		if first == "" && found {
			first = scheme
		}
		switch {
		case !found:
			say("%[1]s has no scheme: write https://%[1]s, or http://%[1]s for one without TLS", endpoint)
		case !slices.Contains([]string{"https", "http", "unixs", "unix"}, scheme):
			say("%s: there is no scheme %q: use https, http, unixs or unix", endpoint, scheme)
		case scheme == "http" && c.Etcd.TLS != (state.TLS{}):
			say("%s is http, where etcd.tls has no effect: use https, or remove etcd.tls", endpoint)
		case scheme != first:
			say("%s is %s and the first endpoint is %s: all must have the same scheme", endpoint, scheme, first)
		}
	}
	return errs
}

// checkCleartext refuses to send secrets over connections on which everybody on the way can read them.
func (c *Config) checkCleartext() (errs []error) {
	for _, r := range c.Repositories {
		u, err := url.Parse(r.URL)
		if err == nil && (u.User != nil || r.Auth.PasswordFile != "" || r.Auth.TokenFile != "") && apply.Cleartext(u) {
			errs = append(
				errs,
				fmt.Errorf(
					"repositories.%s: the url is http, and the credentials could be read on the way: use https",
					r.Name,
				),
			)
		}
	}
	for _, endpoint := range c.Etcd.Endpoints {
		u, err := url.Parse(endpoint)
		if err == nil && c.Etcd.Username != "" && apply.Cleartext(u) {
			errs = append(
				errs,
				fmt.Errorf(
					"etcd.endpoints: %s is http, and the password could be read on the way: use https",
					u.Redacted(),
				),
			)
		}
	}
	return errs
}
