package git_test

import (
	"context"
	"crypto/sha1"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// checkout runs git.checkout of /srv/app with further parameters and demands an outcome.
func checkout(s *actiontest.Scene, url, more string, want apply.Outcome) *apply.StepReport {
	s.T.Helper()
	r := s.Run(s.MustBind("git.checkout", fmt.Sprintf("{name: /srv/app, url: '%s'%s}", url, more)))
	if r.Outcome != want {
		s.T.Fatalf("%s: %s %q %s, want %s", more, r.Outcome, r.Summary, r.Reason, want)
	}
	return r
}

// TestCheckoutFollows: whatever kind of change a commit makes, the directory is what the real git says, and what git
// does not know stays.
func TestCheckoutFollows(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	u := newUpstream(s)
	app := s.Path("srv/app")
	for i, line := range []string{
		"echo 1 > file; mkdir -p d/e; echo x > d/e/x; ln -s /etc/passwd abs; ln -s file rel; echo .ignored > .gitignore; printf 'a\\r\\n' > crlf",
		"chmod 755 file",
		"rm file; mkdir file; echo now a directory > file/inner",
		"rm -r file; echo a file again > file",
		"rm -r d; ln -s /tmp d",
		"rm d; mkdir d; echo y > d/y",
		"rm rel; echo no link > rel; ln -sf ../nowhere abs; echo > 'a b ü'",
		"rm -r *",
		"true",
	} {
		commit := u.commit(line)
		if r := checkout(s, "/srv/up.git", "", apply.Changed); r.Result.State != commit {
			t.Errorf("State is %q, want %s", r.Result.State, commit)
		}
		u.isWhole(app, commit)
		if i == 0 {
			s.Plant("f srv/app/mine 600 mine")
			s.Plant("f srv/app/.ignored 600 mine")
			s.Plant("f srv/app/d/mine 600 mine")
		}
		if i == 3 { // the directory is about to become a link
			if err := os.Remove(s.Path("srv/app/d/mine")); err != nil {
				t.Fatal(err)
			}
		}
		checkout(s, "/srv/up.git", "", apply.OK)
	}
	if s.Read("srv/app/mine") != "mine" || s.Read("srv/app/.ignored") != "mine" {
		t.Error("a file that git does not know is gone")
	}
	if got := u.in(app, "branch", "-vv"); !strings.Contains(got, "[origin/main]") {
		t.Errorf("a person cannot go on there: %s", got)
	}
}

// TestCheckoutKeepsWhatIsMine: what would be lost is an error that names it and leaves the tree as it is; with force it
// is discarded.
func TestCheckoutKeepsWhatIsMine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ change, want string }{
		"an edit":                           {"echo mine > a", "local changes of a"},
		"a removal":                         {"rm b", "local changes of b"},
		"a mode":                            {"chmod 755 a", "local changes of a"},
		"a staged change":                   {"echo mine > a; git add a; git show HEAD:a > a", "local changes of a"},
		"a staged file":                     {"echo mine > c; git add c", "local changes of c"},
		"a new file that is in the way":     {"echo mine > new", "files that are now in the repository too, new"},
		"a file where a directory is to be": {"echo mine > dir", "files that are now in the repository too, dir/x"},
		"a commit":                          {"echo mine > a; git commit -qam mine", "commits of its own, "},
		"a commit on another branch":        {"echo mine > a; git commit -qam mine; git checkout -q --detach HEAD~", "commits of its own, "},
	} {
		t.Run(name, func(t *testing.T) {
			s := actiontest.New(t)
			u := newUpstream(s)
			u.commit("echo 1 > a; echo 1 > b")
			checkout(s, "/srv/up.git", "", apply.Changed)
			u.in(s.Path("srv/app"), "-c", "alias.sh=!sh -ec '"+c.change+"'", "sh")
			last := u.commit("echo 2 > a; rm b; echo theirs > new; mkdir dir; echo x > dir/x")
			before := withoutGit(s.Tree())
			r := checkout(s, "/srv/up.git", "", apply.Failed)
			if !strings.HasPrefix(r.Reason, "/srv/app has "+c.want) || !strings.HasSuffix(r.Reason, ": take them away, or discard them with force: true") {
				t.Errorf("%q, want %q", r.Reason, c.want)
			}
			for _, d := range actiontest.OfFiles(actiontest.Differences(before, withoutGit(s.Tree()))) {
				t.Errorf("it changed: %s", d)
			}
			checkout(s, "/srv/up.git", ", force: true", apply.Changed)
			u.isWhole(s.Path("srv/app"), last)
			checkout(s, "/srv/up.git", "", apply.OK)
		})
	}
}

