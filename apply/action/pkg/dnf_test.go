package pkg_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/internal/tier"
)

// withDnf is an install root with a local repository of rpm packages.
func withDnf(t *testing.T) *actiontest.Scene {
	t.Helper()
	tier.Program(t, "dnf", "dnf")
	tier.Program(t, "rpmbuild", "rpm")
	tier.Program(t, "createrepo_c", "createrepo-c")
	actiontest.NeedRoot(t)
	s := actiontest.New(t, "d etc/yum.repos.d 755")
	repo := t.TempDir()
	files, err := rpms()
	if err == nil {
		err = os.CopyFS(repo, files)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.MustRun("pkgrepo.managed", "{name: local, url: 'file://"+repo+"', trusted: true}")
	return s
}

// rpms are the files of a repository with small packages. They are built once.
var rpms = sync.OnceValues(func() (files fstest.MapFS, err error) {
	dir, err := os.MkdirTemp("", "rpms")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	repo := filepath.Join(dir, "repo")
	args := []string{"--quiet", "-bb", "--define", "_topdir " + dir, "--define", "_rpmdir " + repo}
	for _, one := range []struct{ name, version, more string }{
		{"pullet-hello", "1.0", ""}, {"pullet-hello", "1.1", ""}, {"pullet-hello", "2.0", ""},
		{"pullet-more", "1.0", ""}, {"pullet-more", "1.1", ""}, {"pullet-web", "1.0", "Requires: pullet-hello\n"},
	} {
		at := filepath.Join(dir, one.name+one.version+".spec")
		if err := os.WriteFile(at, []byte(specOf(one.name, one.version, one.more)), 0o600); err != nil {
			return nil, err
		}
		args = append(args, at)
	}
	for _, line := range [][]string{append([]string{"rpmbuild"}, args...), {"createrepo_c", "-q", repo}} {
		if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", line[0], err, out)
		}
	}
	return inMemory(repo)
})

// specOf describes a package with one file, which says its version.
func specOf(name, version, more string) string {
	return "Name: " + name + "\nVersion: " + version + "\nRelease: 1\nSummary: for tests\nLicense: MIT\nBuildArch: noarch\n" +
		more + "Provides: a-" + name + "\n%description\nFor tests.\n" +
		"%install\nmkdir -p %{buildroot}/usr/share\necho " + version + " >%{buildroot}/usr/share/" + name +
		"\n%files\n/usr/share/" + name + "\n"
}

// inMemory is what is in a directory.
func inMemory(dir string) (fstest.MapFS, error) {
	out := fstest.MapFS{}
	return out, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		out[name] = &fstest.MapFile{Data: data, Mode: 0o644}
		return err
	})
}

