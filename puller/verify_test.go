package puller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/gitremote"
)

// keyring is a directory with keys of the real ssh-keygen and gpg.
type keyring struct {
	t   testing.TB
	dir string
}

func newKeyring(t testing.TB) keyring {
	t.Helper()
	dir, err := os.MkdirTemp("", "keys") // gpg-agent's socket needs a short path
	must(t, err)
	k := keyring{t, dir}
	t.Cleanup(func() {
		kill := exec.Command("gpgconf", "--kill", "all")
		kill.Env = k.env()
		if out, err := kill.CombinedOutput(); err != nil {
			t.Logf("gpgconf: %v %s", err, out)
		}
		must(t, os.RemoveAll(dir))
	})
	return k
}

func (k keyring) env() []string { return append(os.Environ(), "GNUPGHOME="+k.dir) }

func (k keyring) run(name string, args ...string) string {
	k.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = k.env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		k.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// ssh makes a key, and returns the options of git that sign with it.
func (k keyring) ssh(name, kind string, more ...string) []string {
	k.t.Helper()
	file := filepath.Join(k.dir, name)
	k.run("ssh-keygen", append([]string{"-q", "-t", kind, "-N", "", "-C", name, "-f", file}, more...)...)
	return []string{"-c", "gpg.format=ssh", "-c", "user.signingKey=" + file, "-c", "commit.gpgSign=true", "-c", "tag.gpgSign=true"}
}

// allow is the line of a file of allowed signers.
func (k keyring) allow(name, options string) string {
	k.t.Helper()
	key, err := os.ReadFile(filepath.Join(k.dir, name+".pub"))
	must(k.t, err)
	return strings.Join(strings.Fields(name+" "+options+" "+string(key)), " ") + "\n"
}

// file writes a file beside the keys.
func (k keyring) file(name, content string) string {
	k.t.Helper()
	file := filepath.Join(k.dir, name)
	must(k.t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

// signed is upstream.commit with a signature.
func (u *upstream) signed(with []string, files ...string) string {
	u.t.Helper()
	u.write(files...)
	u.stage()
	u.git(append(with, "commit", "-q", "--allow-empty", "-m", "change")...)
	return u.head()
}

// expectRefusal fails unless a pull is refused, with a text that has all parts, and keeps the last good commit; "" is
// none.
func expectRefusal(t *testing.T, p *Puller, good string, parts ...string) {
	t.Helper()
	heads, err := p.Pull(context.Background())
	if good != "" {
		must(t, err)
		if heads[0].Commit != good {
			t.Errorf("the head is %s, not the last good %s", heads[0].Commit, good)
		}
		err = heads[0].Problem
	}
	if _, ok := errors.AsType[*UnverifiedError](err); !ok {
		t.Fatalf("not refused: %v", err)
	}
	t.Log(err)
	expect(t, err, parts...)
}

// TestVerifyRange: an unsigned commit in the middle holds the host back, also when signed ones follow.
func TestVerifyRange(t *testing.T) {
	u, k := newUpstream(t), newKeyring(t)
	old := u.commit("a", "before anybody signed")
	alice := k.ssh("alice", "ed25519")
	mallory := k.ssh("mallory", "ed25519")
	src := Source{Name: "main", URL: u.dir, Verify: Verify{AllowedSigners: k.file("allowed", k.allow("alice", "")), Since: old}}
	p := open(t, t.TempDir(), src)

	if h := pull(t, p); h.Problem != nil || h.Commit != old {
		t.Fatalf("since is not trusted: %+v", h)
	}
	good := u.signed(alice, "a", "1")
	if h := pull(t, p); h.Problem != nil || content(t, p, h, "a") != "1" {
		t.Fatalf("a signed commit is refused: %v", h.Problem)
	}
	bad := u.commit("a", "2")
	u.signed(alice, "a", "3")
	expectRefusal(t, p, good, "commit "+short(bad)+" has no signature", "git rebase -S -f "+short(good))

	u.git("reset", "-q", "--hard", good)
	wrong := u.signed(mallory, "a", "4")
	expectRefusal(t, p, good, "commit "+short(wrong)+" is signed by key SHA256:", "which is not listed", "list it in "+k.dir)

	u.git("reset", "-q", "--hard", good)
	u.signed(alice, "a", "5")
	fixed := u.signed(alice, "a", "6")
	if h := pull(t, p); h.Problem != nil || h.Commit != fixed {
		t.Errorf("the fixed branch is refused: %v", h.Problem)
	}
	_, err := p.Snapshot(context.Background(), []Head{{Repo: "main", Commit: bad}})
	expect(t, err, "has no signature")
}

// TestVerifyFromTheStart: without since, all history has to be signed.
func TestVerifyFromTheStart(t *testing.T) {
	u, k := newUpstream(t), newKeyring(t)
	first := u.commit("a", "1")
	alice := k.ssh("alice", "ed25519")
	u.signed(alice, "a", "2")
	src := Source{Name: "main", URL: u.dir, Verify: Verify{AllowedSigners: k.file("allowed", k.allow("alice", ""))}}
	p := open(t, t.TempDir(), src)
	expectRefusal(t, p, "", "commit "+short(first)+" has no signature", `set verify.since of repository "main"`)
	src.Verify.Since = strings.Repeat("0123456789", 4)
	p = open(t, t.TempDir(), src)
	expectRefusal(t, p, "", "commit "+short(u.head())+" does not have verify.since in its history",
		"git merge-base --is-ancestor 01234567 "+short(u.head())+"; or correct verify.since")
}

// TestVerifyMerges: what a merge brings is looked at, too.
func TestVerifyMerges(t *testing.T) {
	u, k := newUpstream(t), newKeyring(t)
	alice := k.ssh("alice", "ed25519")
	start := u.signed(alice, "a", "1")
	src := Source{Name: "main", URL: u.dir, Verify: Verify{AllowedSigners: k.file("allowed", k.allow("alice", ""))}}
	p := open(t, t.TempDir(), src)
	pull(t, p)
	good := u.signed(alice, "b", "on the branch")
	pull(t, p)

	u.git("checkout", "-q", "-b", "feature", start) // leaves the line before what is verified
	signed := u.signed(alice, "c", "1")
	u.git("checkout", "-q", "main")
	u.git(append(alice, "merge", "-q", "--no-ff", "-m", "merge", "feature")...)
	merged := u.head()
	if h := pull(t, p); h.Problem != nil || h.Commit != merged {
		t.Fatalf("a merge of signed commits is refused: %v (%s, %s)", h.Problem, good, signed)
	}
	u.git("checkout", "-q", "feature")
	u.write("c", "2")
	u.git("commit", "-q", "-a", "-m", "unsigned")
	bad := u.git("rev-parse", "HEAD")
	u.git("checkout", "-q", "main")
	u.git(append(alice, "merge", "-q", "--no-ff", "-m", "merge", "feature")...)
	expectRefusal(t, p, merged, "commit "+short(bad)+" has no signature")
}

// TestVerifyKinds: every kind of key that git signs with.
func TestVerifyKinds(t *testing.T) {
	u, k := newUpstream(t), newKeyring(t)
	u.env = []string{"GNUPGHOME=" + k.dir}
	with := map[string][]string{
		"ed25519": k.ssh("ed25519", "ed25519"),
		"ecdsa":   k.ssh("ecdsa", "ecdsa", "-b", "384"),
		"rsa":     k.ssh("rsa", "rsa", "-b", "3072"),
	}
	allowed := ""
	for name := range with {
		allowed += k.allow(name, "")
	}
	for _, kind := range []string{"ed25519", "rsa3072", "nistp256"} {
		name := "pgp-" + kind
		k.run("gpg", "--batch", "--quiet", "--passphrase", "", "--faked-system-time", "1700000000!",
			"--quick-generate-key", name+" <"+name+"@example.org>", kind, "sign", "never")
		with[name] = []string{"-c", "user.signingKey=" + name + "@example.org", "-c", "commit.gpgSign=true"}
	}
	src := Source{Name: "main", URL: u.dir, Verify: Verify{
		AllowedSigners: k.file("allowed", allowed),
		OpenPGP:        k.file("ring.asc", k.run("gpg", "--armor", "--export")),
	}}
	p := open(t, t.TempDir(), src)
	for name, sign := range with {
		commit := u.signed(sign, "a", name)
		if h := pull(t, p); h.Problem != nil || h.Commit != commit {
			t.Errorf("%s: %v", name, h.Problem)
		}
	}
}

// TestVerifyTime: a key counts from one day to another, at the place of the commit in history.
func TestVerifyTime(t *testing.T) {
	u, k := newUpstream(t), newKeyring(t)
	alice, bob := k.ssh("alice", "ed25519"), k.ssh("bob", "ed25519")
	lines := k.allow("alice", `namespaces="git",valid-before="20240101Z"`) + k.allow("bob", `valid-after="20240101Z"`)
	src := Source{Name: "main", URL: u.dir, Verify: Verify{AllowedSigners: k.file("allowed", lines)}}
	p := open(t, t.TempDir(), src)
	at := func(day string) {
		noon, err := time.Parse(time.RFC3339, day+"T12:00:00Z")
		must(t, err)
		u.at = noon
	}

	at("2023-06-01")
	good := u.signed(alice, "a", "1")
	if h := pull(t, p); h.Problem != nil {
		t.Fatal(h.Problem)
	}
	u.signed(bob, "a", "too early")
	expectRefusal(t, p, good, "which is not valid on 2023-06-01")
	u.git("reset", "-q", "--hard", good)
	at("2024-06-01")
	u.signed(alice, "a", "too late")
	expectRefusal(t, p, good, "which is not valid on 2024-06-01")
	u.git("reset", "-q", "--hard", good)
	good = u.signed(bob, "a", "2")
	if h := pull(t, p); h.Problem != nil {
		t.Fatal(h.Problem)
	}
	at("2023-07-01")
	u.signed(alice, "a", "dated back")
	expectRefusal(t, p, good, "which is not valid on 2024-06-01")
}

// TestVerifyRemovedKey: what was verified stays so; what is new needs a key that is listed.
func TestVerifyRemovedKey(t *testing.T) {
	u, k := newUpstream(t), newKeyring(t)
	alice, bob := k.ssh("alice", "ed25519"), k.ssh("bob", "ed25519")
	file := k.file("allowed", k.allow("alice", "")+k.allow("bob", ""))
	src := Source{Name: "main", URL: u.dir, Verify: Verify{AllowedSigners: file}}
	dir := t.TempDir()
	p := open(t, dir, src)
	u.signed(alice, "a", "1")
	good := u.signed(alice, "a", "2")
	pull(t, p)
	k.file("allowed", k.allow("bob", ""))
	must(t, p.Close())
	p = open(t, dir, src)
	if h := pull(t, p); h.Problem != nil || content(t, p, h, "a") != "2" {
		t.Fatalf("what was verified is not any more: %v", h.Problem)
	}
	u.signed(alice, "a", "3")
	expectRefusal(t, p, good, "is not listed")
	u.git("reset", "-q", "--hard", good)
	u.signed(bob, "a", "4")
	if h := pull(t, p); h.Problem != nil {
		t.Error(h.Problem)
	}
}

// TestVerifyKeysInRepository: each commit is held against the keys that were listed before it.
func TestVerifyKeysInRepository(t *testing.T) {
	u, k := newUpstream(t), newKeyring(t)
	alice, bob := k.ssh("alice", "ed25519"), k.ssh("bob", "ed25519")
	since := u.commit("keys/allowed", k.allow("alice", ""))
	src := Source{Name: "main", URL: u.dir, Verify: Verify{AllowedSigners: InRepository + "keys/allowed", Since: since}}
	dir := t.TempDir()
	p := open(t, dir, src)
	pull(t, p)
	own := u.signed(bob, "keys/allowed", k.allow("alice", "")+k.allow("bob", ""))
	expectRefusal(t, p, since, "commit "+short(own)+" is signed by key SHA256:", "not listed")
	u.git("reset", "-q", "--hard", since)
	both := u.signed(alice, "keys/allowed", k.allow("alice", "")+k.allow("bob", ""))
	pull(t, p)
	u.signed(bob, "a", "1")
	only := u.signed(bob, "keys/allowed", k.allow("bob", ""))
	if h := pull(t, p); h.Problem != nil || h.Commit != only {
		t.Fatalf("a key that was added counts behind it: %v", h.Problem)
	}
	// Alice, whose key is gone, merges the other way round from where it was listed.
	u.git("checkout", "-q", "-b", "side", both)
	u.signed(alice, "b", "1")
	u.git(append(alice, "merge", "-q", "--no-ff", "-m", "merge", "main")...)
	u.git("checkout", "-q", "main")
	u.git("reset", "-q", "--hard", "side")
	expectRefusal(t, p, only, "not listed")
	u.git("reset", "-q", "--hard", only)
	u.signed(bob, "keys/allowed", "nonsense\n")
	expectRefusal(t, p, only, "does not say who may sign: keys/allowed:1: no key after the principals")
}

// TestVerifyPaths: the right key, and the wrong folder.
func TestVerifyPaths(t *testing.T) {
	u, k := newUpstream(t), newKeyring(t)
	alice, dba := k.ssh("alice", "ed25519"), k.ssh("dba", "ed25519")
	src := Source{Name: "main", URL: u.dir, Verify: Verify{AllowedSigners: k.file("allowed", k.allow("alice", "")+k.allow("dba", ""))}}
	p := open(t, t.TempDir(), src)
	fork := u.signed(alice, "jobs/db/a.yaml", "1", "jobs/web.yaml", "1")
	u.signed(alice, ".pullet/signers", "# who may change what\njobs/db/** : dba\n.pullet/** : alice\n")
	good := u.signed(dba, "jobs/db/a.yaml", "2")
	if h := pull(t, p); h.Problem != nil {
		t.Fatal(h.Problem)
	}
	wrong := u.signed(alice, "jobs/db/a.yaml", "3")
	expectRefusal(t, p, good, "commit "+short(wrong)+` changes "jobs/db/a.yaml", which is for dba (.pullet/signers:2), and is signed by alice (key SHA256:`)
	u.git("reset", "-q", "--hard", good)
	u.signed(dba, ".pullet/signers", "jobs/** : dba\n")
	expectRefusal(t, p, good, `changes ".pullet/signers", which is for alice`)

	for name, change := range map[string]func(){
		"on a branch from before the rules": func() {
			u.signed(alice, "jobs/db/a.yaml", "from the side")
			u.git("checkout", "-q", "main")
			u.git(append(alice, "merge", "-q", "-X", "theirs", "--no-ff", "-m", "merge", "side")...)
		},
		"taken back by a merge": func() {
			u.signed(alice, "jobs/web.yaml", "2")
			u.git("checkout", "-q", "main")
			u.git(append(alice, "merge", "-q", "--no-commit", "--no-ff", "side")...)
			u.git("checkout", "side", "--", "jobs/db/a.yaml")
			u.git(append(alice, "commit", "-q", "-m", "merge")...)
		},
		"merged the other way round": func() {
			u.signed(alice, "jobs/web.yaml", "3")
			u.git(append(alice, "merge", "-q", "--no-commit", "--no-ff", "main")...)
			u.git("checkout", "side", "--", "jobs/db/a.yaml")
			u.git(append(alice, "commit", "-q", "-m", "merge")...)
			u.git("branch", "-f", "main")
			u.git("checkout", "-q", "main")
		},
	} {
		t.Run(name, func(t *testing.T) {
			u.git("checkout", "-q", "main")
			u.git("reset", "-q", "--hard", good)
			u.git("checkout", "-q", "-B", "side", fork)
			change()
			expectRefusal(t, p, good)
		})
	}
	u.git("reset", "-q", "--hard", good)
	u.git("checkout", "-q", "-B", "side", fork)
	u.signed(dba, "jobs/db/b.yaml", "1")
	u.git("checkout", "-q", "main")
	u.git(append(alice, "merge", "-q", "--no-ff", "-m", "merge", "side")...)
	merged := u.head()
	if h := pull(t, p); h.Problem != nil || h.Commit != merged {
		t.Errorf("a merge of what may be changed is refused: %v", h.Problem)
	}
}

// TestVerifyTip looks at one commit.
func TestVerifyTip(t *testing.T) {
	u, k := newUpstream(t), newKeyring(t)
	alice := k.ssh("alice", "ed25519")
	src := Source{Name: "main", URL: u.dir, Verify: Verify{Mode: "tip", AllowedSigners: k.file("allowed", k.allow("alice", ""))}}
	p := open(t, t.TempDir(), src)
	u.commit("a", "1")
	expectRefusal(t, p, "", "has no signature", "push a signed commit")
	good := u.signed(alice, "a", "2")
	if h := pull(t, p); h.Problem != nil || h.Commit != good {
		t.Error(h.Problem)
	}
}

// TestVerifyTag: the release is signed, under its own name.
func TestVerifyTag(t *testing.T) {
	u, k := newUpstream(t), newKeyring(t)
	alice := k.ssh("alice", "ed25519")
	src := Source{Name: "main", URL: u.dir, Tag: "v*", Verify: Verify{AllowedSigners: k.file("allowed", k.allow("alice", ""))}}
	p := open(t, t.TempDir(), src)
	release := func(name string) {
		u.git(append(alice, "tag", "-a", "-m", name, name)...)
	}
	first := u.commit("a", "1")
	release("v1.0")
	if h := pull(t, p); h.Problem != nil || h.Commit != first {
		t.Fatal(h.Problem)
	}
	u.commit("a", "2")
	u.release("v1.1")
	expectRefusal(t, p, first, `tag "v1.1" has no signature`, "git tag -s NAME COMMIT")
	u.git("tag", "-d", "v1.1")
	u.run(u.dir, "update-ref", "refs/tags/v9.0", u.git("rev-parse", "v1.0"))
	expectRefusal(t, p, first, `tag "v9.0" is the tag of another name or commit`)
	u.git("tag", "-d", "v9.0")
	release("v1.2")
	h := pull(t, p)
	if h.Problem != nil || h.Tag != "v1.2" {
		t.Fatal(h.Problem)
	}
	if got := content(t, p, Head{Repo: "main", Commit: first}, "a"); got != "1" {
		t.Errorf("a release of before has %q", got)
	}
}

// TestVerifyMistakes are those of the configuration, and of the host.
func TestVerifyMistakes(t *testing.T) {
	for want, v := range map[string]Verify{
		"verify names no keys":                         {Mode: "range"},
		`verify.mode "all" is none of`:                 {Mode: "all", OpenPGP: "/k"},
		"verify.mode tag needs a source that follows":  {Mode: "tag", OpenPGP: "/k"},
		`verify.since "abc" is not a full commit id`:   {OpenPGP: "/k", Since: "abc"},
		"verify.since is for the modes range and tag":  {Mode: "tip", OpenPGP: "/k", Since: strings.Repeat("a", 40)},
		`"repository:../k" is not a path`:              {OpenPGP: "repository:../k", Since: strings.Repeat("a", 40)},
		"need the mode range and verify.since":         {OpenPGP: "repository:k"},
		"/nowhere/keys: no such file or directory":     {OpenPGP: "/nowhere/keys"},
		"cannot read who may sign: no key is listed":   {OpenPGP: "/dev/null"},
		"not an OpenPGP keyring":                       {OpenPGP: "/etc/hostname"},
		"/etc/hostname:1: no key after the principals": {AllowedSigners: "/etc/hostname"},
	} {
		t.Run(want, func(t *testing.T) {
			u := newUpstream(t)
			u.commit("a", "1")
			p, err := Open(t.TempDir(), []Source{{Name: "main", URL: u.dir, Verify: v}}, gitremote.Limits{}, quiet())
			if err == nil {
				defer p.Close()
				_, err = p.Pull(context.Background())
			}
			expect(t, err, `repository "main"`, want)
		})
	}
}

// TestVerifyWrongDates: commits of the trusted history count as such, whatever their dates.
func TestVerifyWrongDates(t *testing.T) {
	u, k := newUpstream(t), newKeyring(t)
	alice := k.ssh("alice", "ed25519")
	var old string
	for i := range 20 { // newer commits have older dates
		u.at = time.Unix(int64(1700000000-i*1000), 0).UTC()
		old = u.commit("a", fmt.Sprint(i))
	}
	src := Source{Name: "main", URL: u.dir, Verify: Verify{AllowedSigners: k.file("allowed", k.allow("alice", "")), Since: old}}
	p := open(t, t.TempDir(), src)
	u.at = time.Time{}
	u.git("checkout", "-q", "-b", "side", "HEAD~15")
	u.signed(alice, "b", "1")
	u.git("checkout", "-q", "main")
	u.git(append(alice, "merge", "-q", "--no-ff", "-m", "merge", "side")...)
	merged := u.head()
	if h := pull(t, p); h.Problem != nil || h.Commit != merged {
		t.Errorf("trusted history with wrong dates is refused: %v", h.Problem)
	}
}
