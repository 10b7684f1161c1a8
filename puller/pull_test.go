package puller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"testing"
)

// sources serves one repository over every transport.
func sources(t *testing.T, u *upstream) map[string]Source {
	s := serveSSH(t)
	return map[string]Source{
		"path": {Name: "main", URL: u.dir},
		"file": {Name: "main", URL: "file://" + u.dir},
		"http": {Name: "main", URL: serveHTTP(t, u).url},
		"ssh":  {Name: "main", URL: "ssh://git@" + s.addr + u.dir, Auth: s.auth},
	}
}

func TestEveryTransport(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "0", "old", "back", "dir/b", "1")
	u.commit("old", "gone")
	clone := filepath.Join(t.TempDir(), "clone")
	u.git("clone", "-q", u.dir, clone)
	all := sources(t, u)
	all["worktree"] = Source{Name: "main", URL: clone}
	for name, src := range all {
		t.Run(name, func(t *testing.T) {
			u.t = t
			commit := func(files ...string) string {
				id := u.commit(files...)
				if name == "worktree" {
					u.run(clone, "pull", "-q")
				}
				return id
			}
			first := commit("a", "1")
			p := open(t, t.TempDir(), src)
			h := pull(t, p)
			if h.Problem != nil || h.Commit != first {
				t.Fatalf("first: %+v, want %s", h, first)
			}
			second := commit("a", "2", "old", "back")
			h2 := pull(t, p)
			if h2.Problem != nil || h2.Commit != second {
				t.Fatalf("second: %+v, want %s", h2, second)
			}
			for _, c := range []struct {
				head       Head
				path, want string
			}{{h, "a", "1"}, {h2, "a", "2"}, {h2, "old", "back"}, {h2, "dir/b", "1"}} {
				if got := content(t, p, c.head, c.path); got != c.want {
					t.Errorf("%s at %s is %q, want %q", c.path, short(c.head.Commit), got, c.want)
				}
			}
		})
	}
}

func TestNoChangeIsOneListing(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	w := serveHTTP(t, u)
	dir := t.TempDir()
	p := open(t, dir, Source{Name: "main", URL: w.url})
	pull(t, p)
	must(t, p.Close())
	p = open(t, dir, Source{Name: "main", URL: w.url})
	before := w.requests.Load()
	pull(t, p)
	if n := w.requests.Load() - before; n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// A server with reachability bitmaps leaves out files that it believes a
// shallow store to have, unless the request says where its history ends.
func TestShallowFromBitmaps(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "old", "b", "x")
	u.commit("a", "new")
	u.run(u.dir, "repack", "-adbq")
	p := open(t, t.TempDir(), Source{Name: "main", URL: serveHTTP(t, u).url})
	pull(t, p)
	if !p.repos[0].store.shallow() {
		t.Fatal("the first clone is not shallow")
	}
	u.commit("a", "old")
	u.run(u.dir, "repack", "-adbq")
	if got := content(t, p, pull(t, p), "a"); got != "old" {
		t.Errorf("a is %q", got)
	}
	if !p.repos[0].store.shallow() {
		t.Error("the whole history was fetched: the server left something out")
	}
}

func TestRewritten(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"file", "http"} {
		t.Run(kind, func(t *testing.T) {
			u := newUpstream(t)
			u.commit("a", "1")
			good := u.commit("a", "2")
			dir, src := t.TempDir(), sources(t, u)[kind]
			p := open(t, dir, src)
			pull(t, p)
			u.write("a", "3")
			u.git("commit", "-q", "-a", "--amend", "-m", "again")
			bad := u.head()

			h := pull(t, p)
			rewritten, ok := errors.AsType[*RewrittenError](h.Problem)
			if h.Commit != good || !ok || rewritten.From != good || rewritten.To != bad {
				t.Fatalf("%+v", h)
			}
			expect(t, h.Problem, `repository "main"`, `branch "main" was rewritten`, short(good), short(bad), "pullet pull --accept-rewind")
			if got := content(t, p, h, "a"); got != "2" {
				t.Errorf("a is %q", got)
			}

			expect(t, p.Accept(t.Context(), "main", good, "root"), "not what the latest pull refused")
			must(t, p.Close())
			p = open(t, dir, src)
			must(t, p.Accept(t.Context(), "main", bad, "root"))
			h = pull(t, p)
			if h.Commit != bad || h.Problem != nil {
				t.Fatalf("after Accept: %+v", h)
			}
			if got := content(t, p, h, "a"); got != "3" {
				t.Errorf("a is %q", got)
			}
			rec, err := readRecord(filepath.Join(dir, "main.json"))
			must(t, err)
			if r := rec.Rewinds; len(r) != 1 || r[0].From != good || r[0].To != bad || r[0].By != "root" || r[0].Time.IsZero() {
				t.Errorf("rewinds: %+v", r)
			}
			next := u.commit("a", "4")
			if h := pull(t, p); h.Commit != next || h.Problem != nil {
				t.Errorf("%+v", h)
			}
		})
	}
}

