package gitremote

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// repository is a bare one with a commit and an annotated tag.
func repository(t testing.TB) (dir string, git func(args ...string) string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "x.git")
	git = func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = filepath.Dir(dir)
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=/nowhere", "GIT_CONFIG_NOSYSTEM=1", "GIT_DIR=" + dir, "GIT_AUTHOR_NAME=t",
			"GIT_AUTHOR_EMAIL=t@example.org", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.org",
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "--bare", "-b", "main")
	tree := git("hash-object", "-t", "tree", "-w", "/dev/null")
	git("update-ref", "refs/heads/main", git("commit-tree", "-m", "first", tree))
	git("tag", "-a", "-m", "v1", "v1", "refs/heads/main")
	return dir, git
}

// TestHostileRepository: what its owner puts into a repository on this machine
// neither stops the reader nor leads it elsewhere.
func TestHostileRepository(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string) error
		want  string
	}{
		"HEAD is a pipe":       {replaced("HEAD", pipe), "HEAD is not a regular file"},
		"a branch is a pipe":   {replaced("refs/heads/main", pipe), "refs/heads/main is not a regular file"},
		"references in a pipe": {replaced("packed-refs", pipe), "packed-refs is not a regular file"},
		"HEAD is a directory":  {replaced("HEAD", func(at string) error { return os.Mkdir(at, 0o755) }), "HEAD is not a regular file"},
		"a branch leads away":  {replaced("refs/heads/main", func(at string) error { return os.Symlink("/etc/passwd", at) }), "refs/heads/main"},
		"a secret as a branch": {replaced("refs/heads/main", func(at string) error { return os.WriteFile(at, []byte("root:$6$secret"), 0o644) }), "refs/heads/main is no reference"},
		"a branch of 1 GB":     {replaced("refs/heads/main", sparse), "refs/heads/main: more than the limit of 4196 bytes"},
		"packed-refs of 1 GB":  {replaced("packed-refs", sparse), "packed-refs: more than the limit of 32 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := repository(t)
			if err := c.spoil(t, dir); err != nil {
				t.Fatal(err)
			}
			_, err := client(t, small).List(t.Context(), Remote{URL: dir})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func replaced(name string, with func(at string) error) func(*testing.T, string) error {
	return func(_ *testing.T, dir string) error {
		at := filepath.Join(dir, name)
		if err := os.RemoveAll(at); err != nil {
			return err
		}
		return with(at)
	}
}

func pipe(at string) error { return syscall.Mkfifo(at, 0o666) }

func sparse(at string) error {
	if err := os.WriteFile(at, nil, 0o644); err != nil {
		return err
	}
	return os.Truncate(at, 1<<30)
}

// TestHostileObjects: objects that are pipes, or not there, are an error of the
// fetch.
func TestHostileObjects(t *testing.T) {
	dir, git := repository(t)
	main := plumbing.NewHash(git("rev-parse", "refs/heads/main"))
	at := filepath.Join(dir, "objects", main.String()[:2], main.String()[2:])
	fetch := func(want plumbing.Hash) error {
		_, err := client(t, small).Fetch(t.Context(), Remote{URL: dir}, Request{Wants: []plumbing.Hash{want}, Place: func(string, string) error { return nil }})
		return err
	}
	if err := fetch(main); err != nil {
		t.Fatal(err)
	}
	var local *LocalError
	if err := fetch(wanted); !errors.As(err, &local) {
		t.Errorf("a reference to nothing: %v", err)
	}
	if err := replaced("", pipe)(t, at); err != nil {
		t.Fatal(err)
	}
	if err := fetch(main); err == nil || !strings.Contains(err.Error(), "is not a regular file") && !strings.Contains(err.Error(), "object not found") {
		t.Errorf("an object that is a pipe: %v", err)
	}
}

// TestOwnersRights: a repository of a user is read with his rights. Objects that
// he borrows from a directory that is closed to him are not.
func TestOwnersRights(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("takes root")
	}
	closed, git := repository(t)
	main := plumbing.NewHash(git("rev-parse", "refs/heads/main"))
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	open, _ := repository(t)
	if err := os.WriteFile(filepath.Join(open, "objects/info/alternates"), []byte(closed+"/objects\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	fetch := func() error {
		_, err := client(t, small).Fetch(t.Context(), Remote{URL: open}, Request{Wants: []plumbing.Hash{main}, Place: func(string, string) error { return nil }})
		return err
	}
	for dir := filepath.Dir(closed); dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(open, "objects", main.String()[:2])); err != nil {
		t.Fatal(err)
	}
	if err := fetch(); err != nil {
		t.Fatalf("objects of root, for root: %v", err)
	}
	if err := exec.Command("chown", "-R", "1234:1234", open).Run(); err != nil {
		t.Fatal(err)
	}
	if err := fetch(); err == nil {
		t.Error("objects of root were read for a user")
	}
}
