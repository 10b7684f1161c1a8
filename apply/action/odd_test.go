package action_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/internal/tier"
)

// oddities are what can be odd about the host of an example.
var oddities = map[string]func(s *actiontest.Scene, files []string){
	"second names": func(s *actiontest.Scene, files []string) {
		for _, name := range files {
			s.Plant("f " + elsewhere(name) + "-beside 600 x")
			s.Link(name, elsewhere(name))
		}
	},
	"odd modes": func(s *actiontest.Scene, _ []string) {
		everywhere(s, func(at string, d fs.DirEntry) error {
			switch {
			case strings.HasPrefix(at, s.Path("srv")): // it has repositories, which a user must be able to read
			case d.IsDir():
				return os.Chmod(at, 0o500|fs.ModeSetgid)
			case d.Type().IsRegular():
				return os.Chmod(at, 0o001|fs.ModeSetuid)
			}
			return nil
		})
	},
	"odd names": func(s *actiontest.Scene, _ []string) {
		everywhere(s, func(at string, d fs.DirEntry) error {
			if !d.IsDir() || strings.HasPrefix(at, s.Path("srv/up.git")) {
				return nil // every file of a repository has a meaning
			}
			var errs []error
			for _, name := range []string{"-rf", "*", "line\nbreak", "\xff", "a b ", "ü", "%s", "#x"} {
				errs = append(errs, os.WriteFile(filepath.Join(at, name), []byte("odd"), 0o600))
			}
			return errors.Join(errs...)
		})
	},
}

// notOdd are examples of which an oddity takes what they are about, or which refuse it.
var notOdd = map[string]string{
	"user.present/a home where others write/odd modes":     "nobody else writes there",
	"git.checkout/clone into an empty directory/odd names": "the directory is not empty",
	"file.absent/only empty, and it is/odd names":          "the directory is not empty",
}

// refusesOdd reports whether an action refuses an oddity in general.
func refusesOdd(action, kind string) bool {
	return strings.HasPrefix(action, "ssh.") && kind == "second names" // a user may have made one of them
}

// everywhere visits what an example planted below its root.
func everywhere(s *actiontest.Scene, visit func(at string, d fs.DirEntry) error) {
	s.T.Helper()
	var found []func() error
	err := filepath.WalkDir(s.Root, func(at string, d fs.DirEntry, err error) error {
		if err == nil && at != s.Root {
			found = append(found, func() error { return visit(at, d) })
		}
		return err
	})
	for _, f := range found {
		err = errors.Join(err, f())
	}
	if err != nil {
		s.T.Fatal(err)
	}
}

// TestExamplesOnOddHosts runs each example also where its files have second names, where modes are odd, and where names
// are odd. It does not fail there, and leaves the same content; after it nothing is to be done.
func TestExamplesOnOddHosts(t *testing.T) {
	actiontest.NeedRoot(t)
	tier.Long(t, "runs each example on three hosts more")
	for _, spec := range action.All() {
		for _, c := range examples[spec.Name] {
			files := plantedFiles(c)
			if c.Whole || spec.Passive || len(c.Host) == 0 && c.Prepare == nil {
				continue
			}
			for kind, plant := range oddities {
				name := spec.Name + "/" + c.Name + "/" + kind
				if notOdd[name] != "" || refusesOdd(spec.Name, kind) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					plain, odd := c.Scene(t), c.Scene(t)
					plant(odd, files)
					before := actiontest.Tree(t, odd.Root)
					expected := plain.Run(plain.MustBind(spec.Name, c.Params))
					p := odd.MustBind(spec.Name, c.Params)
					r := odd.Run(p)
					if (r.Outcome == apply.Failed) != (expected.Outcome == apply.Failed) {
						t.Errorf("%s %q %s, and on the plain host %s %q %s", r.Outcome, r.Summary, r.Reason,
							expected.Outcome, expected.Summary, expected.Reason)
					}
					if r.Outcome == apply.Failed {
						unchangedFiles(odd, before, r.Reason)
						return
					}
					for _, name := range files {
						want, have := contentAt(t, plain, name), contentAt(t, odd, name)
						if r.Outcome == expected.Outcome && have != want {
							t.Errorf("%s: %q, want %q", name, have, want)
						}
					}
					if !c.Reads {
						odd.Stays(p)
					}
				})
			}
		}
	}
}
