package action_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// TestExamplesBehindLinks runs each example on its host and on one where a link leads to each of the files. The step
// leaves the same content at each path on both hosts, or it fails and changes nothing. So no action empties a file for
// which it was given no content. After it succeeded it has nothing to do.
func TestExamplesBehindLinks(t *testing.T) {
	for _, spec := range action.All() {
		for _, c := range examples[spec.Name] {
			files := plantedFiles(c)
			if c.Whole || spec.Passive || len(files) == 0 || spec.Name == "service.ensure" {
				continue // to systemd a link is another unit
			}
			t.Run(spec.Name+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				plain, linked := c.Scene(t), c.Scene(t)
				old := map[string]string{}
				for _, name := range files {
					old[name] = contentAt(t, linked, name)
				}
				behindLinks(linked, files)
				before := actiontest.Tree(t, linked.Root)
				expected := plain.Run(plain.MustBind(spec.Name, c.Params))
				p := linked.MustBind(spec.Name, c.Params)
				r := linked.Run(p)
				if r.Outcome == apply.Failed {
					for _, d := range actiontest.OfFiles(actiontest.Differences(before, actiontest.Tree(t, linked.Root))) {
						if !strings.Contains(d, "/.pwd.lock: ") { // the account tools leave it
							t.Errorf("failed (%s) and changed: %s", r.Reason, d)
						}
					}
					return
				}
				for _, name := range files {
					want, have := contentAt(t, plain, name), contentAt(t, linked, name)
					if expected.Outcome != apply.Failed && have != want {
						t.Errorf("%s behind a link: %q, want %q", name, have, want)
					}
					if moved := contentAt(t, linked, elsewhere(name)); moved != old[name] && moved != want {
						t.Errorf("what the link at %s led to: %q, want %q or %q", name, moved, old[name], want)
					}
				}
				if again := linked.Plan(p); again.Outcome != apply.OK && !c.Reads {
					t.Errorf("a plan after the run: %s %q, want ok", again.Outcome, again.Summary)
				}
			})
		}
	}
}

// plantedFiles returns the paths of the files that an example plants.
func plantedFiles(c actiontest.Example) []string {
	var out []string
	for _, e := range c.Host {
		if f := strings.SplitN(e, " ", 3); f[0] == "f" && !slices.Contains(out, f[1]) {
			out = append(out, f[1])
		}
	}
	return out
}

// elsewhere is where the file of a path is when a link leads to it.
func elsewhere(name string) string { return filepath.Join("elsewhere", name) }

// behindLinks moves each file elsewhere, and puts a link to it in its place.
func behindLinks(s *actiontest.Scene, files []string) {
	s.T.Helper()
	for _, name := range files {
		at, to := s.Path(name), s.Path(elsewhere(name))
		target, err := filepath.Rel(filepath.Dir(at), to)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755), os.Rename(at, to), os.Symlink(target, at))
		if err != nil {
			s.T.Fatal(err)
		}
	}
}

// contentAt returns the text of a file, or the reason why there is none.
func contentAt(t *testing.T, s *actiontest.Scene, name string) string {
	t.Helper()
	data, err := os.ReadFile(s.Path(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "(nothing)"
	case err != nil:
		return "(no file)"
	}
	return string(data)
}
