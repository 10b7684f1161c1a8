package action_test

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing/fstest"

	"github.com/pullet/pullet/apply/action/actiontest"
)

// commits are what twoCommits imports.
const commits = `blob
mark :1
data 2
1
blob
mark :2
data 2
b
blob
mark :3
data 13
/etc/hostname
blob
mark :4
data 10
#!/bin/sh
commit refs/heads/old
mark :5
author t <t@example.org> 1700000300 +0000
committer t <t@example.org> 1700000300 +0000
data 7
change
M 100644 :1 a
M 100644 :2 d/b
M 120000 :3 link
M 100755 :4 run

blob
mark :6
data 2
2
commit refs/heads/main
mark :7
author t <t@example.org> 1700000720 +0000
committer t <t@example.org> 1700000720 +0000
data 7
change
from :5
M 100644 :6 a
D d/b

tag v1
from :5
tagger t <t@example.org> 1700000600 +0000
data 3
v1
`

// twoCommits is a repository with the branches main and old, and an annotated tag.
func twoCommits(s *actiontest.Scene) { bare(s, commits) }

// imported are the files of bare repositories, by what git fast-import read. Each is imported once.
var imported sync.Map

// bare makes a repository at /srv/up.git, with what git fast-import reads.
func bare(s *actiontest.Scene, commits string) {
	s.T.Helper()
	s.Plant("d srv/up.git 755")
	if files, known := imported.Load(commits); known {
		if err := os.CopyFS(s.Path("srv/up.git"), files.(fs.FS)); err != nil {
			s.T.Fatal(err)
		}
		return
	}
	for _, args := range [][]string{{"init", "-q", "--bare", "--template=", "-b", "main"}, {"fast-import", "--quiet"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = s.Path("srv/up.git"), strings.NewReader(commits)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Root, "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			s.T.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
	}
	files := fstest.MapFS{}
	from := os.DirFS(s.Path("srv/up.git"))
	err := fs.WalkDir(from, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files[path] = &fstest.MapFile{Mode: info.Mode()}
		if !d.IsDir() {
			files[path].Data, err = fs.ReadFile(from, path)
		}
		return err
	})
	if err != nil {
		s.T.Fatal(err)
	}
	imported.Store(commits, files)
}

// checkedOut is the same with a checkout of the branch old.
func checkedOut(s *actiontest.Scene) {
	s.T.Helper()
	twoCommits(s)
	s.MustRun("git.checkout", "{name: /srv/app, url: /srv/up.git, ref: old}")
}

// dirty is the same, and somebody changed files.
func dirty(s *actiontest.Scene) {
	s.T.Helper()
	checkedOut(s)
	s.Plant("f srv/app/mine 644 mine")
	s.Plant("f srv/app/a 644 changed")
	s.Plant("f srv/app/d/b 644 changed")
}