// withoutGit is a tree without what belongs to git itself.
func withoutGit(tree map[string]string) map[string]string {
	for path := range tree {
		if strings.Contains(path, "/.git") || strings.HasSuffix(path, "/srv/app") {
			delete(tree, path)
		}
	}
	return tree
}

// TestCheckoutIsNotMine: what is no loss is put right without force: another commit of the remote, and a history that
// was rewritten.
func TestCheckoutIsNotMine(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	u := newUpstream(s)
	first := u.commit("echo 1 > a")
	u.commit("echo 2 > a")
	checkout(s, "/srv/up.git", "", apply.Changed)
	u.in(s.Path("srv/app"), "checkout", "-q", first)
	checkout(s, "/srv/up.git", "", apply.Changed)
	u.git("reset", "-q", "--hard", first)
	rewritten := u.commit("echo 3 > a")
	checkout(s, "/srv/up.git", "", apply.Changed)
	u.isWhole(s.Path("srv/app"), rewritten)
}

// TestCheckoutBroughtCommits: a commit that pullet brought is no loss, also when the branch was left meanwhile and
// rewritten.
func TestCheckoutBroughtCommits(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	u := newUpstream(s)
	first := u.commit("echo 1 > a")
	u.commit("echo 2 > a")
	checkout(s, "/srv/up.git", ", ref: main", apply.Changed)
	checkout(s, "/srv/up.git", ", ref: "+first, apply.Changed)
	u.git("reset", "-q", "--hard", first)
	rewritten := u.commit("echo 3 > a")
	checkout(s, "/srv/up.git", ", ref: main", apply.Changed)
	u.isWhole(s.Path("srv/app"), rewritten)
	checkout(s, "/srv/up.git", ", ref: HEAD", apply.OK)
}

// TestCheckoutNamesInTheWay: of a branch or tag and one below its name a repository has one. Those that the
// remote had before give way; commits on a branch of the checkout do not.
func TestCheckoutNamesInTheWay(t *testing.T) {
	t.Parallel()
	for _, packed := range []bool{false, true} {
		s := actiontest.New(t)
		u := newUpstream(s)
		app := s.Path("srv/app")
		u.commit("echo 1 > a")
		for i, c := range []struct{ what, from, to string }{
			{"branch", "feature", "feature/x"}, {"branch", "feature/x", "feature/x/y"}, {"branch", "feature/x/y", "feature"},
			{"tag", "v1", "v1/final"}, {"tag", "v1/final", "v1"},
		} {
			if i == 0 || c.from == "v1" {
				u.commit(fmt.Sprintf("echo the first %s > a", c.what))
				u.git(c.what, c.from)
				checkout(s, "/srv/up.git", ", ref: "+c.from, apply.Changed)
			}
			if packed {
				u.in(app, "pack-refs", "--all")
			}
			u.git(c.what, "-d", c.from)
			commit := u.commit(fmt.Sprintf("echo %d > a", 2+i))
			u.git(c.what, c.to)
			checkout(s, "/srv/up.git", ", ref: "+c.to, apply.Changed)
			u.isWhole(app, commit)
			checkout(s, "/srv/up.git", ", ref: "+c.to, apply.OK)
			if got := u.in(app, "for-each-ref", "--format=%(refname)", "*/"+c.from); got != "" {
				t.Errorf("%s -> %s: %s", c.from, c.to, got)
			}
		}
		u.in(app, "checkout", "-q", "-b", "main/mine")
		u.in(app, "commit", "-q", "--allow-empty", "-m", "mine")
		u.in(app, "checkout", "-q", "--detach", "HEAD~")
		u.commit("echo 9 > a")
		if r := checkout(s, "/srv/up.git", ", ref: main", apply.Failed); !strings.Contains(r.Reason, "commits of its own") {
			t.Error(r.Reason)
		}
		checkout(s, "/srv/up.git", ", ref: main, force: true", apply.Changed)
	}
}

