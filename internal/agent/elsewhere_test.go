package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/facts"
	"github.com/pullet/pullet/state"
)

// TestRepresentatives: one node of each set of labels comes first, and this one never.
func TestRepresentatives(t *testing.T) {
	t.Parallel()
	web, db := map[string]string{"role": "web", "zone": "a"}, map[string]string{"role": "db"}
	inventory := render.Inventory{}
	for name, labels := range map[string]map[string]string{"a1": web, "a2": web, "b1": db, "b2": db, "c1": nil} {
		inventory[name] = render.Node{Name: name, Labels: labels}
	}
	var got []string
	for _, n := range representatives(inventory, "a1") {
		got = append(got, n.Name)
	}
	if s := strings.Join(got, " "); s != "a2 b1 c1 b2" {
		t.Error(s)
	}
	for i := range elsewhereNodes {
		inventory[fmt.Sprint("n", i)] = render.Node{}
	}
	if n := len(representatives(inventory, "")); n != elsewhereNodes {
		t.Errorf("%d nodes", n)
	}
}

// openStore is the record of a fleet of its own.
func openStore(t *testing.T) *state.Store {
	t.Helper()
	store, err := state.Open(t.Context(), state.Config{Fleet: "default", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// TestNoPeerStopsCommits: whatever a node of the inventory registers, commits without a mistake are proposed. One
// with a mistake is not, unless the facts of the node excuse it.
func TestNoPeerStopsCommits(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	commits := map[string]struct {
		base, job string
		mistaken  bool
	}{
		"a fact":                    {"", "{{ index server.addresses `bond9` 0 }}", false},
		"a fact by another name":    {"", "{{ $s := server.addresses }}{{ index (index $s `bond9`) 0 }}", false},
		"a fact in the dot":         {"", "{{ with server.addresses }}{{ index .bond9 0 }}{{ end }}", false},
		"a file for each host":      {"files: {role=web: [{name: own, paths: ['{{ server.fqdn }}.yaml']}]}", "{{ vars.x }}", false},
		"another host":              {"", "{{ (index servervars `web1`).os }}{{ range pullet.servers `role=db` }}{{ (index servervars .).os.x }}{{ end }}", false},
		"a service":                 {"", "{{ (index (services `db`) 0).address }}", false},
		"a mistake":                 {"", "{{ vars.none }}", true},
		"a mistake behind a choice": {"", "{{ if eq server.os `pulletos` }}{{ else }}{{ vars.none }}{{ end }}", true},
	}
	own := facts.Sample("db1")
	own["os"] = "ours"
	for hostile, registered := range map[string]render.Facts{
		"honest": facts.Sample("web1"), "nothing": nil, "empty": {}, "the proposer's": own,
		"texts": {"os": "{{ fail `x` }}", "fqdn": "../x", "addresses": "none"},
		"other": {"os": []any{}, "fqdn": map[string]any{}, "addresses": map[string]any{"bond9": []any{}}},
	} {
		node := state.Node{Name: "web1", Labels: map[string]string{"role": "db"}, RepoVars: true}
		if _, err := store.Presences.Register(t.Context(), node, state.Alive{Instance: "i", Owner: "o"}, registered, time.Minute); err != nil {
			t.Fatal(err)
		}
		for name, c := range commits {
			t.Run(hostile+"/"+name, func(t *testing.T) {
				v := &state.Version{ID: strings.Repeat("a", 40)}
				p := proposer(t, store, v, fstest.MapFS{
					"nodes/all.yaml": {Data: []byte("nodes: {web1: {labels: {role: web}}, web2: {labels: {role: web}}, db1: {labels: {role: db}}}")},
					"base/vars.yaml": {Data: []byte(c.base)}, "vars/web1.yaml": {Data: []byte("x: 1")},
					"base/jobs.yaml": {Data: []byte("jobs: {role=web: [{name: web}], role=db: []}")},
					"jobs/web.yaml":  {Data: []byte("steps: [{name: s, action: file.managed, parameters: {name: /x, content: \"" + c.job + "\"}}]")},
				})
				here, err := p.compiler.compile(t.Context(), v)
				if err != nil {
					t.Fatal(err)
				}
				err = p.compiler.elsewhere(t.Context(), nil, v, here)
				var found *elsewhereError
				if errors.As(err, &found) != c.mistaken || err != nil && found == nil {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

// proposer is a pull of db1 with a version that is parsed.
func proposer(t testing.TB, store *state.Store, v *state.Version, files fstest.MapFS) *pull {
	log := logrus.New()
	log.SetOutput(io.Discard)
	config := Config{Root: t.TempDir(), Node: Self{Node: render.Node{Name: "db1", Labels: map[string]string{"role": "db"}}}}
	config.Paths.State = t.TempDir()
	a, err := NewIn(outside(config, nil), config, "test", logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	a.versions.parsed, a.versions.at = render.Open(render.Layer{Name: "main", FS: files}), v.ID
	p := a.pull(t.Context(), Options{})
	p.store = store
	return p
}

// BenchmarkElsewhere is what a node compiles before it proposes a version of the example repository, in a fleet of
// so many nodes.
func BenchmarkElsewhere(b *testing.B) {
	for _, nodes := range []int{100, 1000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			files, list := fstest.MapFS{}, "nodes:\n"
			addFiles(b, files, "../../example-repo")
			for i := range nodes {
				list += fmt.Sprintf("  h%d.example.org: {labels: {role: %s}}\n", i, []string{"web", "db", "canary"}[i%3])
			}
			files["nodes/hosts.yaml"] = &fstest.MapFile{Data: []byte(list)}
			v := &state.Version{ID: strings.Repeat("a", 40)}
			p := proposer(b, nil, v, files)
			repo := p.agent.versions.parsed
			cat, err := repo.Compile(render.Input{Node: p.config.Node.Node, Facts: facts.Sample("db1")})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				j := &nodeCompiler{repo: repo, specs: p.outside.Actions, here: render.Input{Facts: facts.Sample("db1"), Version: v.ID}, view: &render.View{}}
				suspects, err := j.suspects(b.Context(), representatives(cat.Inventory, ""))
				if len(suspects) > 0 || err != nil {
					b.Fatal(suspects, err)
				}
			}
		})
	}
}

// addFiles adds the files of a directory.
func addFiles(t testing.TB, to fstest.MapFS, dir string) {
	t.Helper()
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		to[name] = &fstest.MapFile{Data: text}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
