package pkg_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/apply/action/pkg"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/render"
)

// sh runs a shell command on the host and returns what it prints.
func sh(s *actiontest.Scene, line string) string {
	s.T.Helper()
	out, err := exec.Command("/bin/sh", "-ec", line).CombinedOutput()
	if err != nil {
		s.T.Fatalf("%s: %v\n%s", line, err, out)
	}
	return strings.TrimSpace(string(out))
}

const versionOf = "dpkg-query -W -f '${Version} ${db:Status-Abbrev}' "

// TestPackageHeld: a step that says hold changes a held package, and holds it again; nothing else changes it.
func TestPackageHeld(t *testing.T) {
	s := actiontest.OnHost(t, actiontest.WithPackages("pullet-hello_1.0"))
	s.MustRun("pkg.installed", "{name: pullet-hello, version: '1.1', hold: true}")
	s.MustRun("pkg.installed", "{name: pullet-conf}")
	if got := sh(s, versionOf+"pullet-hello"); got != "1.1 hi" {
		t.Errorf("%q, want 1.1, held", got)
	}
	if r := s.Run(s.MustBind("pkg.uptodate", "{}")); r.Outcome != apply.OK {
		t.Errorf("upgrade: %s %s %s, want ok: the only newer package is held", r.Outcome, r.Summary, r.Reason)
	}
	r := s.Run(s.MustBind("pkg.installed", "{name: pullet-hello, version: '7', hold: true}"))
	if got := sh(s, versionOf+"pullet-hello"); r.Outcome != apply.Failed || got != "1.1 hi" {
		t.Errorf("%s %q, want failed, and 1.1 still held", r.Outcome, got)
	}
}

// TestPackageConfigurationKept: what was changed by hand stays, unless the step says replace.
func TestPackageConfigurationKept(t *testing.T) {
	for how, want := range map[string]string{"keep": "by hand", "replace": "2.0"} {
		s := actiontest.OnHost(t, actiontest.WithPackages("pullet-conf_1.0", "echo by hand >/etc/pullet-conf.conf"))
		s.MustRun("pkg.installed", "{name: pullet-conf, version: '2.0', conffiles: "+how+"}")
		if got := s.Read("etc/pullet-conf.conf"); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", how, got, want)
		}
	}
}

