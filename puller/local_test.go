package puller

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pullet/pullet/internal/gitremote"
)

// A repository on this machine is read while git writes to it.
func TestLocalWhileGitWrites(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "0")
	p := open(t, t.TempDir(), Source{Name: "main", URL: u.dir})
	pull(t, p)
	done := make(chan string)
	go func() {
		last := ""
		for i := range 8 {
			last = u.commit("a", fmt.Sprint(i))
			u.release(fmt.Sprint("v", i))
			switch i % 3 {
			case 0:
				u.run(u.dir, "pack-refs", "--all", "--prune")
			case 1:
				u.run(u.dir, "gc", "-q", "--prune=now")
			}
		}
		done <- last
	}()
	pulls := 0
	for {
		if h := pull(t, p); h.Problem != nil {
			t.Errorf("pull %d: %v", pulls, h.Problem)
		}
		pulls++
		select {
		case last := <-done:
			if h := pull(t, p); h.Commit != last || h.Tag != "v7" {
				t.Errorf("%+v, want %s", h, last)
			}
			t.Logf("%d pulls", pulls)
			return
		default:
		}
	}
}

func TestLocalIgnoresLocks(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	must(t, os.WriteFile(filepath.Join(u.dir, "refs/heads/main.lock"), nil, 0o600))
	if h := pull(t, open(t, t.TempDir(), Source{Name: "main", URL: u.dir})); h.Problem != nil {
		t.Error(h.Problem)
	}
}

func TestLocalNotThere(t *testing.T) {
	t.Parallel()
	_, err := open(t, t.TempDir(), Source{Name: "main", URL: t.TempDir()}).Pull(t.Context())
	expect(t, err, "repository not found", "check the url")
	u := newUpstream(t)
	_, err = open(t, t.TempDir(), Source{Name: "main", URL: u.dir}).Pull(t.Context())
	expect(t, err, "remote repository is empty", "push a commit first")
}

func TestLocalShallow(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	u.commit("a", "2")
	u.run(u.work, "clone", "-q", "--depth=1", "file://"+u.dir, "clone")
	dir := filepath.Join(u.work, "clone")
	_, err := open(t, t.TempDir(), Source{Name: "main", URL: dir}).Pull(t.Context())
	expect(t, err, "is a shallow clone", "git -C "+dir+" fetch --unshallow")
}

// The listing of a file source is the same as git's own over http.
func TestLocalListsLikeGit(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	u.release("v1")
	u.git("tag", "light")
	u.git("tag", "-a", "-m", "tag of a tag", "outer", "v1")
	u.run(u.dir, "pack-refs", "--all")
	u.commit("a", "2")
	u.release("v2")
	client := gitremote.Client{Scratch: t.TempDir()}
	here, err := client.List(t.Context(), gitremote.Remote{URL: u.dir})
	must(t, err)
	there, err := client.List(t.Context(), gitremote.Remote{URL: serveHTTP(t, u).url})
	must(t, err)
	local, remote := newListing(here), newListing(there)
	for _, l := range []*listing{&local, &remote} {
		byName := map[string]tag{}
		for _, t := range l.tags {
			byName[t.name] = t
		}
		if fmt.Sprint(byName["outer"].commit) != fmt.Sprint(byName["v1"].commit) || byName["light"].annotated {
			t.Errorf("%+v", l)
		}
	}
	if len(local.tags) != 4 || len(remote.tags) != 4 || fmt.Sprint(local.branches) != fmt.Sprint(remote.branches) {
		t.Errorf("%+v\n%+v", local, remote)
	}
}
