package apply

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestKeptOnDisk: what was kept is read again as it was, by the last step that changed it; the first time of a path
// counts. What was cut off or damaged does not.
func TestKeptOnDisk(t *testing.T) {
	h, dir := &Host{Root: t.TempDir()}, filepath.Join(t.TempDir(), "a", "kept")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(h.Root, name), []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	write("x", "old")
	k, err := openKeeper(dir)
	if err != nil || len(k.kept) > 0 {
		t.Fatalf("nothing was kept: %+v %v", k, err)
	}
	index := func() string { text, _ := os.ReadFile(k.index()); return string(text) }
	keep := func(step, path string, writes bool) {
		t.Helper()
		before := index()
		if err := k.keep(h, step, path); err != nil {
			t.Fatal(err)
		}
		if (index() != before) != writes {
			t.Errorf("%s %s: the index has\n%s", step, path, index())
		}
	}
	keep("a/one", "/x", true)
	write("x", "new")
	keep("a/one", "/x", false)
	keep("a/two", "/x", true)
	keep("a/two", "/x", false)
	keep("a/two", "/none", true)
	f, err := os.OpenFile(k.index(), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(`{"step":"a/three","path":"/x`) // cut off
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	keep("a/three", "/y", true)
	again, err := openKeeper(dir)
	if err != nil || !slices.Equal(again.kept, k.kept) || len(again.kept) != 3 {
		t.Fatalf("kept  %+v\nagain %+v %v", k.kept, again.kept, err)
	}
	for i, want := range []savedPath{{Step: "a/two", Path: "/x"}, {Step: "a/two", Path: "/none", None: true}, {Step: "a/three", Path: "/y", None: true}} {
		if one := again.kept[i]; one.Step != want.Step || one.Path != want.Path || one.None != want.None {
			t.Errorf("kept %d: %+v, want %+v", i, one, want)
		}
	}
	if err := again.kept[0].putBack(h); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(filepath.Join(h.Root, "x"))
	text, _ := os.ReadFile(filepath.Join(h.Root, "x"))
	if err != nil || string(text) != "old" || info.Mode() != 0o640 {
		t.Errorf("put back: %q %v %v", text, info.Mode(), err)
	}
	for name, mode := range map[string]fs.FileMode{dir: 0o700 | fs.ModeDir, k.index(): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	if err := again.forget(); err != nil || len(again.kept) > 0 {
		t.Errorf("forget: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if err := again.forget(); err != nil {
		t.Errorf("nothing to forget: %v", err)
	}
}

// TestKeeperFails: what cannot be kept is an error, and is not on record.
func TestKeeperFails(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(dir, root string) error
		path   string
		want   error
	}{
		"a path that is not absolute": {nil, "x", nil},
		"a loop on the way":           {func(_, root string) error { return os.Symlink("loop", filepath.Join(root, "loop")) }, "/loop/x", syscall.ELOOP},
		"a name that is too long":     {nil, "/" + strings.Repeat("x", 256), syscall.ENAMETOOLONG},
		"a file for the directory":    {func(dir, _ string) error { return os.WriteFile(dir, nil, 0o600) }, "/x", syscall.ENOTDIR},
		"a full disk": {func(dir, _ string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Symlink("/dev/full", filepath.Join(dir, "index.jsonl")))
		}, "/x", syscall.ENOSPC},
		"a directory for the index": {func(dir, _ string) error { return os.MkdirAll(filepath.Join(dir, "index.jsonl"), 0o700) }, "/x", syscall.EISDIR},
		"a directory for the copy":  {func(dir, _ string) error { return os.MkdirAll(filepath.Join(dir, "0", "full"), 0o700) }, "/file", syscall.EISDIR},
		"a file for the copies":     {func(dir, _ string) error { return os.WriteFile(dir, nil, 0o600) }, "/file", syscall.ENOTDIR},
		"a file that is too large": {func(_, root string) error {
			return os.Truncate(filepath.Join(root, "file"), maxKept+1)
		}, "/file", nil},
	} {
		t.Run(name, func(t *testing.T) {
			h, k := &Host{Root: t.TempDir()}, &keeper{dir: filepath.Join(t.TempDir(), "kept")}
			if err := os.WriteFile(filepath.Join(h.Root, "file"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.breaks != nil {
				if err := c.breaks(k.dir, h.Root); err != nil {
					t.Fatal(err)
				}
			}
			err := k.keep(h, "a/x", c.path)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || len(k.kept) > 0 {
				t.Errorf("%v; kept %+v", err, k.kept)
			}
			if name == "a file that is too large" && err.Error() != fmt.Sprintf("it has %d bytes, more than the %d that are kept", maxKept+1, maxKept) {
				t.Error(err)
			}
		})
	}
}

// TestKeeperFailsForAnotherStep: that a path is another step's now is not on record where it could not be written.
func TestKeeperFailsForAnotherStep(t *testing.T) {
	h, k := &Host{Root: t.TempDir()}, &keeper{dir: filepath.Join(t.TempDir(), "kept")}
	if err := k.keep(h, "a/x", "/x"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(k.index()), os.Mkdir(k.index(), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := k.keep(h, "a/y", "/x"); !errors.Is(err, syscall.EISDIR) || k.kept[0].Step != "a/x" {
		t.Errorf("%v; kept %+v", err, k.kept)
	}
	if _, err := openKeeper(k.dir); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("an index that cannot be read: %v", err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(k.index(), "x"), nil, 0o600), k.forget()); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("an index that cannot be removed: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openKeeper(file); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file for the directory: %v", err)
	}
}

// TestNotPutBack: a file whose copy is gone or damaged, or whose place is taken, is not said to be put back, and what
// stands there stays.
func TestNotPutBack(t *testing.T) {
	for name, c := range map[string]struct {
		one  savedPath
		want string
		is   error
	}{
		"no copy":                        {savedPath{Path: "/x", File: "/none"}, "its copy is gone: ", fs.ErrNotExist},
		"a copy out of reach":            {savedPath{Path: "/x", File: "relative"}, "", nil},
		"a directory in place of a file": {savedPath{Path: "/dir", File: "COPY", Mode: 0o600}, "", syscall.EISDIR},
		"a file in place of a directory": {savedPath{Path: "/x", Mode: fs.ModeDir | 0o700}, "", syscall.ENOTDIR},
		"nothing, where others are":      {savedPath{Path: "/dir", None: true}, "", syscall.ENOTEMPTY},
		"a directory in place of a link": {savedPath{Path: "/dir", Link: "x"}, "", nil},
		"a path that is not absolute":    {savedPath{Path: "x", File: "COPY"}, `"x" is not an absolute path`, nil},
	} {
		h, copied := &Host{Root: t.TempDir()}, filepath.Join(t.TempDir(), "copy")
		err := errors.Join(
			os.Mkdir(filepath.Join(h.Root, "dir"), 0o700), os.WriteFile(filepath.Join(h.Root, "dir", "theirs"), nil, 0o600),
			os.WriteFile(filepath.Join(h.Root, "x"), []byte("stays"), 0o600), os.WriteFile(copied, []byte("old"), 0o600),
		)
		if err != nil {
			t.Fatal(err)
		}
		c.one.File = strings.Replace(c.one.File, "COPY", copied, 1)
		err = c.one.putBack(h)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) || c.one.still(h) {
			t.Errorf("%s: %v, as it was: %v", name, err, c.one.still(h))
		}
		text, err := os.ReadFile(filepath.Join(h.Root, "x"))
		if _, there := os.Stat(filepath.Join(h.Root, "dir", "theirs")); err != nil || there != nil || string(text) != "stays" {
			t.Errorf("%s: %q %v %v", name, text, err, there)
		}
		if left, err := os.ReadDir(h.Root); err != nil || len(left) != 2 {
			t.Errorf("%s: left %v %v", name, left, err)
		}
	}
}

// TestNotStill: what cannot be compared with its copy is not as it was.
func TestNotStill(t *testing.T) {
	h, copied := &Host{Root: t.TempDir()}, filepath.Join(t.TempDir(), "copy")
	at := filepath.Join(h.Root, "x")
	if err := errors.Join(os.WriteFile(at, []byte("old"), 0o600), os.WriteFile(copied, []byte("old"), 0o600)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(at)
	if err != nil {
		t.Fatal(err)
	}
	one := savedPathOf(info)
	one.Path, one.File = "/x", copied
	if !one.still(h) {
		t.Fatal("it is as it was, and does not count as that")
	}
	for name, other := range map[string]func(o *savedPath){
		"another owner":       func(o *savedPath) { o.UID++ },
		"another group":       func(o *savedPath) { o.GID++ },
		"another mode":        func(o *savedPath) { o.Mode ^= 0o022 },
		"no copy":             func(o *savedPath) { o.File = copied + ".none" },
		"a copy out of reach": func(o *savedPath) { o.File = "relative" },
		"a path out of reach": func(o *savedPath) { o.Path = "x" },
		"nothing was there":   func(o *savedPath) { o.None = true },
		"it was a link":       func(o *savedPath) { o.Link = "old" },
	} {
		changed := one
		if other(&changed); changed.still(h) {
			t.Errorf("%s: it counts as it was", name)
		}
	}
}

// TestWrittenOver: a file that cannot be replaced, because something is mounted on it, gets the old content where it
// stands: no more, no less.
func TestWrittenOver(t *testing.T) {
	h, from := &Host{Root: t.TempDir()}, filepath.Join(t.TempDir(), "from")
	for _, now := range []string{"", "s", "much longer than it was"} {
		path := filepath.Join(h.Root, "x")
		if err := errors.Join(os.WriteFile(path, []byte(now), 0o600), os.WriteFile(from, []byte("the old"), 0o600)); err != nil {
			t.Fatal(err)
		}
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		at, err := h.Entry("/x")
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(from)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Seek(3, 0); err != nil { // where the copying stopped does not count
			t.Fatal(err)
		}
		err = savedPath{}.writeOver(at, f)
		text, _ := os.ReadFile(path)
		after, bad := os.Stat(path)
		if err != nil || bad != nil || string(text) != "the old" || !os.SameFile(before, after) {
			t.Errorf("over %q: %q %v %v", now, text, err, bad)
		}
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
		if err := (savedPath{}).writeOver(at, f); err == nil {
			t.Error("it was written over a directory")
		}
		at.Close()
		if err := errors.Join(f.Close(), os.Remove(path)); err != nil {
			t.Fatal(err)
		}
	}
}