// TestPackageLock: a lock that another program holds is waited for, and the error names what is held.
func TestPackageLock(t *testing.T) {
	s := actiontest.OnHost(t, actiontest.NoPackages)
	lock, err := os.OpenFile("/var/lib/dpkg/lock-frontend", os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	whole := syscall.Flock_t{Type: syscall.F_WRLCK}
	if err := syscall.FcntlFlock(lock.Fd(), syscall.F_SETLK, &whole); err != nil {
		t.Fatal(err)
	}
	r := s.Run(s.MustBind("pkg.installed", "{name: pullet-hello, lockTimeout: 2s}"))
	if r.Outcome != apply.Failed || !strings.Contains(r.Reason, "Could not get lock /var/lib/dpkg/lock-frontend. It is held by process ") {
		t.Errorf("%s %q, want failed, with the lock and who holds it", r.Outcome, r.Reason)
	}
	done := make(chan *apply.StepReport)
	go func() { done <- s.Run(s.MustBind("pkg.installed", "{name: pullet-hello}")) }()
	patience.Until(t, "apt-get runs", func() bool { return len(waiting(t)) > 0 })
	select {
	case r := <-done:
		t.Fatalf("it did not wait: %s %s", r.Outcome, r.Reason)
	default:
	}
	lock.Close()
	if r := <-done; r.Outcome != apply.Changed {
		t.Errorf("after the lock: %s %s, want changed", r.Outcome, r.Reason)
	}
}

// waiting are the processes of apt-get.
func waiting(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("pgrep", "-x", "apt-get").Output()
	if err != nil && len(out) > 0 {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// TestPackageKilled: apt-get is killed with all of its children while a package is configured; the next run ends what
// it began.
func TestPackageKilled(t *testing.T) {
	for _, next := range []string{"pullet-slow", "pullet-hello"} {
		s := actiontest.OnHost(t, actiontest.NoPackages)
		cmd := exec.Command("apt-get", "-qq", "-y", "install", "pullet-slow", "pullet-conf")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		patience.UntilWithin(t, time.Minute, "pullet-slow is half-configured", func() bool { // its postinst runs
			return strings.Contains(sh(s, versionOf+"pullet-slow 2>/dev/null || true"), "iF")
		})
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		p := s.MustBind("pkg.installed", "{name: "+next+"}")
		planned := s.Plan(p)
		if next == "pullet-slow" && planned.Summary != "finish installing pullet-slow (half-configured)" {
			t.Errorf("plan: %q %s", planned.Summary, planned.Reason)
		}
		if r := s.Run(p); r.Outcome != apply.Changed {
			t.Errorf("%s: %s %s, want changed", next, r.Outcome, r.Reason)
		}
		for _, name := range []string{next, "pullet-slow", "pullet-conf"} {
			if got := sh(s, versionOf+name); !strings.HasSuffix(got, "ii") {
				t.Errorf("%s: %q, want installed", name, got)
			}
		}
		if r := s.Plan(p); r.Outcome != apply.OK {
			t.Errorf("a second plan: %s %s", r.Outcome, r.Summary)
		}
		if got := sh(s, "dpkg --audit"); got != "" {
			t.Errorf("dpkg --audit: %s", got)
		}
	}
}

// TestPackageUnpackKilled: dpkg is killed while it unpacks, which leaves a package that must be installed again.
func TestPackageUnpackKilled(t *testing.T) {
	s := actiontest.OnHost(t, actiontest.NoPackages+`d=$(mktemp -d)
dpkg-deb -R /lab/apt/pullet-hello_1.1_amd64.deb $d
printf '#!/bin/sh\nkill -9 $PPID\n' >$d/DEBIAN/preinst; chmod 755 $d/DEBIAN/preinst
dpkg-deb -b $d /var/tmp/cut.deb >/dev/null; rm -r $d
dpkg -i /var/tmp/cut.deb >/dev/null 2>&1 || true`)
	p := s.MustBind("pkg.installed", "{name: pullet-hello, version: '1.1'}")
	if r := s.Plan(p); r.Summary != "finish installing pullet-hello (half-installed, must be installed again)" {
		t.Errorf("plan: %q %s", r.Summary, r.Reason)
	}
	s.MustRun("pkg.installed", "{name: pullet-conf}")
	if r := s.Run(p); r.Outcome == apply.Failed {
		t.Errorf("%s %s", r.Outcome, r.Reason)
	}
	if got := sh(s, versionOf+"pullet-hello"); got != "1.1 ii" {
		t.Errorf("%q, want 1.1", got)
	}
}

// TestPackageBroken: a package that cannot be configured fails its step with what its script said, and no other step.
func TestPackageBroken(t *testing.T) {
	s := actiontest.OnHost(t, actiontest.NoPackages)
	broken := s.MustBind("pkg.installed", "{name: pullet-broken}")
	for range 2 { // the second time it is there in part
		r := s.Run(broken)
		if r.Outcome != apply.Failed || !strings.Contains(r.Reason, "post-installation script subprocess returned error exit status") || strings.Contains(r.Reason, "\n") {
			t.Errorf("%s %q, want failed, with what dpkg said in one line", r.Outcome, r.Reason)
		}
	}
	s.MustRun("pkg.installed", "{name: pullet-hello, version: '1.0'}")
	s.MustRun("pkg.latest", "{name: pullet-hello}")
	s.MustRun("pkg.removed", "{name: pullet-hello}")
	s.MustRun("pkg.removed", "{name: pullet-broken, purge: true}")
	if got := sh(s, "dpkg --audit"); got != "" {
		t.Errorf("dpkg --audit: %s", got)
	}
}

// TestPackagesTogether: the packages of several steps are one transaction, and one that cannot be installed fails
// alone.
func TestPackagesTogether(t *testing.T) {
	s := actiontest.OnHost(t, actiontest.NoPackages+"rm -f /var/log/apt/history.log")
	h := s.Host()
	var all []apply.Action
	for _, params := range []string{"name: pullet-hello, version: '1.0'", "name: pullet-conf, refresh: true", "pkgs: [pullet-hello, pullet-web=1.0]", "name: pullet-broken"} {
		all = append(all, packages(t, params))
	}
	first, _ := all[0].(*pkg.Installed)
	for _, one := range all {
		if other, _ := one.(*pkg.Installed); other.Join() != first.Join() || first.Join() == "" {
			t.Errorf("join %q and %q, want the same", other.Join(), first.Join())
		}
	}
	if err := first.ApplyTogether(context.Background(), h, all); err == nil || !strings.Contains(err.Error(), "pullet-broken") {
		t.Errorf("together: %v, want what pullet-broken said", err)
	}
	for i, one := range all {
		c, err := one.Check(context.Background(), h)
		if err != nil || c.Empty() != (i < 3) {
			t.Errorf("step %d: %q %v", i, c.Summary, err)
		}
	}
	if n := strings.Count(s.Read("var/log/apt/history.log"), "Commandline:"); n != 1 {
		t.Errorf("%d transactions, want 1:\n%s", n, s.Read("var/log/apt/history.log"))
	}
	other := packages(t, "name: pullet-hello, recommends: false")
	if other.Join() == first.Join() {
		t.Error("steps with other options are joined")
	}
	clash := []apply.Action{packages(t, "name: pullet-slow, version: '1.0'"), packages(t, "name: pullet-slow, version: '2.0'")}
	if err := first.ApplyTogether(context.Background(), h, clash); err == nil || !strings.Contains(err.Error(), "pullet-slow is wanted as 1.0 and as 2.0") {
		t.Errorf("two versions: %v", err)
	}
}

// packages is a bound step.
func packages(t *testing.T, params string) *pkg.Installed {
	t.Helper()
	for _, spec := range action.All() {
		if spec.Name != "pkg.installed" {
			continue
		}
		act, _ := spec.New().(*pkg.Installed)
		if err := render.DecodeFile("it", []byte("{"+params+"}"), act); err != nil {
			t.Fatal(err)
		}
		if err := act.Bind(apply.Binding{}); err != nil {
			t.Fatal(err)
		}
		return act
	}
	t.Fatal("there is no pkg.installed")
	return nil
}

// TestPackageLists: old lists are refreshed once a run, which is no change where nothing is newer; a repository that
// came since makes them old, too.
func TestPackageLists(t *testing.T) {
	s := actiontest.OnHost(t, actiontest.WithPackages("pullet-hello_2.0", "touch -d '2 hours ago' /var/lib/apt/lists"))
	p := s.MustBind("pkg.latest", "{name: pullet-hello}")
	if r := s.Plan(p); r.Summary != "refresh the package lists" {
		t.Errorf("plan: %q %s", r.Summary, r.Reason)
	}
	if r := s.Run(p); r.Outcome != apply.OK {
		t.Errorf("nothing newer: %s %s, want ok", r.Outcome, r.Reason)
	}
	if r := s.Plan(p); r.Summary != "" {
		t.Errorf("plan after: %q", r.Summary)
	}
	s.Files["key.asc"] = s.Read("/lab/key.asc")
	s.MustRun("pkgrepo.managed", "{name: pullet-signed, url: 'file:/lab/apt-signed', suites: stable, components: main, keySource: key.asc}")
	s.MustRun("pkg.installed", "{name: pullet-signed}")
	if r := s.Run(p); r.Outcome != apply.Changed || sh(s, versionOf+"pullet-hello") != "2.1 ii" {
		t.Errorf("with the new repository: %s %s %q, want 2.1", r.Outcome, r.Reason, sh(s, versionOf+"pullet-hello"))
	}
	s.MustRun("pkgrepo.absent", "{name: pullet-signed}")
}

// TestPackageListsBroken: a list that cannot be fetched is a warning for what can be installed anyway, and a failure
// where the newest is wanted.
func TestPackageListsBroken(t *testing.T) {
	s := actiontest.OnHost(t, actiontest.WithPackages("pullet-conf_1.0"))
	s.MustRun("pkgrepo.managed", "{name: pullet-nope, url: 'http://lab:8080/nope', suites: ./, trusted: true, refresh: false}")
	s.MustRun("pkg.installed", "{name: pullet-hello, refresh: true}")
	for _, name := range []string{"pkg.latest", "pkg.uptodate"} {
		r := s.Run(s.MustBind(name, map[string]string{"pkg.latest": "{name: pullet-conf}", "pkg.uptodate": "{}"}[name]))
		if r.Outcome != apply.Failed || !strings.Contains(r.Reason, "refresh the package lists: ") {
			t.Errorf("%s: %s %q, want failed", name, r.Outcome, r.Reason)
		}
	}
	if got := sh(s, versionOf+"pullet-conf"); got != "2.0 ii" {
		t.Errorf("%q, want 2.0: the lists that are there have it", got)
	}
}

// TestPackageExcluded: what is excluded keeps its version, and is not taken for asked for.
func TestPackageExcluded(t *testing.T) {
	s := actiontest.OnHost(t, actiontest.WithPackages("pullet-hello_1.0 pullet-conf_1.0", "apt-mark auto pullet-hello >/dev/null"))
	s.MustRun("pkg.uptodate", "{exclude: ['*-hello']}")
	if got := sh(s, versionOf+"pullet-hello") + sh(s, "apt-mark showauto pullet-hello"); got != "1.0 iipullet-hello" {
		t.Errorf("%q, want 1.0 and auto", got)
	}
}

// TestPackageMacro asks the shipped macro on a host.
func TestPackageMacro(t *testing.T) { packageMacro(t, "") }

// TestPackageMacroOfRepository asks a macro with the action of the same name.
func TestPackageMacroOfRepository(t *testing.T) {
	packageMacro(t, "pkg.uptodate: {pkg.uptodate: {}}\n")
}

func packageMacro(t *testing.T, macros string) {
	t.Helper()
	for packages, want := range map[string]apply.Outcome{"pullet-hello_1.0": apply.Changed, "pullet-hello_2.0": apply.Skipped} {
		s := actiontest.OnHost(t, actiontest.WithPackages(packages))
		s.Macros = macros
		p, err := s.BindText("steps:\n- name: it\n  action: test.change\n  parameters: {name: x}\n  conditions: {when: {condition: \"macros['pkg.uptodate']() != true\"}}\n")
		if err != nil {
			t.Fatal(err)
		}
		if r := s.Run(p); r.Outcome != want {
			t.Errorf("%s: %s %s, want %s", packages, r.Outcome, r.Reason, want)
		}
	}
}

// TestPackageBelowRoot: with another root the apt-get of that root is run in it. Services are not started, and the
// machine stays as it was.
func TestPackageBelowRoot(t *testing.T) {
	s := actiontest.OnHost(t, actiontest.NoPackages+`at=/var/tmp/below; mkdir -p $at; mount -t tmpfs below $at; mkdir $at/up $at/work $at/root
mount -t overlay -o lowerdir=/,upperdir=$at/up,workdir=$at/work below $at/root
mount --rbind /dev $at/root/dev; mount --make-rslave $at/root/dev; mkdir -p $at/root/lab; mount --bind /lab $at/root/lab`)
	t.Cleanup(func() { sh(s, "umount -R /var/tmp/below") })
	machine := sh(s, "cat /var/lib/dpkg/status | sha256sum")
	s.Root, s.Whole = "/var/tmp/below/root", false
	s.MustRun("pkg.installed", "{name: pullet-web, version: '1.0'}")
	s.MustRun("pkg.latest", "{name: pullet-web}")
	if got := sh(s, "chroot "+s.Root+" "+versionOf+"pullet-web"); got != "1.1 ii" {
		t.Errorf("%q, want 1.1", got)
	}
	if _, err := os.Lstat(s.Path("usr/sbin/policy-rc.d")); err == nil {
		t.Error("the policy that keeps services from starting is still there")
	}
	s.MustRun("pkg.removed", "{name: pullet-hello, purge: true}")
	if machine != sh(s, "cat /var/lib/dpkg/status | sha256sum") || sh(s, "pgrep -f /usr/[l]ib/pullet-web || true") != "" {
		t.Error("the machine's own packages changed, or a service runs")
	}
}
