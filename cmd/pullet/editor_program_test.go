package main

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestVimOptions: only what says that it is a vim is taken for one.
func TestVimOptions(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	says := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(dir+"/"+name, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	says("vim", "echo 'VIM - Vi IMproved 9.1'")
	says("nvim", "echo 'NVIM v0.9.5'")
	says("view", "echo 'busybox: unrecognized option --version' >&2; exit 1")
	says("other", "echo 'VIM - Vi IMproved'; echo asked >"+dir+"/asked")
	says("vim.tiny", "echo 'VIM - Vi IMproved 9.1'")
	for link, to := range map[string]string{"editor": "vim.tiny", "vi": "nvim"} {
		if err := os.Symlink(dir+"/"+to, dir+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	for command, want := range map[string]string{
		"vim": "viminfo=", "vim -n": "viminfo=", dir + "/vim.tiny": "viminfo=", "editor": "viminfo=",
		"nvim": "shada=", "vi -e": "shada=", "view": "", "other": "", "no-such": "", "'vim'": "",
	} {
		if got := vimOptions(command); !strings.HasSuffix(strings.Join(got, " "), want) || want == "" && got != nil {
			t.Errorf("%s: %q", command, got)
		}
	}
	if _, err := os.Stat(dir + "/asked"); err == nil {
		t.Error("an editor of another name was started to ask it")
	}
	t.Setenv("VISUAL", " ")
	t.Setenv("EDITOR", "nvim -R")
	e, err := usersEditor()
	if err != nil || !slices.Equal(e.on("/d/f").Args[1:4], []string{"-c", "trap : INT QUIT\nnvim -R \"$@\"", "nvim -R"}) || e.on("/d/f").Args[9] != "/d/f" {
		t.Errorf("%q, %v", e.on("/d/f").Args, err)
	}
	t.Setenv("EDITOR", "")
	if e, err := usersEditor(); err != nil || e.command != "editor" {
		t.Error(e, err)
	}
}

// TestEditIsForbidden: where there may be no file system for the editor alone there is no editor, and the error says
// what helps.
func TestEditIsForbidden(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can take the right from others")
	}
	const why = "the editor needs a file system of its own, which is not permitted here"
	root := func() *desk { return newDesk(t, 0) }
	user := func() *desk { return newDesk(t, nobody) }
	noRight := func() error { return unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_ADMIN, 0, 0, 0) }

	d := root()
	d.needsNamespaces()
	got := d.restricted(noRight).Failed
	if want := why + ", as in most containers: fork/exec /proc/self/exe: operation not permitted: on a host, run pullet secrets edit secrets/db.yaml"; got != want {
		t.Error(got)
	}
	d = user()
	d.needsNamespaces()
	d.attr.Cloneflags, d.attr.AmbientCaps = syscall.CLONE_NEWUSER, []uintptr{unix.CAP_SYS_RESOURCE}
	d.attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: d.uid, HostID: d.uid, Size: 1}}
	d.attr.GidMappings, d.attr.Credential.NoSetGroups = d.attr.UidMappings, true
	d.env = []string{"PULLET_TEST_EDIT_ALONE=1"}
	got = d.restricted(func() error { return nil }).Failed
	if want := why + " to users: fork/exec /proc/self/exe: no space left on device: run sudo pullet secrets edit secrets/db.yaml, or allow it to users: sudo sysctl user.max_user_namespaces=10000"; got != want {
		t.Error(got)
	}
	if _, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1); no != 0 {
		t.Skipf("this kernel has no Landlock to forbid mounts with: %v", no)
	}
	got = root().restricted(noMounts).Failed
	if want := why + ", as in most containers: mounts cannot be made private: operation not permitted: on a host, run pullet secrets edit secrets/db.yaml"; got != want {
		t.Error(got)
	}
	got = user().restricted(noMounts).Failed
	if want := why + " to users: mounts cannot be made private: operation not permitted: run sudo pullet secrets edit secrets/db.yaml"; got != want {
		t.Error(got)
	}
}

// restricted starts a process after a thread of its own, which ends then, has given something up.
func (d *desk) restricted(giveUp func() error) edited {
	d.Helper()
	script, done := d.script(`echo was here >"$out/ran"`), make(chan edited)
	go func() {
		defer close(done)
		runtime.LockOSThread() // not unlocked
		if err := giveUp(); err != nil {
			d.Error(err)
			return
		}
		s := d.start(script, d.canary)
		done <- s.end()
	}()
	got := <-done
	if _, err := os.Stat(d.out + "/ran"); err == nil || got.Saved != "" {
		d.Error("the editor ran")
	}
	d.nothingLeft(0)
	return got
}

// noMounts forbids a thread to mount, as a security module may that permits namespaces.
func noMounts() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	rules := uint64(unix.LANDLOCK_ACCESS_FS_MAKE_SOCK) // any rule will do
	fd, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), 8, 0)
	if no != 0 {
		return no
	}
	if _, _, no := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); no != 0 {
		return no
	}
	return unix.Close(int(fd))
}