func init() {
	maps.Copy(examples, map[string][]actiontest.Example{
		"git.checkout": {
			{Name: "clone", Params: "{name: /srv/app, url: /srv/up.git}", Prepare: twoCommits, Want: "clone main at 6ba6bec1"},
			{Name: "clone a tag", Params: "{name: /srv/app, url: 'file:///srv/up.git', ref: v1}", Prepare: twoCommits, Want: "clone v1 at 72a3a3d0"},
			{Name: "clone a commit", Params: "{name: /srv/new/app, url: /srv/up.git, ref: 72a3a3d0a45806811e809f16df49a59488acff19}", Prepare: twoCommits, Want: "clone 72a3a3d0"},
			{Name: "clone into an empty directory", Params: "{name: /srv/app, url: /srv/up.git}", Host: []string{"d srv/app 700"}, Prepare: twoCommits, Want: "clone main at 6ba6bec1"},
			{Name: "right already", Params: "{name: /srv/app, url: /srv/up.git, ref: old}", Prepare: checkedOut},
			{Name: "another branch", Params: "{name: /srv/app, url: /srv/up.git, ref: main}", Prepare: checkedOut, Want: "72a3a3d0 -> main at 6ba6bec1"},
			{Name: "another url", Params: "{name: /srv/app, url: 'file:///srv/up.git', ref: old}", Prepare: checkedOut, Want: "url /srv/up.git -> file:///srv/up.git"},
			{Name: "changed by hand", Params: "{name: /srv/app, url: /srv/up.git, ref: old}", Prepare: dirty, Fails: "/srv/app has local changes of a, d/b: take them away, or discard them with force: true"},
			{Name: "changed by hand, with force", Params: "{name: /srv/app, url: /srv/up.git, ref: old, force: true}", Prepare: dirty, Want: "discard local changes of a, d/b"},
			{Name: "changed by hand, another branch, with force", Params: "{name: /srv/app, url: /srv/up.git, force: true}", Prepare: dirty, Want: "72a3a3d0 -> main at 6ba6bec1, discard local changes of a, d/b"},
			{Name: "no such branch", Params: "{name: /srv/app, url: /srv/up.git, ref: mian}", Prepare: twoCommits, Fails: `/srv/up.git has no branch or tag "mian" (did you mean "main"?)`},
			{Name: "a short commit id", Params: "{name: /srv/app, url: /srv/up.git, ref: 1234abcd}", Prepare: twoCommits, Fails: `has no branch or tag "1234abcd": a commit is written with all of its 40 digits`},
			{Name: "no such commit", Params: "{name: /srv/app, url: /srv/up.git, ref: 1234567812345678123456781234567812345678}", Prepare: twoCommits, Want: "clone 12345678", Fails: "/srv/up.git does not offer the commit 1234567812345678123456781234567812345678"},
			{Name: "no repository", Params: "{name: /srv/app, url: /srv/up.git}", Fails: "cannot read /srv/up.git: repository not found"},
			{Name: "an empty repository", Params: "{name: /srv/app, url: /srv/up.git}", Prepare: func(s *actiontest.Scene) { bare(s, "") }, Fails: "cannot read /srv/up.git: remote repository is empty: push a commit first; try: git ls-remote "},
			{Name: "something else is there", Params: "{name: /srv/app, url: /srv/up.git}", Host: []string{"f srv/app/x 644"}, Prepare: twoCommits, Fails: "/srv/app is there and is no checkout"},
			{Name: "a file is there", Params: "{name: /srv/app, url: /srv/up.git}", Host: []string{"f srv/app 644"}, Prepare: twoCommits, Fails: "/srv/app is not a directory"},
			{Name: "no such owner", Params: "{name: /srv/app, url: /srv/up.git, owner: nobody-has-this}", Host: noAccounts, Prepare: twoCommits, Want: "clone main at 6ba6bec1", Fails: `there is no user "nobody-has-this"`},
			{Name: "no such owner of a checkout", Params: "{name: /srv/app, url: /srv/up.git, owner: app}", Host: noAccounts, Prepare: checkedOut, Want: "72a3a3d0 -> main at 6ba6bec1, owner of 28 files", Fails: `there is no user "app" on this host`},
			{Name: "nobody answers", Params: "{name: /srv/app, url: 'http://127.0.0.1:1/x.git'}", Fails: "cannot read http://127.0.0.1:1/x.git: "},
			{Name: "an open key", Params: "{name: /srv/app, url: 'git@127.0.0.1:x.git', auth: {sshKey: /k, knownHosts: /h}}", Host: []string{"f k 644 x"}, Fails: "are open to others (mode 0644): chmod 600 /"},
			{Name: "no key", Params: "{name: /srv/app, url: 'git@127.0.0.1:x.git', auth: {sshKey: /k, knownHosts: /h}}", Host: []string{"f k 600 x"}, Fails: "/k: ssh: no key found; try: "},
		},
	})
	mistakes = append(mistakes, []mistake{
		{"git.checkout", "{name: /srv/x, url: 'http://git.example.org/x', auth: {tokenFile: /t}}", "url: is http, and the credentials could be read on the way: use https"},
		{"git.checkout", "{url: /x}", `jobs/a.yaml:2:3: parameters: "name" is missing`},
		{"git.checkout", "{name: x, url: /x}", `jobs/a.yaml:4:22: name: "x" is not an absolute path`},
		{"git.checkout", "{name: /x, url: x}", `jobs/a.yaml:4:31: url: "x" is not supported: write https://HOST/PATH, git@HOST:PATH, or an absolute path`},
		{"git.checkout", "{name: /x, url: 'git://h/x'}", `url: "git://h/x" is not supported`},
		{"git.checkout", "{name: /x, url: 'https://h:x/y'}", "url: cannot be parsed"},
		{"git.checkout", "{name: /x, url: 'https://sesame@h/x'}", "url: holds a user or password: put them into auth, the secret in a file"},
		{"git.checkout", "{name: /x, url: /y, ref: 'a..b'}", `ref: "a..b" is neither a branch nor a tag nor a commit`},
		{"git.checkout", "{name: /x, url: /y, depth: -1}", "depth: is less than 0"},
		{"git.checkout", "{name: /x, url: /y, timeout: 0}", "timeout: must be more than 0"},
		{"git.checkout", "{name: /x, url: 'git@h:y'}", "jobs/a.yaml:2:3: auth: an ssh url needs sshKey, a private key, and knownHosts"},
		{"git.checkout", "{name: /x, url: 'https://h/y', auth: {sshKey: /k}}", "auth: sshKey and knownHosts are for ssh urls"},
		{"git.checkout", "{name: /x, url: /y, auth: {tokenFile: /k}}", "auth: username, passwordFile and tokenFile are for https urls"},
		{"git.checkout", "{name: /x, url: 'https://h/y', auth: {tokenFile: /k, passwordFile: /p}}", "auth: passwordFile and tokenFile exclude each other: keep one"},
		{"git.checkout", "{name: /x, url: 'https://h/y', auth: {passwordFile: /p}}", "auth: passwordFile needs username"},
		{"git.checkout", "{name: /x, url: 'https://h/y', auth: {tokenFile: k}}", `auth: tokenFile: "k" is not an absolute path`},
	}...)
}
