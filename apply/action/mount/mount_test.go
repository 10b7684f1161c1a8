package mount_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// TestEditedFiles: a file of which a part is edited keeps its mode, and a link to it stays a link.
func TestEditedFiles(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f data/fstab 640 # ours\n", "l etc/fstab ../data/fstab")
	s.MustRun("mount.mounted", "{name: /m, device: /dev/a}")
	info, err := os.Lstat(s.Path("data/fstab"))
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("%v %v", info, err)
	}
	if to, err := os.Readlink(s.Path("etc/fstab")); err != nil || to != "../data/fstab" {
		t.Errorf("the link: %q %v", to, err)
	}
	if got := s.Read("data/fstab"); got != "# ours\n/dev/a\t/m\tauto\tdefaults\t0\t0\n" {
		t.Errorf("%q", got)
	}
}

// inNamespace is set in the environment of a test that runs in mounts of its own.
const inNamespace = "PULLET_TEST_OWN_MOUNTS"

// alone runs the test again in a mount namespace of its own, where /etc, /run and /srv are its own too, and reports
// whether this is it.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(actiontest.WholeHost) != "" {
		t.Skip("hosts of the lab have no disks: scripts/test runs it as root, on the machine")
	}
	actiontest.NeedRoot(t)
	if os.Getenv(inNamespace) != "" {
		return true
	}
	const own = `mount -t tmpfs own /run; mount -t tmpfs own /srv; cp -a /etc /srv/etc; mount --bind /srv/etc /etc; : >/etc/fstab; exec "$@"`
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "/bin/sh", "-ec", own, "sh", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// TestDisks mounts a real file system by all names that its disk has.
func TestDisks(t *testing.T) {
	if !alone(t) {
		return
	}
	s := actiontest.New(t)
	s.Root = "/"
	const uuid, image = "0a3407de-014b-458b-b5c1-848e92a327a3", "/srv/disk.img"
	mountShell(t, "truncate -s 16M "+image+" && mkfs.ext4 -q -L pulletdisk -U "+uuid+" "+image)
	settles(s, "mount.mounted", "{name: /srv/m, device: "+image+", makeDirs: true}", "make the directory, mount, entry in /etc/fstab")
	settles(s, "mount.unmounted", "{name: /srv/m}", "unmount "+strings.TrimSpace(mountShell(t, "findmnt -no SOURCE /srv/m"))+", remove from /etc/fstab")

	disk := strings.TrimSpace(mountShell(t, "losetup -f --show "+image))
	t.Cleanup(func() { mountShell(t, "umount /srv/m; losetup -d "+disk) })
	settles(s, "mount.mounted", "{name: /srv/m, device: UUID="+uuid+", fstype: ext4}", "mount, entry in /etc/fstab")
	mountShell(t, "ln -s "+disk+" /srv/link")
	for _, device := range []string{disk, "LABEL=pulletdisk", "/srv/link", image} {
		settles(s, "mount.mounted", "{name: /srv/m, device: "+device+", persist: false}", "")
	}
	settles(s, "mount.mounted", "{name: /srv/m, device: UUID="+uuid+", fstype: ext4, options: [noatime, commit=7]}", "remount with noatime,commit=7, entry in /etc/fstab")
	if now := mountShell(t, "findmnt -no OPTIONS /srv/m"); !strings.Contains(now, "noatime") || !strings.Contains(now, "commit=7") {
		t.Errorf("it has %s", now)
	}
	settles(s, "mount.mounted", "{name: /srv/m, device: UUID="+uuid+", fstype: ext4, options: [ro]}", "remount with ro,relatime, entry in /etc/fstab")
	for _, device := range []string{"LABEL=nonesuch", "/dev/nonesuch", "/etc/fstab"} {
		r := s.Run(s.MustBind("mount.mounted", "{name: /srv/m, device: "+device+", fstype: ext4}"))
		if want := disk + " (ext4) is mounted at /srv/m, and not " + device; r.Outcome != apply.Failed || !strings.Contains(r.Reason, want) {
			t.Errorf("%s: %s %s, want %s", device, r.Outcome, r.Reason, want)
		}
	}
	mountShell(t, "umount /srv/m; losetup -d "+disk+"; losetup -r "+disk+" "+image)
	r := s.Run(s.MustBind("mount.mounted", "{name: /srv/m, device: "+disk+", fstype: ext4, persist: false}"))
	if r.Outcome != apply.Failed || !strings.Contains(r.Reason, "and not with rw") || mountShell(t, "findmnt -no SOURCE /srv/m || true") != "" {
		t.Errorf("a disk that cannot be written: %s %s", r.Outcome, r.Reason)
	}
	settles(s, "mount.mounted", "{name: /srv/m, device: "+disk+", fstype: ext4, options: ro, persist: false}", "mount")
}

// settles runs a step and then finds nothing to do.
func settles(s *actiontest.Scene, action, params, summary string) {
	s.T.Helper()
	p := s.MustBind(action, params)
	if r := s.Run(p); r.Summary != summary || r.Outcome == apply.Failed {
		s.T.Errorf("%s %s: %s %q %s, want %q", action, params, r.Outcome, r.Summary, r.Reason, summary)
	}
	if r := s.Plan(p); r.Outcome != apply.OK {
		s.T.Errorf("%s %s again: %s %q %s", action, params, r.Outcome, r.Summary, r.Reason)
	}
}

