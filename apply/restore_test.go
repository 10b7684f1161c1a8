package apply

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestKept: what an upgrade did to a path is seen whatever it was, is undone, and can be undone again.
func TestKept(t *testing.T) {
	file := func(content string, mode os.FileMode) func(string) error {
		return func(path string) error {
			return errors.Join(os.WriteFile(path, []byte(content), 0o600), os.Chmod(path, mode))
		}
	}
	dir := func(mode os.FileMode) func(string) error {
		return func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, mode)) }
	}
	link := func(to string) func(string) error { return func(path string) error { return os.Symlink(to, path) } }
	instead := func(make func(string) error) func(string) error {
		return func(path string) error { return errors.Join(os.Remove(path), make(path)) }
	}
	nothing := func(string) error { return nil }
	chmod := func(mode os.FileMode) func(string) error {
		return func(path string) error { return os.Chmod(path, mode) }
	}
	for name, c := range map[string]struct {
		was, becomes func(path string) error
		still        bool
	}{
		"nothing":                             {nothing, nothing, true},
		"a file where nothing was":            {nothing, file("x", 0o644), false},
		"a file that nobody may read":         {nothing, file("", 0), false}, // root's has the attributes of what is not there
		"a link where nothing was":            {nothing, link("x"), false},
		"a directory where nothing was":       {nothing, dir(0o755), false},
		"a file":                              {file("x", 0o644), nothing, true},
		"another content":                     {file("x", 0o644), file("y", 0o644), false},
		"another mode":                        {file("x", 0o644), chmod(0o640), false},
		"a file that is gone":                 {file("x", 0o644), os.Remove, false},
		"a link where a file was":             {file("x", 0o644), instead(link("x")), false},
		"a link":                              {link("x"), nothing, true},
		"a link elsewhere":                    {link("x"), instead(link("y")), false},
		"a link that is gone":                 {link("x"), os.Remove, false},
		"a file where a link was":             {link("x"), instead(file("x", 0o644)), false},
		"a directory":                         {dir(0o750), nothing, true},
		"a directory of another mode":         {dir(0o750), chmod(0o777), false},
		"a directory that is gone":            {dir(0o750), os.Remove, false},
		"a file that was made anew, the same": {file("x", 0o644), instead(file("x", 0o644)), true},
	} {
		t.Run(name, func(t *testing.T) {
			h, k := &Host{Root: t.TempDir()}, &keeper{dir: filepath.Join(t.TempDir(), "kept")}
			path := filepath.Join(h.Root, "x")
			if err := errors.Join(c.was(path), k.keep(h, "a/x", "/x"), c.becomes(path)); err != nil {
				t.Fatal(err)
			}
			one := k.kept[0]
			if still := one.still(h); still != c.still {
				t.Errorf("still as it was: %v", still)
			}
			for range 2 {
				if err := one.putBack(h); err != nil || !one.still(h) {
					t.Errorf("put back: %v, as it was: %v", err, one.still(h))
				}
			}
		})
	}
}

// TestKeptOutOfReach: what cannot be reached is not taken for what it was, and is not said to be put back.
func TestKeptOutOfReach(t *testing.T) {
	h := &Host{Root: t.TempDir()}
	if err := os.Symlink("loop", filepath.Join(h.Root, "loop")); err != nil {
		t.Fatal(err)
	}
	for _, one := range []savedPath{{Path: "/loop/x", None: true}, {Path: "/loop/x", Link: "y"}, {Path: "/loop/x", File: "z", Mode: 0o644}} {
		if err := one.putBack(h); err == nil || one.still(h) {
			t.Errorf("%+v: put back: %v, as it was: %v", one, err, one.still(h))
		}
	}
}
