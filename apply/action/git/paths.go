package git

import "github.com/pullet/pullet/apply"

// Paths returns the directory with everything in it, a repository of the host, and the files with credentials.
func (a *Checkout) Paths(*apply.Host) []string {
	out := []string{
		a.Name, a.Name + "/", a.Auth.SSHKey, a.Auth.KnownHosts, a.Auth.PasswordFile, a.Auth.TokenFile, a.TLS.CA,
	}
	if a.endpoint != nil && a.endpoint.Protocol == "file" {
		out = append(out, a.endpoint.Path, a.endpoint.Path+"/")
	}
	return out
}
