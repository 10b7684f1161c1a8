package agent

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestRelativePaths: a relative path in the configuration, and in a drop-in, is
// relative to the directory of the configuration, wherever the root is. An absolute one is literal.
func TestRelativePaths(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "pullet.yaml")
	text := "node: {name: web1}\n" +
		"repositories: [{name: main, url: /srv/state.git, auth: {sshKey: deploy_key, knownHosts: /etc/ssh/known}, tls: {ca: git.pem}}]\n" +
		"etcd: {endpoints: ['https://etcd1.example.org:2379'], tls: {ca: pki/ca.pem, cert: pki/host.pem, key: pki/host.key}}\n" +
		"paths: {state: state}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir("/")
	root := t.TempDir()
	c, err := ReadConfig(file, root)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.Repositories[0].Auth.SSHKey, c.Repositories[0].Auth.KnownHosts, c.Repositories[0].TLS.CA, c.Etcd.TLS.CA, c.Etcd.TLS.Cert, c.Etcd.TLS.Key, c.Paths.State, c.Paths.HostVars}
	want := []string{dir + "/deploy_key", "/etc/ssh/known", dir + "/git.pem", dir + "/pki/ca.pem", dir + "/pki/host.pem", dir + "/pki/host.key", dir + "/state", root + "/etc/pullet/vars.d"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
