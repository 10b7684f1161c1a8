package agent

import "path/filepath"

// files are the settings that name files and directories.
func (c *Config) files() []*string {
	logs, tls := &c.Agent.Logs, &c.Etcd.TLS
	out := []*string{
		&c.Etcd.Dir, &c.Etcd.PasswordFile, &tls.CA, &tls.Cert, &tls.Key,
		&logs.HeadersFile, &logs.TokenFile, &logs.CA,
		&c.Paths.State, &c.Paths.HostVars,
	}
	for i := range c.Repositories {
		r := &c.Repositories[i]
		out = append(out, &r.Auth.SSHKey, &r.Auth.KnownHosts, &r.Auth.PasswordFile, &r.Auth.TokenFile, &r.TLS.CA)
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
	for _, name := range c.files() {
		if *name != "" && !filepath.IsAbs(*name) {
			*name = filepath.Join(dir, *name)
		}
	}
	return nil
}