// TestUnknownHistory: a host that knows only the newest commits does not call a mirror that is several commits behind
// rewritten, nor a rewritten branch certain.
func TestUnknownHistory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(u *upstream) // of what the remote has
		want   string
	}{
		"one behind":  {func(u *upstream) { u.git("reset", "-q", "--hard", "HEAD~1") }, "the remote is behind: a stale mirror"},
		"four behind": {func(u *upstream) { u.git("reset", "-q", "--hard", "HEAD~4") }, "the remote seems to be behind: a stale mirror"},
		"rewritten at the end": {func(u *upstream) {
			u.git("reset", "-q", "--hard", "HEAD~1")
			u.commit("a", "other")
		}, `branch "main" was rewritten`},
		"rewritten further back": {func(u *upstream) {
			u.git("reset", "-q", "--hard", "HEAD~4")
			u.commit("a", "other")
		}, "it was rewritten, or the remote is a stale mirror"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUpstream(t)
			for i := range 6 {
				u.commit("a", strconv.Itoa(i))
			}
			p := open(t, t.TempDir(), sources(t, u)["http"])
			good := pull(t, p)
			c.change(u)
			u.git("reflog", "expire", "--expire=now", "--all")
			u.git("gc", "-q", "--prune=now")
			h := pull(t, p)
			if h.Commit != good.Commit || h.Problem == nil {
				t.Fatalf("%+v", h)
			}
			expect(t, h.Problem, c.want, "--accept-rewind")
		})
	}
}