func mountShell(t *testing.T, line string) string {
	t.Helper()
	out, err := exec.Command("/bin/sh", "-c", line).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// TestSystemdKnowsMounts: after the entry came and went, systemd's units say the same as /etc/fstab.
func TestSystemdKnowsMounts(t *testing.T) {
	s := actiontest.OnHost(t, "umount -R /srv/m 2>/dev/null || true; rm -rf /srv/m; touch /etc/fstab; sed -i '\\,/srv/,d' /etc/fstab; "+"systemctl daemon-reload")
	what := func() string { return strings.TrimSpace(mountShell(t, "systemctl show -P FragmentPath srv-m.mount")) }
	if got := what(); got != "" {
		t.Fatalf("before: %q", got)
	}
	s.MustRun("mount.mounted", "{name: /srv/m, device: tmpfs, fstype: tmpfs, makeDirs: true}")
	if got := what(); got != "/run/systemd/generator/srv-m.mount" {
		t.Errorf("mounted: %q", got)
	}
	s.MustRun("mount.unmounted", "{name: /srv/m}")
	if got := what(); got != "" {
		t.Errorf("unmounted: %q", got)
	}
}

// TestOptionsThatGo takes options of mounts away and adds others. Then the kernel has the flags that a new mount with
// the same options has, and there is nothing to do. Without options a bind has the flags of what is bound.
func TestOptionsThatGo(t *testing.T) {
	if !alone(t) {
		return
	}
	s := actiontest.New(t)
	s.Root = "/"
	mountShell(t, "mkdir /srv/m /srv/ref /srv/fresh /srv/plain /srv/strict; mount -t tmpfs -o nosuid,noatime strict /srv/strict")
	options := []string{"ro", "", "noatime,nodev", "nosuid,noexec,ro", "", "strictatime", "nodiratime", "rw", "user", "suid", "nosuid,relatime"}
	for kind, k := range map[string]struct{ name, device, fstype, options, flags string }{
		"tmpfs":                {"/srv/m", "tmpfs", "tmpfs", "size=1m", "relatime,rw"},
		"bind":                 {"/srv/m", "/srv/plain", "none", "bind", "relatime,rw"},
		"bind of another":      {"/srv/m", "/srv/strict", "none", "bind", "noatime,nosuid,rw"},
		"bind of itself":       {"/srv/plain", "/srv/plain", "none", "bind", "relatime,rw"},
		"recursive, by a link": {"/srv/m", "/srv/link", "auto", "rbind", "noatime,nosuid,rw"},
	} {
		mountShell(t, "ln -sfn strict /srv/link; : >/etc/fstab")
		for _, o := range options {
			all := strings.Trim(k.options+","+o, ",")
			p := s.MustBind("mount.mounted", fmt.Sprintf("{name: %s, device: %s, fstype: %s, options: '%s'}", k.name, k.device, k.fstype, all))
			if r := s.Run(p); r.Outcome == apply.Failed {
				t.Errorf("%s, %s: %s", kind, all, r.Reason)
				continue
			}
			if r := s.Plan(p); r.Outcome != apply.OK {
				t.Errorf("%s, %s: a second plan: %s %q", kind, all, r.Outcome, r.Summary)
			}
			device := k.device
			if device == k.name {
				device = "/srv/fresh"
			}
			s.MustRun("mount.mounted", fmt.Sprintf("{name: /srv/ref, device: %s, fstype: %s, options: '%s', persist: false}", device, k.fstype, all))
			if have, want := flagsAt(t, k.name), flagsAt(t, "/srv/ref"); have != want {
				t.Errorf("%s, %s: the kernel has %s, and %s of a new mount", kind, all, have, want)
			}
			mountShell(t, "umount /srv/ref")
		}
		s.MustRun("mount.mounted", fmt.Sprintf("{name: %s, device: %s, fstype: %s, options: '%s'}", k.name, k.device, k.fstype, k.options))
		if have := flagsAt(t, k.name); have != k.flags {
			t.Errorf("%s: without options the kernel has %s, want %s", kind, have, k.flags)
		}
		mountShell(t, "umount "+k.name)
	}
}

// flagsAt are the flags of a mount, in order.
func flagsAt(t *testing.T, point string) string {
	t.Helper()
	flags := strings.Split(strings.TrimSpace(mountShell(t, "findmnt -no VFS-OPTIONS --mountpoint "+point)), ",")
	slices.Sort(flags)
	return strings.Join(flags, ",")
}

// TestOnDemand leaves what noauto says not to mount, and compares what is mounted all the same.
func TestOnDemand(t *testing.T) {
	if !alone(t) {
		return
	}
	s := actiontest.New(t)
	s.Root = "/"
	step := "{name: /srv/m, device: tmpfs, fstype: tmpfs, options: 'noauto,nosuid', makeDirs: true}"
	settles(s, "mount.mounted", step, "make the directory, entry in /etc/fstab")
	mountShell(t, "mount /srv/m; mount -o remount,suid,ro /srv/m")
	settles(s, "mount.mounted", step, "remount with nosuid,rw")
	settles(s, "mount.mounted", strings.Replace(step, "noauto", "noauto,auto", 1), "entry in /etc/fstab")
}
