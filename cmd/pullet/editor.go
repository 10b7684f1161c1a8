package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/render"
)

// mostEdited bounds a text that is edited, before and after.
const mostEdited = 1 << 20

// editPrivately lets the user edit a text in a file system that only the editor sees, and gives what was saved. The
// file has the last part of name without .age, by which editors know its syntax. Whoever may debug the editor, root and
// the user itself, can look into that file system through /proc as long as the editor runs.
//
// A child of this binary mounts the file system in namespaces of its own and runs the editor there (editor_inside.go).
// It is the first process of its pid namespace and is killed with this process: with either of them the kernel ends the
// editor and all that the editor started, and with the last of those the text. What a kill leaves is an empty
// directory, which harms nothing. An editor that hands the file to a program that runs already cannot work so.
//
// Until the editor ends, this process ignores interrupts, which editors handle; afterwards one ends it at once.
func editPrivately(ctx context.Context, name string, text []byte) ([]byte, error) {
	if len(text) > mostEdited {
		return nil, fmt.Errorf("%s has %d bytes: at most %d can be edited", name, len(text), mostEdited)
	}
	made, err := os.MkdirTemp("", "pullet-edit-")
	if err != nil {
		return nil, fmt.Errorf("a directory for the editor: %w", err)
	}
	defer os.Remove(made)
	dir, err := filepath.Abs(made)
	if err != nil {
		return nil, err
	}
	e, err := newEditing(ctx, filepath.Join(dir, strings.TrimSuffix(filepath.Base(name), render.SealedSuffix)), len(text))
	if err != nil {
		return nil, err
	}
	defer e.close()
	runtime.LockOSThread() // the child is killed when the thread ends that started it
	defer runtime.UnlockOSThread()
	if err := e.start(); err != nil && !notPermitted(err) {
		return nil, fmt.Errorf("the editor cannot be started: %w", err)
	} else if err != nil {
		return nil, namespaceError(name, err)
	}
	signal.Ignore(os.Interrupt, syscall.SIGQUIT)
	defer signal.Reset(os.Interrupt, syscall.SIGQUIT)
	answer, ended := e.exchange(text)
	switch code := e.cmd.ProcessState.ExitCode(); {
	case ended == nil:
		return answer, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the editor was ended: %w: nothing was changed", context.Cause(ctx))
	case code == editorForbidden:
		return nil, namespaceError(name, errors.New(string(answer)))
	case code == editorFailed:
		return nil, errors.New(string(answer))
	}
	return nil, fmt.Errorf("the process that runs the editor ended with %w: nothing was changed", ended)
}

// editing is the child that runs the editor, and this side of the pipes to it.
type editing struct {
	cmd    *exec.Cmd
	to     io.WriteCloser
	from   io.ReadCloser
	theirs []*os.File // the child's ends
}

// newEditing prepares a child. Its descriptor 3 is the text, 4 is for what was saved, or for why nothing was. It knows
// the size of the text, and so edits none that is cut short.
func newEditing(ctx context.Context, path string, size int) (*editing, error) {
	given, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, answers, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, given.Close(), to.Close())
	}
	e := &editing{exec.CommandContext(ctx, "/proc/self/exe"), to, from, []*os.File{given, answers}}
	e.cmd.Args = []string{"pullet", editorCommand, path, strconv.Itoa(size)}
	e.cmd.Stdin, e.cmd.Stdout, e.cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	e.cmd.ExtraFiles = e.theirs
	e.cmd.SysProcAttr = separated()
	return e, nil
}

// separated has a process start in namespaces of its own, and makes it die with this one. A user has to have a user
// namespace for that; the process stays that user in it, with the one right that it takes to mount.
func separated() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		a.GidMappingsEnableSetgroups = false // the kernel demands it of a user
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	return a
}

// start starts the child. The kernel lets a user map the users of a child only if the memory of neither is hidden, so
// this process shows its own for that moment; the child hides its own before it is given the text.
func (e *editing) start() error {
	shown, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if e.cmd.SysProcAttr.UidMappings != nil && err == nil && shown != 1 {
		defer hideMemory()
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	return e.cmd.Start()
}

// exchange gives the child the text, and waits for what it answers and how it ends. A child that could not read the
// text says so.
func (e *editing) exchange(text []byte) (answer []byte, ended error) {
	for _, f := range e.theirs {
		f.Close()
	}
	_, _ = e.to.Write(text)
	e.to.Close()
	answer, unread := io.ReadAll(io.LimitReader(e.from, mostEdited))
	return answer, errors.Join(e.cmd.Wait(), unread)
}

// close closes what exchange did not.
func (e *editing) close() {
	for _, f := range append([]io.Closer{e.to, e.from}, e.theirs[0], e.theirs[1]) {
		f.Close()
	}
}

// notPermitted reports that the kernel, or what a host or a container allows, refused namespaces.
func notPermitted(err error) bool {
	return slices.ContainsFunc([]error{
		syscall.EPERM, syscall.EACCES, syscall.EINVAL, syscall.ENOSPC, syscall.EUSERS, syscall.ENOSYS,
	}, func(no error) bool { return errors.Is(err, no) })
}

// namespaceError says what helps where the editor cannot have a file system of its own.
func namespaceError(name string, err error) error {
	const what = "the editor needs a file system of its own, which is not permitted here"
	if os.Geteuid() == 0 {
		return fmt.Errorf("%s, as in most containers: %w: on a host, run pullet secrets edit %s", what, err, name)
	}
	cure := ""
	if s := forbidding(); s != "" {
		cure = ", or allow it to users: sudo sysctl " + s
	}
	return fmt.Errorf("%s to users: %w: run sudo pullet secrets edit %s%s", what, err, name, cure)
}

// forbidding is the setting of the kernel that keeps users from making namespaces, as it would allow it, or empty.
func forbidding() string {
	for _, s := range [][3]string{
		{"kernel.apparmor_restrict_unprivileged_userns", "1", "0"}, // Ubuntu
		{"kernel.unprivileged_userns_clone", "0", "1"},             // Debian, until 11
		{"user.max_user_namespaces", "0", "10000"},
	} {
		now, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(s[0], ".", "/"))
		if err == nil && strings.TrimSpace(string(now)) == s[1] {
			return s[0] + "=" + s[2]
		}
	}
	return ""
}