// TestCheckoutOfACommitNeedsNoRemote once it is there; a branch that cannot be asked for is an error of the plan
// already.
func TestCheckoutOfACommitNeedsNoRemote(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	u := newUpstream(s)
	first := u.commit("echo 1 > a")
	second := u.commit("echo 2 > a")
	checkout(s, "/srv/up.git", ", ref: "+first, apply.Changed)
	u.isWhole(s.Path("srv/app"), first)
	if err := os.Rename(u.dir, u.dir+".away"); err != nil {
		t.Fatal(err)
	}
	checkout(s, "/srv/up.git", ", ref: "+first, apply.OK)
	checkout(s, "/srv/up.git", ", ref: "+second, apply.Changed)
	u.isWhole(s.Path("srv/app"), second)
	if r := s.Plan(s.MustBind("git.checkout", "{name: /srv/app, url: /srv/up.git}")); r.Outcome != apply.Failed || !strings.Contains(r.Reason, "repository not found") {
		t.Errorf("%s %q", r.Outcome, r.Reason)
	}
}

// TestCheckoutOwner: all files belong to whom they should, and stay so after a change.
func TestCheckoutOwner(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	s := actiontest.New(t, "f etc/passwd 644 app:x:1234:1234::/:/bin/sh", "f etc/group 644 web:x:2345:", "d srv/app 750")
	u := newUpstream(s)
	for range 2 {
		u.commit("date +%N >> a; mkdir -p d; date +%N >> d/b; ln -sf nowhere link")
		checkout(s, "/srv/up.git", ", owner: app, group: web", apply.Changed)
		checkout(s, "/srv/up.git", ", owner: app, group: web", apply.OK)
		for path, what := range actiontest.Tree(t, s.Path("srv/app")) {
			if !strings.Contains(what, " 1234:2345 ") {
				t.Errorf("%s: %s", path, what)
			}
		}
	}
	if err := os.Lchown(s.Path("srv/app/link"), 0, 0); err != nil {
		t.Fatal(err)
	}
	if r := checkout(s, "/srv/up.git", ", owner: app, group: web", apply.Changed); r.Summary != "owner of 1 files" {
		t.Errorf("%q", r.Summary)
	}
	if info, err := os.Stat(s.Path("srv/app")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the directory that was there: %v %v", info.Mode(), err)
	}
}

// TestCheckoutOverHTTP: branches, tags, commits, and only as much history as is asked for; each check is one request.
func TestCheckoutOverHTTP(t *testing.T) {
	t.Parallel()
	for _, ids := range []string{"true", "false"} { // whether the server gives commits for their ids
		s := actiontest.New(t)
		u := newUpstream(s)
		u.in(u.dir, "config", "uploadpack.allowReachableSHA1InWant", ids)
		first := u.commit("echo 1 > a")
		second := u.commit("echo 2 > a")
		u.git("tag", "-a", "-m", "v2", "v2")
		third := u.commit("echo 3 > a")
		requests := 0
		url := u.web(func(http.ResponseWriter, *http.Request) bool { requests++; return false })
		app := s.Path("srv/app")
		for _, c := range []struct{ ref, want string }{{"", third}, {", ref: v2", second}, {", ref: " + first, first}, {", ref: main", third}} {
			checkout(s, url, ", depth: 1"+c.ref, apply.Changed)
			u.isWhole(app, c.want)
			requests = 0
			checkout(s, url, ", depth: 1"+c.ref, apply.OK)
			if asked := c.want != first; asked != (requests == 1) {
				t.Errorf("ref %q: the check made %d requests", c.ref, requests)
			}
			if got := u.in(app, "rev-list", "--count", "HEAD"); c.ref == "" && got != "1" {
				t.Errorf("%s commits are here, want 1", got)
			}
		}
		for range 2 { // also when the history is cut short
			next := u.commit("date +%N >> a")
			checkout(s, url, "", apply.Changed)
			u.isWhole(app, next)
		}
	}
}

