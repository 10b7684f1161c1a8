package git_test

import (
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply/action/actiontest"
)

// upstream is a bare repository with a linked work tree, in which tests commit with the real git.
type upstream struct {
	t         *testing.T
	dir, work string // the repository, and the work tree
	tick      int
}

// newUpstream makes a repository below the root of the scene, at /srv/up.git.
func newUpstream(s *actiontest.Scene) *upstream {
	s.T.Helper()
	u := &upstream{t: s.T, dir: s.Path("srv/up.git"), work: filepath.Join(s.T.TempDir(), "work")}
	linked := filepath.Join(u.dir, "worktrees/work")
	for _, dir := range []string{u.work, linked, filepath.Join(u.dir, "objects"), filepath.Join(u.dir, "refs")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			s.T.Fatal(err)
		}
	}
	for file, text := range map[string]string{
		filepath.Join(u.dir, "HEAD"):       "ref: refs/heads/main\n",
		filepath.Join(u.dir, "config"):     "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n",
		filepath.Join(linked, "HEAD"):      "ref: refs/heads/main\n",
		filepath.Join(linked, "commondir"): "../..\n",
		filepath.Join(linked, "gitdir"):    filepath.Join(u.work, ".git") + "\n",
		filepath.Join(u.work, ".git"):      "gitdir: " + linked + "\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			s.T.Fatal(err)
		}
	}
	return u
}

// in runs git in a directory without what the user has configured. Commits are a minute apart, so that their ids are
// the same in every run.
func (u *upstream) in(dir string, args ...string) string {
	u.t.Helper()
	u.tick++
	date := fmt.Sprintf("@%d +0000", 1700000000+60*u.tick)
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + u.work, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.org", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.org",
		"GIT_AUTHOR_DATE=" + date, "GIT_COMMITTER_DATE=" + date,
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		u.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// git runs git in the work tree.
func (u *upstream) git(args ...string) string { u.t.Helper(); return u.in(u.work, args...) }

// sh runs a shell command in the work tree.
func (u *upstream) sh(line string) {
	u.t.Helper()
	cmd := exec.Command("/bin/sh", "-ec", line)
	cmd.Dir = u.work
	if out, err := cmd.CombinedOutput(); err != nil {
		u.t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// commit runs a shell command in the work tree, commits, and returns the commit.
func (u *upstream) commit(line string) string {
	u.t.Helper()
	u.sh(line)
	u.git("add", "-A")
	u.git("commit", "-q", "--allow-empty", "-m", "change")
	return u.git("rev-parse", "HEAD")
}

// isWhole holds a checkout against the real git: it is at the commit and clean, but for files that git does not know,
// and its objects are sound.
func (u *upstream) isWhole(dir, commit string) {
	u.t.Helper()
	if got := u.in(dir, "rev-parse", "HEAD"); got != commit {
		u.t.Errorf("HEAD is %s, want %s", got, commit)
	}
	if got := u.in(dir, "status", "--porcelain", "--untracked-files=no"); got != "" {
		u.t.Errorf("git says: %s", got)
	}
	u.in(dir, "fsck", "--no-dangling")
	if _, err := os.Stat(filepath.Join(dir, ".git", "pullet-checkout")); err == nil {
		u.t.Error("the mark of a checkout that was cut off is left")
	}
}

// web serves the repository with git's own http backend, and returns its URL. Before, which may be nil, can answer
// instead.
func (u *upstream) web(before func(http.ResponseWriter, *http.Request) bool) string {
	u.t.Helper()
	backend := &cgi.Handler{
		Path: filepath.Join(u.git("--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(u.dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || !before(w, r) {
			backend.ServeHTTP(w, r)
		}
	}))
	u.t.Cleanup(server.Close)
	return server.URL + "/up.git"
}
