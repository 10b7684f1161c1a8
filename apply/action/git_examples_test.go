package action_test

import "maps"

// twoCommits is a repository with the branches main and old, and an annotated tag.
func twoCommits(s *scene) {
	s.t.Helper()
	u := s.upstream()
	u.commit("echo 1 > a; mkdir d; echo b > d/b; ln -s /etc/hostname link; echo '#!/bin/sh' > run; chmod 755 run")
	u.git("branch", "old")
	u.git("push", "-q", "origin", "old")
	u.git("tag", "-a", "-m", "v1", "v1")
	u.commit("echo 2 > a; git rm -q d/b")
}

// checkedOut is the same with a checkout of the branch old.
func checkedOut(s *scene) {
	s.t.Helper()
	twoCommits(s)
	s.mustRun("git.checkout", "{name: /srv/app, url: /srv/up.git, ref: old}")
}

// dirty is the same, and somebody changed files.
func dirty(s *scene) {
	s.t.Helper()
	checkedOut(s)
	s.plant("f srv/app/mine 644 mine")
	s.plant("f srv/app/a 644 changed")
	s.plant("f srv/app/d/b 644 changed")
}

func init() {
	maps.Copy(examples, map[string][]example{
		"git.checkout": {
			{name: "clone", params: "{name: /srv/app, url: /srv/up.git}", prepare: twoCommits, want: "clone main at 6ba6bec1"},
			{name: "clone a tag", params: "{name: /srv/app, url: 'file:///srv/up.git', ref: v1}", prepare: twoCommits, want: "clone v1 at 72a3a3d0"},
			{name: "clone a commit", params: "{name: /srv/new/app, url: /srv/up.git, ref: 72a3a3d0a45806811e809f16df49a59488acff19}", prepare: twoCommits, want: "clone 72a3a3d0"},
			{name: "clone into an empty directory", params: "{name: /srv/app, url: /srv/up.git}", host: []string{"d srv/app 700"}, prepare: twoCommits, want: "clone main at 6ba6bec1"},
			{name: "right already", params: "{name: /srv/app, url: /srv/up.git, ref: old}", prepare: checkedOut},
			{name: "another branch", params: "{name: /srv/app, url: /srv/up.git, ref: main}", prepare: checkedOut, want: "72a3a3d0 -> main at 6ba6bec1"},
			{name: "another url", params: "{name: /srv/app, url: 'file:///srv/up.git', ref: old}", prepare: checkedOut, want: "url /srv/up.git -> file:///srv/up.git"},
			{name: "changed by hand", params: "{name: /srv/app, url: /srv/up.git, ref: old}", prepare: dirty, fails: "/srv/app has local changes of a, d/b: take them away, or discard them with force: true"},
			{name: "changed by hand, with force", params: "{name: /srv/app, url: /srv/up.git, ref: old, force: true}", prepare: dirty, want: "discard local changes of a, d/b"},
			{name: "changed by hand, another branch, with force", params: "{name: /srv/app, url: /srv/up.git, force: true}", prepare: dirty, want: "72a3a3d0 -> main at 6ba6bec1, discard local changes of a, d/b"},
			{name: "no such branch", params: "{name: /srv/app, url: /srv/up.git, ref: mian}", prepare: twoCommits, fails: `/srv/up.git has no branch or tag "mian" (did you mean "main"?)`},
			{name: "a short commit id", params: "{name: /srv/app, url: /srv/up.git, ref: 1234abcd}", prepare: twoCommits, fails: `has no branch or tag "1234abcd": a commit is written with all of its 40 digits`},
			{name: "no such commit", params: "{name: /srv/app, url: /srv/up.git, ref: 1234567812345678123456781234567812345678}", prepare: twoCommits, want: "clone 12345678", fails: "/srv/up.git does not offer the commit 1234567812345678123456781234567812345678"},
			{name: "no repository", params: "{name: /srv/app, url: /srv/up.git}", fails: "cannot read /srv/up.git: repository not found"},
			{name: "an empty repository", params: "{name: /srv/app, url: /srv/up.git}", prepare: func(s *scene) { s.upstream() }, fails: "cannot read /srv/up.git: remote repository is empty: push a commit first; try: git ls-remote "},
			{name: "something else is there", params: "{name: /srv/app, url: /srv/up.git}", host: []string{"f srv/app/x 644"}, prepare: twoCommits, fails: "/srv/app is there and is no checkout"},
			{name: "a file is there", params: "{name: /srv/app, url: /srv/up.git}", host: []string{"f srv/app 644"}, prepare: twoCommits, fails: "/srv/app is not a directory"},
			{name: "no such owner", params: "{name: /srv/app, url: /srv/up.git, owner: nobody-has-this}", host: noAccounts, prepare: twoCommits, want: "clone main at 6ba6bec1", fails: `there is no user "nobody-has-this"`},
			{name: "no such owner of a checkout", params: "{name: /srv/app, url: /srv/up.git, owner: app}", host: noAccounts, prepare: checkedOut, want: "72a3a3d0 -> main at 6ba6bec1, owner of 26 files", fails: `there is no user "app" on this host`},
			{name: "nobody answers", params: "{name: /srv/app, url: 'http://127.0.0.1:1/x.git'}", fails: "cannot read http://127.0.0.1:1/x.git: "},
			{name: "an open key", params: "{name: /srv/app, url: 'git@127.0.0.1:x.git', auth: {sshKey: /k, knownHosts: /h}}", host: []string{"f k 644 x"}, fails: "are open to others (mode 0644): chmod 600 /"},
			{name: "no key", params: "{name: /srv/app, url: 'git@127.0.0.1:x.git', auth: {sshKey: /k, knownHosts: /h}}", host: []string{"f k 600 x"}, fails: "/k: ssh: no key found; try: "},
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