// TestCheckoutLogin: a token or a password is read from its file, sent, and shown nowhere.
func TestCheckoutLogin(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f etc/token 600 sesame\n")
	u := newUpstream(s)
	u.commit("echo 1 > a")
	seen := ""
	url := u.web(func(w http.ResponseWriter, r *http.Request) bool {
		user, password, _ := r.BasicAuth()
		if seen = user; password != "sesame" {
			http.Error(w, "no", http.StatusUnauthorized)
			return true
		}
		return false
	})
	if r := checkout(s, url, "", apply.Failed); !strings.Contains(r.Reason, "cannot read "+url+": authentication required: the server refused the credentials: check auth.username, auth.passwordFile or auth.tokenFile; try: git ls-remote ") {
		t.Errorf("%q", r.Reason)
	}
	checkout(s, url, ", auth: {username: ada, passwordFile: /etc/token}", apply.Changed)
	if seen != "ada" {
		t.Errorf("the user is %q", seen)
	}
	checkout(s, url, ", auth: {tokenFile: /etc/token}", apply.OK)
	if seen != "git" {
		t.Errorf("the user is %q", seen)
	}
	for path, what := range actiontest.Tree(t, s.Path("srv/app")) {
		if strings.Contains(what, "sesame") {
			t.Errorf("%s holds the secret", path)
		}
	}
}

// TestCheckoutStops when it is told to or takes too long, in whatever the server hangs, and leaves nothing behind.
func TestCheckoutStops(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]string{"in the list": "GET", "in the fetch": "POST"} {
		t.Run(name, func(t *testing.T) {
			s := actiontest.New(t)
			u := newUpstream(s)
			u.commit("echo 1 > a")
			arrived := make(chan bool, 10)
			url := u.web(func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method != hang {
					return false
				}
				_, _ = io.Copy(io.Discard, r.Body) // or the server does not see that the client went away
				arrived <- true
				<-r.Context().Done()
				return true
			})
			ctx, cancel := context.WithCancel(context.Background())
			p, done := s.MustBind("git.checkout", "{name: /srv/app, url: '"+url+"'}"), make(chan *apply.Report, 1)
			go func() { done <- s.RunAll(ctx, p) }()
			<-arrived
			cancel()
			if r := <-done; r.Stopped == "" || r.Failed() {
				t.Errorf("stopped %q, failed %v", r.Stopped, r.Failed())
			}
			nothingLeft(s)
			if hang == "POST" {
				if r := checkout(s, url, ", timeout: 100ms", apply.Failed); !strings.Contains(r.Reason, "cannot read "+url+": no answer within 100ms") {
					t.Errorf("%q", r.Reason)
				}
				nothingLeft(s)
			}
		})
	}
}

// nothingLeft: a checkout that did not come about left nothing beside its place either.
func nothingLeft(s *actiontest.Scene) {
	s.T.Helper()
	left, err := filepath.Glob(s.Path("srv/*app*"))
	hidden, bad := filepath.Glob(s.Path("srv/.*"))
	if left = append(left, hidden...); len(left) > 0 || err != nil || bad != nil {
		s.T.Errorf("left: %q %v %v", left, err, bad)
	}
}

// TestCheckoutStopsWhileConnecting: a server that takes a connection and says nothing is left to itself.
func TestCheckoutStopsWhileConnecting(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	arrived := make(chan net.Conn, 1)
	go func() {
		if conn, err := l.Accept(); err == nil {
			arrived <- conn
		}
	}()
	s := actiontest.New(t)
	_, key := newSSHKey(t)
	s.Plant("f k 600 " + key)
	s.Plant("f h 644")
	ctx, cancel := context.WithCancel(context.Background())
	params := fmt.Sprintf("{name: /srv/app, url: 'ssh://git@%s/x.git', auth: {sshKey: /k, knownHosts: /h}}", l.Addr())
	p, done := s.MustBind("git.checkout", params), make(chan *apply.Report, 1)
	go func() { done <- s.RunAll(ctx, p) }()
	conn := <-arrived
	defer conn.Close()
	cancel()
	if r := <-done; r.Stopped == "" || r.Failed() {
		t.Errorf("stopped %q, failed %v", r.Stopped, r.Failed())
	}
}

