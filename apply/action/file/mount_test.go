package file_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// inPrivateMounts runs a test in a process with mounts of its own, which end with it. It reports whether this is that
// process.
func inPrivateMounts(t *testing.T) bool {
	t.Helper()
	actiontest.NeedRoot(t)
	const mark = "PULLET_PRIVATE_MOUNTS"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), mark+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

func mount(s *actiontest.Scene, source, at, kind string, flags uintptr, data string) {
	s.T.Helper()
	if err := syscall.Mount(source, s.Path(at), kind, flags, data); err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() {
		if err := syscall.Unmount(s.Path(at), syscall.MNT_DETACH); err != nil {
			s.T.Error(err)
		}
	})
}

// TestMountedFile: what is mounted on a file cannot be renamed over; it is written in place, longer or shorter, with
// its inode.
func TestMountedFile(t *testing.T) {
	if !inPrivateMounts(t) {
		return
	}
	s := actiontest.New(t, "f real 640 0123456789", "f etc/hosts 644 below")
	mount(s, s.Path("real"), "etc/hosts", "", syscall.MS_BIND, "")
	before, err := os.Stat(s.Path("etc/hosts"))
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"longer than what was there before", "short", ""} {
		s.MustRun("file.managed", "{name: /etc/hosts, content: '"+content+"', mode: 0604}")
		after, err := os.Stat(s.Path("etc/hosts"))
		if err != nil || !os.SameFile(before, after) || after.Mode() != 0o604 || s.Read("real") != content {
			t.Errorf("%v %v %q, want %q", after.Mode(), err, s.Read("real"), content)
		}
	}
	s.MustRun("file.line", "{name: /etc/hosts, line: one}")
	s.MustRun("file.block", "{name: /etc/hosts, content: two}")
	if s.Read("real") != "one\n# BEGIN pullet\ntwo\n# END pullet\n" {
		t.Errorf("%q", s.Read("real"))
	}
	if found := backups(t, s); len(found) > 0 {
		t.Errorf("copies are left: %q", found)
	}
	s.MustRun("file.managed", "{name: /etc/hosts, content: new, backup: true}")
	if found := backups(t, s); len(found) != 1 {
		t.Errorf("backups %q, want one", found)
	}
	if found, err := os.ReadDir(s.Path("etc")); err != nil || len(found) != 1 {
		t.Errorf("%v %v, want hosts alone", found, err)
	}
}

// TestMountedFileOnFullDisk: where there is no room for the new content, the mounted file stays whole.
func TestMountedFileOnFullDisk(t *testing.T) {
	if !inPrivateMounts(t) {
		return
	}
	s := actiontest.New(t, "f etc/hosts 644 below", "d small 755")
	mount(s, "small", "small", "tmpfs", 0, "size=64k")
	s.Plant("f small/hosts 644 old")
	mount(s, s.Path("small/hosts"), "etc/hosts", "", syscall.MS_BIND, "")
	s.Files["big"] = strings.Repeat("x", 1<<20)
	r := s.Run(s.MustBind("file.managed", "{name: /etc/hosts, source: big}"))
	if r.Outcome != apply.Failed || !strings.Contains(r.Reason, "no space left on device") || s.Read("etc/hosts") != "old" {
		t.Errorf("%s %q, %.20q", r.Outcome, r.Reason, s.Read("etc/hosts"))
	}
	if found := backups(t, s); len(found) > 0 {
		t.Errorf("copies are left: %q", found)
	}
}

// TestFullDiskEverywhere: a download, a line, a tree and an archive leave the old content on a full disk, and no
// candidate.
func TestFullDiskEverywhere(t *testing.T) {
	if !inPrivateMounts(t) {
		return
	}
	big := strings.Repeat("x", 1<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(big)) }))
	defer server.Close()
	for name, step := range map[string]string{
		"download": "file.managed {name: /d/f, source: " + server.URL + "/big, digest: '" + actiontest.SumOf(big) + "'}",
		"tree":     "file.managed {name: /d, source: bigs, recurse: true}",
		"block":    "file.block {name: /d/f, source: bigs/f}",
		"archive":  "archive.extracted {name: /d, source: big.tgz}",
	} {
		t.Run(name, func(t *testing.T) {
			s := actiontest.New(t, "d d 755")
			mount(s, "small", "d", "tmpfs", 0, "size=64k")
			s.Plant("f d/f 644 old")
			s.Files["bigs/f"], s.Files["big.tgz"] = big, actiontest.Gzipped(actiontest.Tarball(actiontest.Packed{"f", "f", big}))
			act, params, _ := strings.Cut(step, " ")
			r := s.Run(s.MustBind(act, params))
			if r.Outcome != apply.Failed || !strings.Contains(r.Reason, "no space left on device") {
				t.Errorf("%s %q", r.Outcome, r.Reason)
			}
			justOne(s, "d", "old")
		})
	}
}

// TestNoMountIsRemoved: what is mounted below a directory is neither cleaned away nor removed with it, not even when it
// is of the same file system.
func TestNoMountIsRemoved(t *testing.T) {
	if !inPrivateMounts(t) {
		return
	}
	s := actiontest.New(t, "f precious/f 644 whole", "d srv/app/data/m 755")
	mount(s, s.Path("precious"), "srv/app/data/m", "", syscall.MS_BIND, "")
	for step, want := range map[string]string{
		"file.absent {name: /srv/app}":                                            "/srv/app/data/m is a mount point: unmount it first",
		"file.directory {name: /srv/app, clean: true}":                            "/srv/app/data/m is a mount point: unmount it, or exclude it",
		"file.managed {name: /srv/app, source: tree, recurse: true, clean: true}": "/srv/app/data/m is a mount point: unmount it, or exclude it",
		"file.absent {name: /srv/app/data/m}":                                     "/srv/app/data/m is a mount point: unmount it first",
	} {
		act, params, _ := strings.Cut(step, " ")
		if r := s.Run(s.MustBind(act, params)); r.Outcome != apply.Failed || r.Reason != want {
			t.Errorf("%s: %s %q, want %q", step, r.Outcome, r.Reason, want)
		}
		if s.Read("precious/f") != "whole" {
			t.Fatalf("%s: it is gone", step)
		}
	}
}
