package agent

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/puller"
)

// TestRelativePaths: a relative path in the configuration, and in a drop-in, is
// relative to the directory of the configuration.
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
	c, err := ReadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.Repositories[0].Auth.SSHKey, c.Repositories[0].Auth.KnownHosts, c.Repositories[0].TLS.CA, c.Etcd.TLS.CA, c.Etcd.TLS.Cert, c.Etcd.TLS.Key, c.Paths.State, c.Paths.HostVars}
	want := []string{dir + "/deploy_key", "/etc/ssh/known", dir + "/git.pem", dir + "/pki/ca.pem", dir + "/pki/host.pem", dir + "/pki/host.key", dir + "/state", "/etc/pullet/vars.d"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestConfigNamesFiles: every setting that names a file is in Config.files.
func TestConfigNamesFiles(t *testing.T) {
	c := Config{Repositories: make([]puller.Source, 1)}
	known := map[*string]bool{}
	for _, name := range c.files() {
		known[name] = true
	}
	path := regexp.MustCompile(`(?i)(file|key|knownhosts|^ca|cert|dir|hostvars|^state)$`)
	var walk func(v reflect.Value, at string)
	walk = func(v reflect.Value, at string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
				if v.Type().Field(i).IsExported() && tag != "-" {
					walk(v.Field(i), at+"."+tag)
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i), at)
			}
		case reflect.String:
			p, isText := v.Addr().Interface().(*string)
			if isText && path.MatchString(at[strings.LastIndex(at, ".")+1:]) && !known[p] {
				t.Errorf("%s names a file and is not in Config.files", at)
			}
		}
	}
	walk(reflect.ValueOf(&c).Elem(), "")
}