// has is the version of a package of the install root, by the file that it brings.
func has(s *actiontest.Scene, name string) string {
	data, err := os.ReadFile(s.Path("usr/share/" + name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// TestDnf goes through the actions with dnf and an install root. Each step is planned, run, and planned again.
func TestDnf(t *testing.T) {
	t.Parallel()
	s := withDnf(t)
	for _, c := range []struct{ action, params, want, hello, more string }{
		{"pkg.installed", "{name: pullet-hello, version: '1.0'}", "install pullet-hello 1.0", "1.0", ""},
		{"pkg.installed", "{name: pullet-hello}", "", "1.0", ""},
		{"pkg.installed", "{name: pullet-hello, version: 1.0-1}", "", "1.0", ""},
		{"pkg.installed", "{name: a-pullet-hello}", "", "1.0", ""},
		{"pkg.installed", "[{name: pullet-more}, {version: 1.0*}, {refresh: true}, {recommends: false}]", "install pullet-more 1.0*", "1.0", "1.0"},
		{"pkg.uptodate", "{exclude: [pullet-more]}", "upgrade pullet-hello 1.0-1 -> 2.0-1", "2.0", "1.0"},
		{"pkg.installed", "{pkgs: [pullet-hello=1.1, pullet-more], allowDowngrade: true}", "pullet-hello 2.0-1 -> 1.1", "1.1", "1.0"},
		{"pkg.latest", "{pkgs: [pullet-hello, pullet-more]}", "pullet-hello 1.1-1 -> 2.0-1, pullet-more 1.0-1 -> 1.1-1", "2.0", "1.1"},
		{"pkg.uptodate", "{full: true}", "", "2.0", "1.1"},
		{"pkg.installed", "{name: pullet-web}", "install pullet-web 1.0-1", "2.0", "1.1"},
		{"pkg.removed", "{name: pullet-hello}", "remove pullet-hello, and what needs it: pullet-web", "", "1.1"},
		{"pkg.removed", "{pkgs: [pullet-hello, pullet-nope], purge: true}", "", "", "1.1"},
	} {
		p := s.MustBind(c.action, c.params)
		planned, r, again := s.Plan(p), s.Run(p), s.Plan(p)
		if planned.Summary != c.want || r.Summary != c.want || r.Outcome == apply.Failed || again.Summary != "" {
			t.Errorf("%s %s: planned %q, %s %q %s, again %q; want %q", c.action, c.params, planned.Summary, r.Outcome, r.Summary, r.Reason, again.Summary, c.want)
		}
		if has(s, "pullet-hello") != c.hello || has(s, "pullet-more") != c.more {
			t.Errorf("%s %s: %q and %q, want %q and %q", c.action, c.params, has(s, "pullet-hello"), has(s, "pullet-more"), c.hello, c.more)
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
		if r := s.Run(s.MustBind("pkg.installed", params)); r.Outcome != apply.Failed || !strings.Contains(r.Reason, want) {
			t.Errorf("%s: %s %q, want failed with %q", params, r.Outcome, r.Reason, want)
		}
	}
}

// TestDnfLists: old lists are refreshed, and packages that came since are found.
func TestDnfLists(t *testing.T) {
	t.Parallel()
	s := withDnf(t)
	s.MustRun("pkg.installed", "{name: pullet-more}")
	old := sh(s, "touch -d '2 hours ago' "+s.Path("var/cache/dnf")+"/*/repodata/*primary*")
	p := s.MustBind("pkg.latest", "{name: pullet-more}")
	if r := s.Plan(p); r.Summary != "refresh the package lists" {
		t.Errorf("plan: %q %s %s", r.Summary, r.Reason, old)
	}
	if r := s.Run(p); r.Outcome != apply.OK {
		t.Errorf("nothing newer: %s %s, want ok", r.Outcome, r.Reason)
	}
	if r := s.Plan(p); r.Summary != "" {
		t.Errorf("plan after: %q", r.Summary)
	}
}

// TestDnfRepository: one that is not there leaves the host as it was; with a key that packages are not signed with,
// they are refused.
func TestDnfRepository(t *testing.T) {
	t.Parallel()
	s := withDnf(t)
	before := actiontest.Tree(t, s.Path("etc"))
	r := s.Run(s.MustBind("pkgrepo.managed", "{name: nope, url: 'file:///nope', trusted: true}"))
	if r.Outcome != apply.Failed || !strings.Contains(r.Reason, "the host is as it was") || strings.Contains(r.Reason, "\n") {
		t.Errorf("%s %q, want failed", r.Outcome, r.Reason)
	}
	for _, d := range actiontest.OfFiles(actiontest.Differences(before, actiontest.Tree(t, s.Path("etc")))) {
		t.Errorf("it changed %s", d)
	}
	s.MustRun("pkgrepo.managed", "{name: local, url: '"+repoURL(s)+"'}")
	if r := s.Run(s.MustBind("pkg.installed", "{name: pullet-more}")); r.Outcome != apply.Failed || !strings.Contains(r.Reason, "packages of the repository local are to be checked, and it names no key") {
		t.Errorf("without a key: %s %q, want failed", r.Outcome, r.Reason)
	}
	s.MustRun("pkgrepo.absent", "{name: local}")
}

// repoURL is where the install root's repository is.
func repoURL(s *actiontest.Scene) string {
	s.T.Helper()
	return strings.TrimPrefix(strings.Split(s.Read("etc/yum.repos.d/local.repo"), "\n")[3], "baseurl=")
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
		sh(s, "gpgconf --kill gpg-agent")
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	url := repoURL(s)
	for _, who := range []string{"one", "two"} {
		sh(s, "gpg --batch -q --passphrase '' --quick-generate-key "+who+"@example.org rsa2048 sign never")
		s.Files[who] = sh(s, "gpg --armor --export "+who+"@example.org") + "\n"
	}
	at := strings.TrimPrefix(url, "file://")
	sh(s, "find "+at+" -name '*.rpm' | xargs rpmsign --define '__gpg /usr/bin/gpg' --define '_gpg_name one@example.org' --addsign >/dev/null 2>&1; rm -rf "+at+"/repodata; createrepo_c -q "+at)
	s.MustRun("pkgrepo.managed", "{name: local, url: '"+url+"', keySource: two}")
	if r := s.Run(s.MustBind("pkg.installed", "{name: pullet-more}")); r.Outcome != apply.Failed || !strings.Contains(r.Reason, "GPG check FAILED") || has(s, "pullet-more") != "" {
		t.Errorf("another key: %s %q, want failed", r.Outcome, r.Reason)
	}
	s.MustRun("pkgrepo.managed", "{name: local, url: '"+url+"', keySource: one}")
	s.MustRun("pkg.installed", "{name: pullet-more}")
	if has(s, "pullet-more") != "1.1" {
		t.Errorf("%q is installed, want 1.1", has(s, "pullet-more"))
	}
}