func TestBehind(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"file", "http"} {
		t.Run(kind, func(t *testing.T) {
			u := newUpstream(t)
			old := u.commit("a", "1")
			good := u.commit("a", "2")
			p := open(t, t.TempDir(), sources(t, u)[kind])
			pull(t, p)
			u.git("reset", "-q", "--hard", old)
			h := pull(t, p)
			if _, ok := errors.AsType[*BehindError](h.Problem); !ok || h.Commit != good {
				t.Fatalf("%+v", h)
			}
			expect(t, h.Problem, "the remote is behind: a stale mirror, or the branch was reset", short(old), short(good), "--accept-rewind")
			if got := content(t, p, h, "a"); got != "2" {
				t.Errorf("a is %q", got)
			}
			must(t, p.Accept(t.Context(), "main", old, "root"))
			if h := pull(t, p); h.Commit != old || h.Problem != nil {
				t.Errorf("after Accept: %+v", h)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	good := u.commit("a", "1")
	w := serveHTTP(t, u)
	dir, src := t.TempDir(), Source{Name: "main", URL: w.url}
	pull(t, open(t, dir, src))
	w.down.Store(true)
	p := open(t, dir, src)
	h := pull(t, p)
	if _, ok := errors.AsType[*UnreachableError](h.Problem); !ok || h.Commit != good {
		t.Fatalf("%+v", h)
	}
	expect(t, h.Problem, `repository "main": cannot read `+w.url, "503", "try: git ls-remote "+w.url)
	if got := content(t, p, h, "a"); got != "1" {
		t.Errorf("a is %q", got)
	}
	_, err := open(t, t.TempDir(), src).Pull(t.Context())
	expect(t, err, `repository "main"`, "git ls-remote")

	w.down.Store(false)
	u.git("checkout", "-q", "-b", "other")
	u.run(u.dir, "symbolic-ref", "HEAD", "refs/heads/other")
	u.run(u.dir, "update-ref", "-d", "refs/heads/main")
	expect(t, pull(t, p).Problem, `no branch "main"`, "it has: other")
}

func TestSnapshotOfLaterCommit(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	p := open(t, t.TempDir(), Source{Name: "main", URL: serveHTTP(t, u).url})
	pull(t, p)
	later := u.commit("a", "2")
	if got := content(t, p, Head{Repo: "main", Commit: later}, "a"); got != "2" {
		t.Errorf("a is %q", got)
	}
	nowhere := "0123456789012345678901234567890123456789"
	_, err := p.Snapshot(t.Context(), []Head{{Repo: "main", Commit: nowhere}})
	if _, ok := errors.AsType[*MissingCommitError](err); !ok {
		t.Fatal(err)
	}
	expect(t, err, "01234567", `repository "main"`, "not on this node")
}

func TestSnapshotBeforeShallowClone(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	old := u.commit("a", "1")
	u.commit("a", "2")
	p := open(t, t.TempDir(), Source{Name: "main", URL: serveHTTP(t, u).url})
	pull(t, p)
	if got := content(t, p, Head{Repo: "main", Commit: old}, "a"); got != "1" {
		t.Errorf("a is %q", got)
	}
}

func TestTwoRepositories(t *testing.T) {
	t.Parallel()
	a, b := newUpstream(t), newUpstream(t)
	ca, cb := a.commit("a", "1"), b.commit("b", "2")
	b.release("v7")
	p := open(t, t.TempDir(), Source{Name: "base", URL: a.dir}, Source{Name: "site", URL: b.dir})
	heads, err := p.Pull(t.Context())
	must(t, err)
	s, err := p.Snapshot(t.Context(), heads)
	must(t, err)
	if s.Layers[0].Name != "base" || s.Layers[1].Name != "site" || Release(heads) != "site=v7" {
		t.Errorf("%+v %q", s, Release(heads))
	}
	version := Version(heads)
	if version != Version([]Head{{Repo: "base", Commit: ca}, {Repo: "site", Commit: cb}}) || len(version) != 64 {
		t.Errorf("version %s", version)
	}
	if version == Version([]Head{{Repo: "site", Commit: cb}, {Repo: "base", Commit: ca}}) {
		t.Error("the order does not matter")
	}
	// printf 'a=1\nb=2\n' | sha256sum
	if got := Version([]Head{{Repo: "a", Commit: "1"}, {Repo: "b", Commit: "2"}}); got != "4a73850fde34aad40ff8649b93a66523a5fe744357a3931caea0f10609d0d930" {
		t.Error(got)
	}
}

// A server that takes the connection and says nothing.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	s := serveSSH(t)
	p := open(t, t.TempDir(), Source{Name: "main", URL: "ssh://git@" + l.Addr().String() + "/x", Auth: s.auth})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn, _ := l.Accept()
		cancel()
		<-t.Context().Done()
		conn.Close()
	}()
	_, err = p.Pull(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	expect(t, err, "pulling was stopped")
}

// Many small fetches do not leave many packs, and lose nothing.
func TestCompact(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "first", "b/c", "1")
	p := open(t, t.TempDir(), Source{Name: "main", URL: serveHTTP(t, u).url})
	heads := []Head{pull(t, p)}
	var all []Head
	dir := p.repos[0].store.dir
	p.repos[0].store.maxPacks = 6
	for i := range p.repos[0].store.maxPacks + 1 {
		all = append(all, Head{Repo: "main", Commit: u.commit("a", fmt.Sprint(i))})
		heads = []Head{pull(t, p)}
	}
	files, err := packs(dir)
	must(t, err)
	if len(files) > 3 {
		t.Errorf("%d packs", len(files))
	}
	u.run(dir, "fsck", "--full", "--strict")
	if heads[0].Commit != all[len(all)-1].Commit {
		t.Errorf("%+v", heads)
	}
	for i, h := range all {
		if got := content(t, p, h, "a"); got != fmt.Sprint(i) {
			t.Errorf("a at %d is %q", i, got)
		}
	}
}

// A server whose list of references does not end is not listened to for ever.
func TestEndlessListing(t *testing.T) { // alone: under the race detector reading so much takes long, and a listing has 30 seconds
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		fmt.Fprintf(w, "001e# service=git-upload-pack\n0000003a%040x HEAD\x00agent=x\n", 1)
		for i := 0; ; i++ {
			line := fmt.Sprintf("%040x refs/heads/%0990d\n", i+1, i)
			if _, err := fmt.Fprintf(w, "%04x%s", len(line)+4, line); err != nil {
				return
			}
		}
	}))
	defer srv.Close()
	_, err := open(t, t.TempDir(), Source{Name: "main", URL: srv.URL + "/x.git"}).Pull(t.Context())
	expect(t, err, `repository "main": cannot read `, "its list of references: more than the limit of 32 MiB")
}

// TestReleaseName: the release of a version is its tag, or, of several repositories, the tags of those that have one.
func TestReleaseName(t *testing.T) {
	head := func(repo, tag string) Head { return Head{Repo: repo, Tag: tag} }
	for want, heads := range map[string][]Head{
		"v1":           {head("main", "v1")},
		"":             {head("main", "")},
		"a=v1 c=v3":    {head("a", "v1"), head("b", ""), head("c", "v3")},
		"second=v1":    {head("main", ""), head("second", "v1")},
		"main=x a=y.1": {head("main", "x"), head("a", "y.1")},
	} {
		if got := Release(heads); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := Release([]Head{head("a", ""), head("b", "")}); got != "" {
		t.Errorf("got %q", got)
	}
}
