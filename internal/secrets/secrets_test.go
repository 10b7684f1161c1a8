package secrets

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/render"
)

// publicKey makes an SSH key and gives its public half.
func publicKey(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text))[:2], " ")
}

// TestReaders: the last pattern that matches a path says who may read it: hosts by targets, and people.
func TestReaders(t *testing.T) {
	t.Parallel()
	web1, db1, ada, bob := publicKey(t), publicKey(t), publicKey(t), publicKey(t)
	repo := render.Open(render.Layer{Name: "main", FS: fstest.MapFS{
		"nodes/hosts.yaml": {Data: []byte("nodes: {web1: {labels: {role: web}}, db1: {labels: {role: db}}, db2: {labels: {role: db}}}")},
		"secrets.yaml": {Data: []byte("hosts: {web1: " + web1 + ", db1: " + db1 + "}\npeople: {ada: " + ada + ", bob: [" + bob + "]}\n" + `
files:
  'vars/**': {people: ada}
  'vars/db/**': {targets: role=db, people: [bob, ada]}
  'vars/d?.yaml.age': {targets: ['*']}
  'files/*/key.age': {targets: [web*, db1]}
`)},
	}})
	rules, err := Read(repo, repo.Layers()[0])
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"vars/x.yaml.age":      "ada",
		"vars/a/b/c.yaml.age":  "ada",
		"vars/db/x.yaml.age":   "db1 db2 ada bob",
		"vars/db/a/b.yaml.age": "db1 db2 ada bob",
		"vars/db.yaml.age":     "db1 db2 web1",
		"vars/dbx.yaml.age":    "ada",
		"files/tls/key.age":    "db1 web1",
		"files/key.age":        "",
		"files/a/b/key.age":    "",
	} {
		readers, err := rules.Readers(path)
		var names []string
		for _, r := range readers {
			names = append(names, r.Name)
		}
		if got := strings.Join(names, " "); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
	if readers, _ := rules.Readers("vars/db/x.yaml.age"); len(Keys(readers)) != 3 || len(readers[1].Keys) != 0 {
		t.Errorf("%+v", readers)
	}
}

// TestFormer names those who could read a file before, by the header of the file and the rules of then.
func TestFormer(t *testing.T) {
	t.Parallel()
	web1, db1, ada := publicKey(t), publicKey(t), publicKey(t)
	was := "hosts: {web1: " + web1 + ", db1: " + db1 + "}\npeople: {ada: " + ada + "}\nfiles: {'vars/**': {targets: ['*'], people: ada}}"
	key := func(text string) trust.Recipient {
		r, err := trust.ParseRecipient(text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, c := range []struct {
		sealed, now []string
		want        []string
	}{
		{[]string{web1, db1, ada}, []string{web1, db1, ada}, nil},
		{[]string{web1, db1, ada}, []string{db1}, []string{"ada", "web1"}},
		{[]string{db1}, []string{ada}, []string{"db1"}},
		{[]string{db1}, []string{db1, ada}, nil},
	} {
		var to, now []trust.Recipient
		for _, text := range c.sealed {
			to = append(to, key(text))
		}
		for _, text := range c.now {
			now = append(now, key(text))
		}
		sealed, err := trust.Seal([]byte("x"), to)
		if err != nil {
			t.Fatal(err)
		}
		header, err := trust.ReadersOf(sealed)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Former([]byte(was), "vars/x.yaml.age", header, now)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d keys, now %d: %v, %v, want %v", len(c.sealed), len(c.now), got, err, c.want)
		}
	}
}
