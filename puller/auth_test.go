package puller

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/internal/gitremote"
)

func secret(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(file, []byte(content), 0o600))
	must(t, os.Chmod(file, mode))
	return file
}

func TestToken(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	w := serveHTTP(t, u)
	w.token = "s3cret"
	file := secret(t, "s3cret\n", 0o600)
	dir, src := t.TempDir(), Source{Name: "main", URL: w.url, Auth: gitremote.Auth{TokenFile: file}}
	p := open(t, dir, src)
	if h := pull(t, p); h.Problem != nil {
		t.Fatal(h.Problem)
	}
	w.token = "rotated"
	h := pull(t, p)
	expect(t, h.Problem, "authentication required", "auth.tokenFile", "git ls-remote "+w.url)
	must(t, os.WriteFile(file, []byte("rotated"), 0o600))
	if h := pull(t, p); h.Problem != nil {
		t.Fatal(h.Problem)
	}
}

func TestPasswordsStayOut(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	w := serveHTTP(t, u)
	dir := t.TempDir()
	for _, user := range []string{"me:s3cret@", "s3cret@", "me:s3%zzcret@"} {
		src := Source{Name: "main", URL: strings.Replace(w.url, "http://", "http://"+user, 1)}
		p, err := Open(dir, []Source{src}, gitremote.Limits{}, quiet())
		if err == nil {
			_, err = p.Pull(t.Context())
		}
		if user == "me:s3%zzcret@" {
			expect(t, err, "cannot be parsed")
		}
		w.down.Store(true)
		if err == nil {
			err = pull(t, p).Problem
			expect(t, err, "503")
		}
		w.down.Store(false)
		if err != nil && (strings.Contains(err.Error(), "s3") || strings.Contains(err.Error(), "zzcret")) {
			t.Errorf("a password in: %v", err)
		}
	}
	for _, file := range []string{"main.json", "main.git/config"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		must(t, err)
		if strings.Contains(string(data), "s3cret") {
			t.Errorf("a password in %s:\n%s", file, data)
		}
	}
}

func TestHostKeys(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	s := serveSSH(t)
	host, port, _ := net.SplitHostPort(s.addr)
	src := Source{Name: "main", URL: "ssh://git@" + s.addr + u.dir, Auth: s.auth}
	other, otherPEM := newKey(t)

	s.know(t, other.PublicKey())
	_, err := open(t, t.TempDir(), src).Pull(t.Context())
	expect(t, err, "host key of "+s.addr+" has changed", s.auth.KnownHosts, "fingerprint", "ssh-keyscan -H -p "+port+" "+host+" >> "+s.auth.KnownHosts)

	must(t, os.WriteFile(s.auth.KnownHosts, nil, 0o600))
	_, err = open(t, t.TempDir(), src).Pull(t.Context())
	expect(t, err, "host key of "+s.addr+" is not in "+s.auth.KnownHosts, "compare the fingerprint", "SHA256:",
		"ssh-keyscan -H -p "+port+" "+host+" >> "+s.auth.KnownHosts)

	s.know(t, s.host)
	must(t, os.WriteFile(s.auth.SSHKey, otherPEM, 0o600))
	_, err = open(t, t.TempDir(), src).Pull(t.Context())
	expect(t, err, "does not accept auth.sshKey", "deploy key")

	missing := src
	missing.URL = "ssh://git@" + s.addr + "/nowhere.git"
	_, err = open(t, t.TempDir(), missing).Pull(t.Context())
	expect(t, err, `repository "main"`)
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	wide := secret(t, "x", 0o640)
	_, err := Open(t.TempDir(), []Source{
		{Name: "Bad Name", URL: "/x"},
		{Name: "", URL: "/x"},
		{Name: "a"},
		{Name: "a", URL: "relative/path"},
		{Name: "b", URL: "/x", Ref: "main", Tag: "v*"},
		{Name: "c", URL: "/x", Tag: "v[", Ref: ""},
		{Name: "d", URL: "/x", Semver: "newest"},
		{Name: "e", URL: "git@example.org:ops/state.git"},
		{Name: "f", URL: "https://example.org/x", Auth: gitremote.Auth{TokenFile: wide}},
		{Name: "g", URL: "https://example.org/x", Auth: gitremote.Auth{TokenFile: "/does/not/exist"}},
		{Name: "h", URL: "git://example.org/x"},
		{Name: "i", URL: "/x", Ref: "a..b"},
		{Name: "j", URL: "https://example.org/x", Auth: gitremote.Auth{PasswordFile: secret(t, "x", 0o600)}},
	}, gitremote.Limits{}, quiet())
	expect(t, err,
		`repository "Bad Name": name must be`, `repository "": name must be`,
		`repository "a": url is missing`, `repository "a": the name is used twice`, `relative/path is neither a URL nor an absolute path`,
		`repository "b": only one of ref, tag and semver`,
		`repository "c": tag "v[" is not a valid glob`,
		`repository "d": semver "newest" is not a valid constraint`,
		`repository "e": an ssh url needs auth.sshKey`, `repository "e": an ssh url needs auth.knownHosts`,
		`repository "f": credentials in `+wide+` are open to others (mode 0640): chmod 600 `+wide,
		`repository "g": cannot read credentials: `, "/does/not/exist",
		`repository "h"`, "git is not supported: use https",
		`repository "i": ref "a..b" is not a branch name`,
		`repository "j": auth.passwordFile needs auth.username`)
	_, err = Open(t.TempDir(), nil, gitremote.Limits{}, quiet())
	expect(t, err, "no repositories")
}

func TestOpenMode(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "repos")
	open(t, dir, Source{Name: "main", URL: "/x"})
	info, err := os.Stat(dir)
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Error(info.Mode())
	}
}

func TestBadRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, text := range []string{"", "{", `{"commit": "12345678"}`} {
		must(t, os.WriteFile(filepath.Join(dir, "main.json"), []byte(text), 0o600))
		_, err := open(t, dir, Source{Name: "main", URL: "/x"}).Pull(t.Context())
		expect(t, err, "main.json is damaged", "remove it")
	}
}

func TestShown(t *testing.T) {
	for url, want := range map[string]string{
		"https://user:pw@example.org/x?t=1": "https://example.org/x",
		"ssh://git:pw@example.org/x":        "ssh://git@example.org/x",
		"git@example.org:ops/state.git":     "git@example.org:ops/state.git",
		"/srv/x":                            "/srv/x",
		"https://a:%zz@example.org/x":       "https://example.org/x",
	} {
		if got := (Source{URL: url}).remote().Redacted(); got != want {
			t.Errorf("%s is shown as %s, want %s", url, got, want)
		}
	}
}

func TestScpLikeURL(t *testing.T) {
	ep, err := Source{URL: "git@example.org:ops/state.git"}.remote().Endpoint()
	must(t, err)
	if ep.Protocol != "ssh" || ep.User != "git" || ep.Host != "example.org" || ep.Port != 22 || ep.Path != "ops/state.git" {
		t.Errorf("%+v", ep)
	}
}
