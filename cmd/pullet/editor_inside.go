package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// editorCommand makes this binary the child that editPrivately starts: the file's path and the size of the text follow.
const editorCommand = "editor-child"

// How the child ends. A panic ends it with 2.
const (
	editorFailed    = 1 // it says why on descriptor 4
	editorForbidden = 3 // as well: it may not mount
)

// The child is the first process of its namespace, and so whoever asks for it by hand is not. It comes before main,
// on the main thread, which alone has the right to mount.
func init() {
	if len(os.Args) != 4 || os.Args[1] != editorCommand || os.Getpid() != 1 {
		return
	}
	given, answers := os.NewFile(3, "the text"), os.NewFile(4, "the answer")
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	answer, code := editorMain(os.Args[2], os.Args[3], given)
	if _, err := answers.Write(answer); err != nil && code == 0 {
		code = editorFailed
	}
	os.Exit(code)
}

// editorMain is the child: it gives what was saved, or why nothing was and the code for that.
func editorMain(path, size string, given io.ReadCloser) (answer []byte, code int) {
	text, err := readGiven(size, given)
	if err != nil {
		return []byte(err.Error()), editorFailed
	}
	if err := mountAlone(filepath.Dir(path)); err != nil {
		return []byte(err.Error()), editorForbidden
	}
	if answer, err = editFile(path, text); err != nil {
		return []byte(err.Error()), editorFailed
	}
	return answer, 0
}

// readGiven reads the text, into memory that is not dumped. One that is cut short is of a parent that was killed.
func readGiven(size string, given io.ReadCloser) ([]byte, error) {
	hideMemory()
	// A core dump that goes to a program, and not to a file, is kept back by this limit alone, and not by 0: core(5).
	// The editor inherits it.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}); err != nil {
		return nil, fmt.Errorf("core dumps cannot be turned off: %w", err)
	}
	n, err := strconv.Atoi(size)
	if err != nil || n > mostEdited {
		return nil, fmt.Errorf("%s is no size of a text", size)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(given, text); err != nil {
		return nil, fmt.Errorf("the text is not whole: %w", err)
	}
	return text, given.Close()
}

// mountAlone mounts a file system over a directory that nothing outside of this namespace sees, and goes there. It is
// never written to swap: a ramfs, where the kernel is older than 6.4 or a user asks, which is not bounded.
func mountAlone(dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts cannot be made private: %w", err)
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if unix.Mount("pullet", dir, "tmpfs", flags, "mode=0700,size=16m,noswap") != nil {
		if err := unix.Mount("pullet", dir, "ramfs", flags, "mode=0700"); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	// The editor has no right to mount.
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("the right to mount cannot be given up: %w", err)
	}
	return os.Chdir(dir)
}

// editFile has the user's editor edit a text in a file, and gives what is in the file then.
func editFile(path string, text []byte) ([]byte, error) {
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, err
	}
	e, err := usersEditor()
	if err != nil {
		return nil, err
	}
	// Interrupts are for the editor: here they are caught and forgotten, since what is ignored, the editor ignores too.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGQUIT)
	cmd := e.on(path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Dir(path), "PWD="+filepath.Dir(path))
	err = cmd.Run()
	ended, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case failed && ended.Exited():
		return nil, fmt.Errorf("the editor failed (exit %d): nothing was changed", ended.ExitCode())
	case err != nil:
		return nil, fmt.Errorf("the editor failed (%w): nothing was changed", err)
	}
	return readEdited(path)
}

// readEdited reads the file that an editor leaves.
func readEdited(path string) ([]byte, error) {
	name := filepath.Base(path)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s is gone after the editor: nothing was changed", name)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file after the editor: nothing was changed", name)
	case info.Size() > mostEdited:
		return nil, fmt.Errorf(
			"%s has %d bytes after the editor, and %d are possible: nothing was changed", name, info.Size(), mostEdited,
		)
	}
	return os.ReadFile(path)
}
