package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/internal/event/webhook"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
)

// namesFile are the keys of the configuration that name a file or a directory.
var namesFile = regexp.MustCompile(`^(ca|cert|key|sshKey|knownHosts|dir|state|hostVars)$|File$`)

// fill gives each field of a struct that names a file a path of its own.
func fill(v reflect.Value, n *int) {
	for i := range v.NumField() {
		f, tag := v.Field(i), v.Type().Field(i).Tag.Get("yaml")
		key, _, _ := strings.Cut(tag, ",")
		switch {
		case f.Kind() == reflect.Struct && v.Type().Field(i).IsExported():
			fill(f, n)
		case key == "identities":
			*n++
			f.Set(reflect.ValueOf(render.Strings{fmt.Sprint("/own/", *n)}))
		case f.Kind() == reflect.String && namesFile.MatchString(key):
			*n++
			f.SetString(fmt.Sprint("/own/", *n))
		}
	}
}

// TestOwnFiles: every file that the configuration can name is checked.
func TestOwnFiles(t *testing.T) {
	t.Parallel()
	c, n := Config{Repositories: make([]puller.Source, 1), Agent: Loop{Webhooks: make([]webhook.Hook, 1)}}, 0
	fill(reflect.ValueOf(&c).Elem(), &n)
	fill(reflect.ValueOf(&c.Agent.Webhooks[0]).Elem(), &n)
	fill(reflect.ValueOf(&c.Repositories[0]).Elem(), &n)
	if n < 18 {
		t.Fatalf("only %d files", n)
	}
	for i := range n {
		path := fmt.Sprint("/own/", i+1)
		if !slices.ContainsFunc(c.ownFiles(), func(f ownFile) bool { return *f.path == path }) {
			t.Errorf("a file is not checked: %+v has %s", c, path)
		}
	}
}

// TestOpenSecrets: each secret that others can read is named.
func TestOpenSecrets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c := Config{Repositories: []puller.Source{{Name: "main"}}, Agent: Loop{Webhooks: []webhook.Hook{{Name: "forge"}}}}
	for _, f := range c.ownFiles() {
		*f.path = file
	}
	c.Paths.HostVars = "" // its files are read
	var got []string
	for _, err := range c.OpenSecrets() {
		key, said, _ := strings.Cut(err.Error(), ": ")
		if got = append(got, key); said != "credentials in "+file+" are open to others (mode 0644): chmod 600 "+file {
			t.Error(err)
		}
	}
	want := []string{
		"etcd.tls.key", "etcd.operator.key", "datastore.backup.headersFile", "etcd.passwordFile", "agent.logs.headersFile", "agent.logs.tokenFile",
		"agent.metrics.tokenFile", "agent.traces.headersFile", "agent.tls.key", "agent.webhooks.forge.tokenFile", "agent.webhooks.forge.secretFile",
		"repositories.main.auth.sshKey", "repositories.main.auth.passwordFile", "repositories.main.auth.tokenFile",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestCleartext: credentials are not sent where they can be read on the way.
func TestCleartext(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const repository = "repositories: [{name: main, url: 'URL', auth: {username: u, passwordFile: FILE}}]\n"
	for _, c := range []struct{ text, want string }{
		{strings.ReplaceAll(repository, "URL", "http://git.example.org/x"), "repositories.main: the url is http, and the credentials could be read on the way: use https"},
		{"repositories: [{name: main, url: 'http://u:p@git.example.org/x'}]\n", "repositories.main: the url is http, and the credentials could be read on the way: use https"},
		{strings.ReplaceAll(repository, "URL", "http://127.0.0.1:80/x"), ""},
		{strings.ReplaceAll(repository, "URL", "https://git.example.org/x"), ""},
		{"repositories: [{name: main, url: 'http://git.example.org/x'}]\n", ""},
		{repositories + "etcd: {endpoints: ['http://e:2379'], username: u, passwordFile: FILE}\n", "etcd.endpoints: http://e:2379 is http, and the password could be read on the way: use https"},
		{repositories + "etcd: {endpoints: ['e:2379']}\n", "etcd.endpoints: e:2379 has no scheme: write https://e:2379, or http://e:2379 for one without TLS"},
		{repositories + "etcd: {endpoints: ['unix://etcd.sock:0']}\n", ""},
		{repositories + "etcd: {endpoints: ['http://e:2379'], tls: {ca: FILE}}\n", "etcd.endpoints: http://e:2379 is http, where etcd.tls has no effect: use https, or remove etcd.tls"},
		{repositories + "etcd: {endpoints: ['https://e:2379', 'http://f:2379']}\n", "etcd.endpoints: http://f:2379 is http and the first endpoint is https: all must have the same scheme"},
		{repositories + "etcd: {endpoints: ['e:2379', 'https://f:2379']}\n", "etcd.endpoints: e:2379 has no scheme: write https://e:2379, or http://e:2379 for one without TLS"},
		{repositories + "etcd: {endpoints: ['tcp://e:2379']}\n", "etcd.endpoints: tcp://e:2379: there is no scheme \"tcp\": use https, http, unixs or unix"},
		{repositories + "etcd: {endpoints: ['https://e:2379', 'https://f:2379'], tls: {ca: FILE}}\n", ""},
		{repositories + "etcd: {endpoints: ['https://e:2379'], username: u, passwordFile: FILE}\n", ""},
		{repositories + "etcd: {endpoints: ['http://e:2379']}\n", ""},
	} {
		file := writeConfig(t, strings.ReplaceAll(c.text, "FILE", secret), "")
		_, err := ReadConfig(file, t.TempDir())
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && !(strings.HasPrefix(got, file+":") && strings.HasSuffix(got, ": "+c.want)) {
			t.Errorf("%s: %s, want %q", c.text, got, c.want)
		}
	}
}