// TestCheckoutHostileServer: 32 bytes that announce all objects there can be are an error of the step, and the next
// server is read.
func TestCheckoutHostileServer(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	u := newUpstream(s)
	commit := u.commit("echo 1 > a")
	evil := true
	url := u.web(func(w http.ResponseWriter, r *http.Request) bool {
		if !evil || r.Method != http.MethodPost {
			return false
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		header := "PACK\x00\x00\x00\x02\xff\xff\xff\xff"
		sum := sha1.Sum([]byte(header))
		fmt.Fprintf(w, "0008NAK\n%s%s", header, sum[:])
		return true
	})
	want := "cannot read " + url + ": a pack of 4294967295 objects: more than the limit of 4000000; if the repository really needs it, raise agent.git.objects; try: git ls-remote " + url
	if r := checkout(s, url, "", apply.Failed); r.Reason != want {
		t.Errorf("got  %s\nwant %s", r.Reason, want)
	}
	nothingLeft(s)
	evil = false
	checkout(s, url, "", apply.Changed)
	u.isWhole(s.Path("srv/app"), commit)
}

// TestCheckoutRefuses: what is not in the repository itself is refused by name, before anything changes.
func TestCheckoutRefuses(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"git init -q module; cd module; git commit -q --allow-empty -m x":                                                                              "/srv/app: module is a submodule, which is not fetched: put its files into the repository, or check it out with a step of its own; the next run goes on",
		"echo 2 > a; printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32\\nsize 12345\\n' > logo": "/srv/app: logo is kept in git LFS, which is not fetched: put it into the repository as it is; the next run goes on",
		"echo 2 > a; mkdir d; echo 'key filter=git-crypt' > d/.gitattributes; echo x > d/key":                                                          "/srv/app: d/key: the filter git-crypt of .gitattributes makes the content of this file, and hosts run no filters: they would get what the commit holds; put the file into the repository as it is, or encrypt it with pullet secrets edit; the next run goes on",
	} {
		s := actiontest.New(t)
		u := newUpstream(s)
		first := u.commit("echo 1 > a")
		checkout(s, "/srv/up.git", "", apply.Changed)
		u.commit(change)
		if r := checkout(s, "/srv/up.git", "", apply.Failed); r.Reason != want {
			t.Errorf("got  %s\nwant %s", r.Reason, want)
		}
		u.isWhole(s.Path("srv/app"), first)
	}
}

// TestCheckoutDrift: a branch that moved is no drift; what was changed on the host is, even if the branch moved, too.
func TestCheckoutDrift(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	u := newUpstream(s)
	app := s.Path("srv/app")
	for _, c := range []struct {
		name, ref string
		do        func()
		drift     bool
	}{
		{"a new checkout", "main", func() { u.commit("echo 1 > file") }, false},
		{"the branch moved", "main", func() { u.commit("echo 2 > file") }, false},
		{"somebody went back", "main", func() { u.in(app, "checkout", "-q", "HEAD~1") }, true},
		{"the branch moved again", "main", func() { u.commit("echo 3 > file") }, false},
		{"the branch moved, and somebody changed the url", "main", func() {
			u.in(app, "remote", "set-url", "origin", "/srv/other.git")
			u.commit("echo 4 > file")
		}, true},
		{"the branch moved, and somebody went back", "main", func() {
			u.in(app, "reset", "-q", "--hard", "HEAD~1")
			u.commit("echo 5 > file")
		}, true},
	} {
		c.do()
		if r := checkout(s, "/srv/up.git", ", ref: "+c.ref, apply.Changed); r.Drift != c.drift {
			t.Errorf("%s: %q, drift %v, want %v", c.name, r.Summary, r.Drift, c.drift)
		}
		checkout(s, "/srv/up.git", ", ref: "+c.ref, apply.OK)
	}
}
