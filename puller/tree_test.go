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

// linked makes a state repository with links of all kinds.
func linked(t *testing.T, dir string) {
	t.Helper()
	for name, text := range map[string]string{"a": "1", "dir/b": "2", "dir/deep/c": "3", "run": "#!"} {
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	must(t, os.Chmod(filepath.Join(dir, "run"), 0o755))
	for name, target := range map[string]string{
		"file": "a", "again": "file", "tree": "dir", "dir/up": "../a", "dir/deep/d": "../../tree/b", "program": "./run",
		"etc": "/etc", "above": "../x", "through": "dir/../../x", "nothing": "none", "git": ".git/config",
		"loop": "loop", "one": "two", "two": "one", "dir/deep/back": "..", "over": "above", "below": "a/b", "tree2": "tree/deep/",
	} {
		must(t, os.Symlink(target, filepath.Join(dir, name)))
	}
}

// walked lists what a walk of a tree finds, with the contents of files.
func walked(t *testing.T, fsys fs.FS) string {
	t.Helper()
	var out []string
	must(t, fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		line := d.Type().String()[:1] + " " + name
		if info, err := d.Info(); err != nil {
			return err
		} else if d.Type().IsRegular() {
			data, err := fs.ReadFile(fsys, name)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %o %s", info.Mode(), data)
		} else if d.Type() == fs.ModeSymlink {
			_, err := fs.ReadFile(fsys, name)
			line = err.Error()
		}
		out = append(out, line)
		return err
	}))
	return strings.Join(out, "\n") + "\n"
}

// TestLinks: links that stay in the repository are what they lead to. Others are refused by name when they are read,
// and a commit and its work tree are the same.
func TestLinks(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	linked(t, u.work)
	u.commit()
	fsys := layer(t, open(t, t.TempDir(), Source{Name: "main", URL: u.dir}))
	got := walked(t, fsys)
	want := `d .
- a 644 1
read above: is a symbolic link to ../x, which is outside of the repository
- again 644 1
read below: is a symbolic link to a/b, which is not in the repository
d dir
- dir/b 644 2
d dir/deep
read dir/deep/back: is a symbolic link to .., which leads back to a directory that the link is in
- dir/deep/c 644 3
- dir/deep/d 644 2
- dir/up 644 1
read etc: is a symbolic link to /etc, which is outside of the repository
- file 644 1
read git: is a symbolic link to .git/config, which is not in the repository
read loop: is a symbolic link to loop, which leads through more than 1000 names and links
read nothing: is a symbolic link to none, which is not in the repository
read one: is a symbolic link to two, which leads through more than 1000 names and links
read over: is a symbolic link to above, which leads to ../x, which is outside of the repository
- program 755 #!
- run 755 #!
read through: is a symbolic link to dir/../../x, which is outside of the repository
d tree
- tree/b 644 2
d tree/deep
read tree/deep/back: dir/deep/back is a symbolic link to .., which leads back to a directory that the link is in
- tree/deep/c 644 3
- tree/deep/d 644 2
- tree/up 644 1
d tree2
read tree2/back: dir/deep/back is a symbolic link to .., which leads back to a directory that the link is in
- tree2/c 644 3
- tree2/d 644 2
read two: is a symbolic link to one, which leads to two, which leads through more than 1000 names and links
`
	if got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	for _, name := range []string{"etc", "etc/passwd"} {
		_, err := fs.Stat(fsys, name)
		expect(t, err, "stat "+name, "is a symbolic link to /etc, which is outside of the repository")
	}
	work, err := WorkTree(t.Context(), u.work)
	must(t, err)
	if same := walked(t, work); same != got {
		t.Errorf("the work tree is another:\n%s", same)
	}
}

// TestLinkBombs: links do not make a tree that has no end.
func TestLinkBombs(t *testing.T) {
	t.Parallel()
	wide, deep, many := t.TempDir(), t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(wide, "0"), 0o755))
	must(t, os.WriteFile(filepath.Join(wide, "0/file"), nil, 0o600))
	must(t, os.MkdirAll(filepath.Join(deep, "0"), 0o755))
	must(t, os.WriteFile(filepath.Join(deep, "0/file"), nil, 0o600))
	for i := range 101 {
		must(t, os.MkdirAll(filepath.Join(deep, fmt.Sprint(i+1)), 0o755))
		must(t, os.Symlink(fmt.Sprintf("../%d", i), filepath.Join(deep, fmt.Sprint(i+1), "down")))
	}
	for i := range 10 {
		must(t, os.MkdirAll(filepath.Join(wide, fmt.Sprint(i+1)), 0o755))
		for j := range 5 {
			must(t, os.Symlink(fmt.Sprintf("../%d", i), filepath.Join(wide, fmt.Sprint(i+1), fmt.Sprint(j))))
		}
	}
	for i := range maxLinks + 1 {
		must(t, os.Symlink("x", filepath.Join(many, fmt.Sprint(i))))
	}
	for dir, want := range map[string]string{
		wide: "more paths than the limit of 1000000, with those behind symbolic links",
		deep: `"down": deeper than the limit of 100, over symbolic links`,
		many: "more symbolic links than the limit of 10000",
	} {
		_, err := WorkTree(t.Context(), dir)
		expect(t, err, want)
		if _, _, refused := Refused(err); !refused {
			t.Errorf("hosts would not refuse it: %v", err)
		}
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
