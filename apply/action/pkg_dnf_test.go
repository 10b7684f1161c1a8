package action_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
)

// withDnf is an install root with a local repository of rpm packages.
func withDnf(t *testing.T) *scene {
	t.Helper()
	for _, program := range []string{"dnf", "rpmbuild", "createrepo_c"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs dnf, rpm and createrepo-c: %v", err)
		}
	}
	needRoot(t)
	s := newScene(t, "d etc/yum.repos.d 755")
	repo := t.TempDir()
	for _, one := range []struct{ name, version, requires string }{
		{"pullet-hello", "1.0", ""}, {"pullet-hello", "1.1", ""}, {"pullet-hello", "2.0", ""}, {"pullet-more", "1.0", ""}, {"pullet-more", "1.1", ""}, {"pullet-web", "1.0", "pullet-hello"},
	} {
		buildRPM(t, repo, one.name, one.version, one.requires)
	}
	s.sh("createrepo_c -q " + repo)
	s.mustRun("pkgrepo.managed", "{name: local, url: 'file://"+repo+"', trusted: true}")
	return s
}

func buildRPM(t *testing.T, repo, name, version, requires string) {
	t.Helper()
	dir := t.TempDir()
	spec := "Name: " + name + "\nVersion: " + version + "\nRelease: 1\nSummary: for tests\nLicense: MIT\nBuildArch: noarch\n"
	if requires != "" {
		spec += "Requires: " + requires + "\n"
	}
	spec += "Provides: a-" + name + "\n%description\nFor tests.\n%install\nmkdir -p %{buildroot}/usr/share\necho " + version + " >%{buildroot}/usr/share/" + name + "\n%files\n/usr/share/" + name + "\n"
	if err := os.WriteFile(filepath.Join(dir, "it.spec"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("rpmbuild", "--quiet", "-bb", "--define", "_topdir "+dir, "--define", "_rpmdir "+repo, filepath.Join(dir, "it.spec")).CombinedOutput()
	if err != nil {
		t.Fatalf("rpmbuild: %v\n%s", err, out)
	}
}

// has is the version of a package of the install root, by the file that it brings.
func (s *scene) has(name string) string {
	data, err := os.ReadFile(s.path("usr/share/" + name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// TestDnf goes through the actions with dnf and an install root. Each step is planned, run, and planned again.
func TestDnf(t *testing.T) {
	s := withDnf(t)
	for _, c := range []struct{ action, params, want, hello, more string }{
		{"pkg.installed", "{name: pullet-hello, version: '1.0'}", "install pullet-hello 1.0", "1.0", ""},
		{"pkg.installed", "{name: pullet-hello}", "", "1.0", ""},
		{"pkg.installed", "{name: pullet-hello, version: 1.0-1}", "", "1.0", ""},
		{"pkg.installed", "{name: a-pullet-hello}", "", "1.0", ""},
		{"pkg.installed", "[{name: pullet-more}, {version: 1.0*}, {refresh: true}, {recommends: false}]", "install pullet-more 1.0*", "1.0", "1.0"},
		{"pkg.uptodate", "{exclude: [pullet-more]}", "upgrade pullet-hello", "2.0", "1.0"},
		{"pkg.installed", "{pkgs: [pullet-hello=1.1, pullet-more], allowDowngrade: true}", "pullet-hello 2.0-1 -> 1.1", "1.1", "1.0"},
		{"pkg.latest", "{pkgs: [pullet-hello, pullet-more]}", "pullet-hello 1.1-1 -> 2.0-1, pullet-more 1.0-1 -> 1.1-1", "2.0", "1.1"},
		{"pkg.uptodate", "{full: true}", "", "2.0", "1.1"},
		{"pkg.installed", "{name: pullet-web}", "install pullet-web 1.0-1", "2.0", "1.1"},
		{"pkg.removed", "{name: pullet-hello}", "remove pullet-hello, and what needs it: pullet-web", "", "1.1"},
		{"pkg.removed", "{pkgs: [pullet-hello, pullet-nope], purge: true}", "", "", "1.1"},
	} {
		p := s.mustBind(c.action, c.params)
		planned, r, again := s.plan(p), s.run(p), s.plan(p)
		if planned.Summary != c.want || r.Summary != c.want || r.Outcome == apply.Failed || again.Summary != "" {
			t.Errorf("%s %s: planned %q, %s %q %s, again %q; want %q", c.action, c.params, planned.Summary, r.Outcome, r.Summary, r.Reason, again.Summary, c.want)
		}
		if s.has("pullet-hello") != c.hello || s.has("pullet-more") != c.more {
			t.Errorf("%s %s: %q and %q, want %q and %q", c.action, c.params, s.has("pullet-hello"), s.has("pullet-more"), c.hello, c.more)
		}
	}
	for params, want := range map[string]string{
		"{name: pullet-mroe}":                            `there is no package pullet-mroe in the lists of this host (did you mean "pullet-more"?`,
		"{name: pullet-hello, version: '7'}":             "there is no version 7 of pullet-hello in the lists of this host (there is 1.0-1, 1.1-1, 2.0-1;",
		"{name: pullet-more, version: '1.0'}":            "pullet-more is 1.1-1, and 1.0 is lower: add allowDowngrade: true",
		"{name: pullet-more, hold: true}":                "hold: dnf holds nothing by itself",
		"{name: pullet-hello, conffiles: replace}":       "conffiles: rpm keeps what was changed by hand",
		"{pkgs: [pullet-more, pullet-mroe, pullet-web]}": "there is no package pullet-mroe",
	} {
		if r := s.run(s.mustBind("pkg.installed", params)); r.Outcome != apply.Failed || !strings.Contains(r.Reason, want) {
			t.Errorf("%s: %s %q, want failed with %q", params, r.Outcome, r.Reason, want)
		}
	}
}

// TestDnfLists: old lists are refreshed, and packages that came since are found.
func TestDnfLists(t *testing.T) {
	s := withDnf(t)
	s.mustRun("pkg.installed", "{name: pullet-more}")
	old := s.sh("touch -d '2 hours ago' " + s.path("var/cache/dnf") + "/*/repodata/*primary*")
	p := s.mustBind("pkg.latest", "{name: pullet-more}")
	if r := s.plan(p); r.Summary != "refresh the package lists" {
		t.Errorf("plan: %q %s %s", r.Summary, r.Reason, old)
	}
	if r := s.run(p); r.Outcome != apply.OK {
		t.Errorf("nothing newer: %s %s, want ok", r.Outcome, r.Reason)
	}
	if r := s.plan(p); r.Summary != "" {
		t.Errorf("plan after: %q", r.Summary)
	}
}

// TestDnfRepository: one that is not there leaves the host as it was; with a key that packages are not signed with,
// they are refused.
func TestDnfRepository(t *testing.T) {
	s := withDnf(t)
	before := tree(t, s.path("etc"))
	r := s.run(s.mustBind("pkgrepo.managed", "{name: nope, url: 'file:///nope', trusted: true}"))
	if r.Outcome != apply.Failed || !strings.Contains(r.Reason, "the host is as it was") || strings.Contains(r.Reason, "\n") {
		t.Errorf("%s %q, want failed", r.Outcome, r.Reason)
	}
	for _, d := range withoutTimes(differences(before, tree(t, s.path("etc")))) {
		t.Errorf("it changed %s", d)
	}
	s.mustRun("pkgrepo.managed", "{name: local, url: '"+s.repoURL()+"'}")
	if r := s.run(s.mustBind("pkg.installed", "{name: pullet-more}")); r.Outcome != apply.Failed || !strings.Contains(r.Reason, "packages of the repository local are to be checked, and it names no key") {
		t.Errorf("without a key: %s %q, want failed", r.Outcome, r.Reason)
	}
	s.mustRun("pkgrepo.absent", "{name: local}")
}

// repoURL is where the install root's repository is.
func (s *scene) repoURL() string {
	s.t.Helper()
	return strings.TrimPrefix(strings.Split(s.read("etc/yum.repos.d/local.repo"), "\n")[3], "baseurl=")
}

// TestDnfSigned: packages that the repository's key signed are installed, those that another key signed are refused.
func TestDnfSigned(t *testing.T) {
	s := withDnf(t)
	dir, err := os.MkdirTemp("/tmp", "gpg") // a path that gpg-agent's socket fits into
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GNUPGHOME", dir)
	t.Cleanup(func() {
		s.sh("gpgconf --kill gpg-agent")
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	url := s.repoURL()
	for _, who := range []string{"one", "two"} {
		s.sh("gpg --batch -q --passphrase '' --quick-generate-key " + who + "@example.org rsa2048 sign never")
		s.files[who] = s.sh("gpg --armor --export "+who+"@example.org") + "\n"
	}
	at := strings.TrimPrefix(url, "file://")
	s.sh("find " + at + " -name '*.rpm' | xargs rpmsign --define '__gpg /usr/bin/gpg' --define '_gpg_name one@example.org' --addsign >/dev/null 2>&1; rm -rf " + at + "/repodata; createrepo_c -q " + at)
	s.mustRun("pkgrepo.managed", "{name: local, url: '"+url+"', keySource: two}")
	if r := s.run(s.mustBind("pkg.installed", "{name: pullet-more}")); r.Outcome != apply.Failed || !strings.Contains(r.Reason, "GPG check FAILED") || s.has("pullet-more") != "" {
		t.Errorf("another key: %s %q, want failed", r.Outcome, r.Reason)
	}
	s.mustRun("pkgrepo.managed", "{name: local, url: '"+url+"', keySource: one}")
	s.mustRun("pkg.installed", "{name: pullet-more}")
	if s.has("pullet-more") != "1.1" {
		t.Errorf("%q is installed, want 1.1", s.has("pullet-more"))
	}
}
