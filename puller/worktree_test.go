package puller

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestWorkTreeIsTheCommit: a work tree is read as the commit that git add makes of it, also below its top, in a linked
// work tree, and with files that are tracked although git ignores them.
func TestWorkTreeIsTheCommit(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.write(
		".gitignore", "*.log\n/build/\nsecrets/*\n!secrets/keep\n# comment\n", "a.log", "1", "dir/b.log", "2", "build/x", "3",
		"dir/build/x", "4", "secrets/a", "5", "secrets/keep", "6", "dir/.gitignore", "!kept.log\n", "dir/kept.log", "7",
		"forced/.gitignore", "*\n", "forced/file", "8", "forced/deep/file", "9", "excluded", "10", "run", "11", "sub/jobs/a", "12",
	)
	must(t, os.MkdirAll(filepath.Join(u.dir, "info"), 0o755))
	must(t, os.WriteFile(u.git("rev-parse", "--path-format=absolute", "--git-path", "info/exclude"), []byte("excluded\n"), 0o600))
	must(t, os.MkdirAll(filepath.Join(u.work, "empty/deep"), 0o755))
	must(t, os.Chmod(filepath.Join(u.work, "run"), 0o755))
	must(t, os.Symlink("a.log", filepath.Join(u.work, "link")))
	u.git("add", "-f", "forced/deep/file", "dir/b.log")
	u.git("add", "-A")
	u.git("commit", "-q", "-m", "all")
	want := walked(t, layer(t, open(t, t.TempDir(), Source{Name: "main", URL: u.dir})))
	must(t, unix.Mkfifo(filepath.Join(u.work, "pipe"), 0o600))
	work, err := WorkTree(t.Context(), u.work)
	must(t, err)
	want = strings.Replace(want, "to a.log, which is not in the repository", "to a.log, which is not in the repository because a.log is ignored by git", 1)
	if got := walked(t, work); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	for name, want := range map[string]string{
		"a.log": "open a.log: a.log is ignored by git", "build/x": "open build/x: build is ignored by git",
		"pipe": "open pipe: pipe is not a regular file", "other": "open other: file does not exist",
	} {
		if _, err := work.Open(name); !errors.Is(err, fs.ErrNotExist) || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}

	for dir, want := range map[string]string{"forced": "d .\nd deep\n- deep/file 644 9\n", "dir": "d .\n- .gitignore 644 !kept.log\n\n- b.log 644 2\nd build\n- build/x 644 4\n- kept.log 644 7\n"} {
		below, err := WorkTree(t.Context(), filepath.Join(u.work, dir))
		must(t, err)
		if got := walked(t, below); got != want {
			t.Errorf("below %s:\n%swant:\n%s", dir, got, want)
		}
	}

	other := filepath.Join(t.TempDir(), "linked")
	u.run(u.dir, "worktree", "add", "-q", "--detach", other, "main")
	must(t, os.WriteFile(filepath.Join(other, "excluded"), nil, 0o600))
	linked, err := WorkTree(t.Context(), other)
	must(t, err)
	if got := walked(t, linked); strings.ReplaceAll(got, "a.log is ignored", "") != strings.ReplaceAll(want, " because a.log is ignored by git", "") {
		t.Errorf("the linked work tree:\n%swant:\n%s", got, want)
	}
}

// TestIgnoredByAnother: a state repository without git of its own, in a directory that another repository ignores.
func TestIgnoredByAnother(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.write(".gitignore", "*\n", "state/base/jobs.yaml", "x")
	work, err := WorkTree(t.Context(), filepath.Join(u.work, "state"))
	must(t, err)
	if got := walked(t, work); got != "d .\nd base\n- base/jobs.yaml 644 x\n" {
		t.Error(got)
	}
}

// TestWorkTreeRefused: what a commit cannot hold, or no host takes, is refused by name.
func TestWorkTreeRefused(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		make func(dir string) error
		want string
	}{
		"latin-1":     {func(dir string) error { return os.WriteFile(filepath.Join(dir, "caf\xe9"), nil, 0o600) }, `path "caf\xe9": the name is not valid UTF-8`},
		"reserved":    {func(dir string) error { return os.WriteFile(filepath.Join(dir, ".Git"), nil, 0o600) }, `path ".Git": the name is reserved for git`},
		"a submodule": {func(dir string) error { return os.MkdirAll(filepath.Join(dir, "module/.git"), 0o755) }, `path "module": a submodule, which pullet does not fetch`},
		"deep":        {func(dir string) error { return os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", 102)), 0o755) }, "deeper than the limit of 100"},
		"rules": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(strings.Repeat("a\n", 1<<20)), 0o600)
		}, "the gitignore rules of the repository are larger than the limit of 1 MiB"},
		"giant rules": {func(dir string) error {
			must(t, os.WriteFile(filepath.Join(dir, ".gitignore"), nil, 0o600))
			return os.Truncate(filepath.Join(dir, ".gitignore"), 1<<40)
		}, "larger than the limit of 64 MiB"},
		"giant attributes": {func(dir string) error {
			must(t, os.WriteFile(filepath.Join(dir, ".gitattributes"), nil, 0o600))
			return os.Truncate(filepath.Join(dir, ".gitattributes"), 1<<40)
		}, "larger than the limit of 64 MiB"},
		"filtered": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".gitattributes"), []byte("* filter=git-crypt\n"), 0o600)
		}, `path ".gitattributes": the filter git-crypt of .gitattributes`},
	} {
		dir := t.TempDir()
		must(t, c.make(dir))
		_, err := WorkTree(t.Context(), dir)
		expect(t, err, c.want)
		if _, _, refused := Refused(err); !refused {
			t.Errorf("%s: hosts would not refuse it: %v", what, err)
		}
	}
	u := newUpstream(t)
	head := u.commit("a", "1", ".gitmodules", "[submodule \"m\"]\n")
	u.git("update-index", "--add", "--cacheinfo", "160000,"+head+",files/module")
	_, err := WorkTree(t.Context(), u.work)
	expect(t, err, `path "files/module": a submodule, which pullet does not fetch`)
}

// TestWorkTreeChanges: a giant file is refused when it is read, and so is a pipe that takes the place of a file. A
// context that is over ends the reading.
func TestWorkTreeChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"giant", "pipe"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	must(t, os.Truncate(filepath.Join(dir, "giant"), 1<<40))
	work, err := WorkTree(t.Context(), dir)
	must(t, err)
	must(t, os.Remove(filepath.Join(dir, "pipe")))
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	_, err = fs.ReadFile(work, "giant")
	expect(t, err, "read giant: 1099511627776 bytes, larger than the limit of 64 MiB")
	_, err = fs.ReadFile(work, "pipe")
	expect(t, err, "read pipe", "not a regular file")

	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	if _, err := WorkTree(ctx, dir); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestAttributesDoNotCrash: a commit with lines that git leaves out of .gitattributes is pulled.
func TestAttributesDoNotCrash(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	good := u.commit("files/x", "1", ".gitattributes", "*.bin filter=lfs\n\"\"\nfiles/ text\n/ text\n")
	p := open(t, t.TempDir(), Source{Name: "main", URL: u.dir})
	if h := pull(t, p); h.Commit != good || h.Problem != nil {
		t.Errorf("%+v", h)
	}
}
