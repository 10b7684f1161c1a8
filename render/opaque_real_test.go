package render

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// TestRealRepositoriesWithHostilePeers compiles the example repository, what pullet init writes, and the example of
// docs/services.md: hostile facts and peers change texts, and no step.
func TestRealRepositoriesWithHostilePeers(t *testing.T) {
	for name, files := range map[string]fs.FS{
		"example-repo": os.DirFS("../example-repo"), "init": os.DirFS("../cmd/pullet/starter"), "docs/services.md": documented(t, "../docs/services.md"),
	} {
		t.Run(name, func(t *testing.T) {
			r := Open(Layer{Name: "main", FS: files})
			nodes, err := r.Nodes()
			if err != nil {
				t.Fatal(err)
			}
			for _, node := range nodes {
				want := ""
				for i, text := range append([]string{"safe"}, hostile...) {
					got := realShape(t, r, node, text)
					if i == 0 {
						want = got
					}
					if got != want {
						t.Errorf("%s: %.40q: got %s\nwant %s", node.Name, text, got, want)
					}
				}
			}
		})
	}
}

func realShape(t *testing.T, r *Repository, node Node, text string) string {
	t.Helper()
	in := of(text)
	in.Node = node
	in.Facts = Facts{"os": "debian", "osFamily": "debian", "osMajor": "13", "fqdn": text, "address": text, "memory": 2048, "addresses": map[string]any{text: []any{text}}}
	in.View.Nodes["web9"] = Node{Name: text, Labels: map[string]string{"role": "web"}}
	cat, err := r.Compile(in)
	if err != nil {
		t.Errorf("%s: %.40q: %v", node.Name, text, err)
		return ""
	}
	var out strings.Builder
	for _, j := range cat.Jobs {
		for _, s := range j.Steps {
			fmt.Fprintln(&out, s.ID(), s.Action, shapeOf(s.Params.node()))
		}
	}
	return out.String()
}

var fileOfPage = regexp.MustCompile("(?s)```yaml\n# ([a-z/]+\\.yaml)\n(.*?)```")

// documented are the files of a repository that a page shows.
func documented(t *testing.T, page string) fs.FS {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	out := fstest.MapFS{}
	for _, m := range fileOfPage.FindAllStringSubmatch(string(text), -1) {
		out[m[1]] = &fstest.MapFile{Data: []byte(m[2])}
	}
	if len(out) < 3 {
		t.Fatalf("found %d files in %s", len(out), page)
	}
	return out
}
