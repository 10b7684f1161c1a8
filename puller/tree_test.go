package puller

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

func layer(t testing.TB, p *Puller) fs.FS {
	t.Helper()
	s, err := p.Snapshot(t.Context(), []Head{pull(t, p)})
	must(t, err)
	return s.Layers[0].FS
}

func TestFS(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.write("a", "1", "empty", "", "dir/b", "2", "dir/deep/er/c", "3", "dir.x", "sorts before dir/ in git")
	must(t, os.Chmod(filepath.Join(u.work, "a"), 0o755))
	u.commit()
	fsys := layer(t, open(t, t.TempDir(), Source{Name: "main", URL: u.dir}))
	must(t, fstest.TestFS(fsys, "a", "empty", "dir/b", "dir/deep/er/c", "dir.x"))
	for path, want := range map[string]fs.FileMode{"a": 0o755, "dir/b": 0o644, "dir": fs.ModeDir | 0o755} {
		info, err := fs.Stat(fsys, path)
		must(t, err)
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
		}
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.write("a", "1")
	must(t, os.Symlink("/etc", filepath.Join(u.work, "etc")))
	u.commit()
	fsys := layer(t, open(t, t.TempDir(), Source{Name: "main", URL: u.dir}))
	for _, path := range []string{"etc", "etc/passwd"} {
		_, err := fs.ReadFile(fsys, path)
		expect(t, err, "etc is a symbolic link in the repository: pullet reads regular files only")
		_, err = fs.Stat(fsys, path)
		expect(t, err, "symbolic link")
	}
	entries, err := fs.ReadDir(fsys, ".")
	must(t, err)
	if got := fmt.Sprint(entries); got != "[- a L etc]" {
		t.Error(got)
	}
}

func TestLargeFile(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.write("big", strings.Repeat("x", 1<<20+1))
	u.commit()
	p := open(t, t.TempDir(), Source{Name: "main", URL: u.dir})
	p.repos[0].store.limit = 1 << 20
	_, err := fs.ReadFile(layer(t, p), "big")
	expect(t, err, "big", "1048577 bytes, larger than the limit of 1 MiB")
	if _, ok := errors.AsType[*CorruptError](err); ok {
		t.Error("a large file is not damage")
	}
}

func TestConcurrentReads(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	for i := range 50 {
		u.write(fmt.Sprint("f", i), fmt.Sprint("content ", i))
	}
	u.commit()
	p := open(t, t.TempDir(), Source{Name: "main", URL: u.dir})
	fsys := layer(t, p)
	u.commit("a", "1")
	must(t, os.Truncate(filepath.Join(p.repos[0].store.dir, "HEAD"), 0)) // to be rebuilt
	var wg sync.WaitGroup
	wg.Go(func() { pull(t, p) }) // replaces what the readers read from
	for range 8 {
		wg.Go(func() {
			for i := range 50 {
				data, err := fs.ReadFile(fsys, fmt.Sprint("f", i))
				if err != nil || string(data) != fmt.Sprint("content ", i) {
					t.Errorf("f%d: %q, %v", i, data, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestClosed(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	p := open(t, t.TempDir(), Source{Name: "main", URL: u.dir})
	fsys := layer(t, p)
	must(t, p.Close())
	if _, err := fs.ReadFile(fsys, "a"); !errors.Is(err, fs.ErrClosed) {
		t.Error(err)
	}
}

// TestHostileTrees: a commit whose directories cannot be those of a work tree is
// refused, and the last good one stays.
func TestHostileTrees(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	good := u.commit("a", "1")
	p := open(t, t.TempDir(), Source{Name: "main", URL: u.dir})
	pull(t, p)
	blob := u.git("rev-parse", "HEAD:a")
	raw, err := hex.DecodeString(blob)
	must(t, err)
	entry := func(name string) string { return "100644 " + name + "\x00" + string(raw) }
	for what, c := range map[string]struct{ tree, want string }{
		"parent":    {entry(".."), `directory "/": entry "..": the name is not a file name`},
		"itself":    {entry("."), `entry ".": the name is not a file name`},
		"slash":     {entry("../x"), `entry "../x": the name is not a file name`},
		"no name":   {entry(""), "malformed tree: empty filename"},
		"git":       {entry(".GIT"), `entry ".GIT": the name is reserved for git`},
		"twice":     {entry("a") + entry("a"), `entry "a": the name exists twice`},
		"both":      {entry("a") + entry("a.b") + "40000 a\x00" + string(raw), `entry "a": the name exists twice`},
		"unsorted":  {entry("b") + entry("a"), `entry "a": the entries are not sorted`},
		"mode":      {"100600 a\x00" + string(raw), `entry "a": unknown mode "100600"`},
		"padded":    {"0100644 a\x00" + string(raw), `entry "a": unknown mode "0100644"`},
		"not UTF-8": {entry("\xff"), "the name is not valid UTF-8"},
		"very long": {strings.Repeat(entry(strings.Repeat("n", 4000)), 5000), "bytes, larger than the limit of 16 MiB"},
	} {
		file := filepath.Join(t.TempDir(), "tree")
		must(t, os.WriteFile(file, []byte(c.tree), 0o600))
		tree := u.run(u.dir, "hash-object", "-t", "tree", "-w", "--literally", file)
		bad := u.run(u.dir, "commit-tree", "-m", what, "-p", good, tree)
		u.run(u.dir, "update-ref", "refs/heads/main", bad)
		h := pull(t, p)
		if h.Commit != good || h.Problem == nil || !strings.Contains(h.Problem.Error(), short(bad)) || !strings.Contains(h.Problem.Error(), c.want) {
			t.Errorf("%s: %+v", what, h)
		}
	}
	u.run(u.dir, "update-ref", "refs/heads/main", good)
	next := u.commit("a", "2")
	if h := pull(t, p); h.Commit != next || h.Problem != nil {
		t.Errorf("afterwards: %+v", h)
	}
}
