// Package ownfile reads the files that tell pullet what to do: its configuration, the variables of the host,
// credentials. Who can write one of them, or rename a directory above it, decides what pullet does as its user, which
// is root on a host. So each file, each directory above it and each link on the way must belong to root or to pullet's
// user, and nobody else may write it.
package ownfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// RefusedError is a file that somebody else can write.
type RefusedError struct {
	File string // that was asked for
	At   string // the file, directory or link that is at fault
	Why  string
	Do   string // the command that helps
}

func (e *RefusedError) Error() string {
	at := ""
	if e.At != e.File {
		at = ", on the way to " + e.File + ","
	}
	return fmt.Sprintf("%s%s %s: %s", e.At, at, e.Why, e.Do)
}

// HostFault is true: no commit of the fleet made the file what it is.
func (e *RefusedError) HostFault() bool { return true }

// maxLinks is how many links are followed on the way to a file.
const maxLinks = 40

// Check refuses a file or a directory that somebody else can write, with a *RefusedError. One that is not there is an
// fs.ErrNotExist; the directories above it are checked all the same.
func Check(file string) error {
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	return (&walk{file: file}).to(path)
}

// Read reads a file after Check.
func Read(file string) ([]byte, error) {
	if err := Check(file); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// ReadDir lists a directory after Check.
func ReadDir(dir string) ([]fs.DirEntry, error) {
	if err := Check(dir); err != nil {
		return nil, err
	}
	return os.ReadDir(dir)
}

// walk goes to a file, component by component. Nobody else can change what it passed: those are directories that nobody
// else can write.
type walk struct {
	file  string
	links int
}

func (w *walk) to(path string) error {
	at := "/"
	rest := strings.Split(strings.Trim(path, "/"), "/")
	for {
		info, err := os.Lstat(at)
		var why *fs.PathError
		if errors.As(err, &why) { // said of the file that was asked for
			return &fs.PathError{Op: "open", Path: w.file, Err: why.Err}
		}
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if err := w.owner(at, info); err != nil {
				return err
			}
			target, err := os.Readlink(at)
			if err != nil {
				return err
			}
			if w.links++; w.links > maxLinks {
				return &fs.PathError{Op: "open", Path: w.file, Err: syscall.ELOOP}
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(at), target)
			}
			return w.to(filepath.Join(append([]string{target}, rest...)...))
		}
		if err := w.safe(at, info); err != nil || len(rest) == 0 || rest[0] == "" {
			return err
		}
		at, rest = filepath.Join(at, rest[0]), rest[1:]
	}
}

// owner refuses what belongs to somebody else.
func (w *walk) owner(at string, info fs.FileInfo) error {
	uid, me := int(info.Sys().(*syscall.Stat_t).Uid), os.Geteuid() // Linux
	if uid == 0 || uid == me {
		return nil
	}
	who := "this user"
	if me == 0 {
		who = "root"
	}
	return &RefusedError{
		w.file,
		at,
		fmt.Sprintf("belongs to user %d, and pullet runs as %s", uid, who),
		fmt.Sprintf("chown -h %d %s", me, at),
	}
}

// safe refuses what somebody else can write. In a directory with the sticky bit, such as /tmp, others can make files
// but not replace one.
func (w *walk) safe(at string, info fs.FileInfo) error {
	if err := w.owner(at, info); err != nil {
		return err
	}
	mode := info.Mode()
	sticky := mode.IsDir() && mode&fs.ModeSticky != 0 && at != w.file
	gid := int(info.Sys().(*syscall.Stat_t).Gid)
	switch {
	case sticky:
		return nil
	case mode.Perm()&0o002 != 0:
		return &RefusedError{
			w.file,
			at,
			fmt.Sprintf("can be written by everybody (mode %04o)", mode.Perm()),
			"chmod o-w " + at,
		}
	case mode.Perm()&0o020 != 0 && gid != 0 && (os.Geteuid() == 0 || gid != os.Getegid()):
		return &RefusedError{
			w.file,
			at,
			fmt.Sprintf("can be written by group %d (mode %04o)", gid, mode.Perm()),
			"chmod g-w " + at,
		}
	}
	return nil
}

// Private refuses a file with a secret that others can read.
func Private(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return &OpenError{file, mode}
	}
	return nil
}

// OpenError is a file with a secret that others can read.
type OpenError struct {
	File string
	Mode fs.FileMode
}

func (e *OpenError) Error() string {
	return fmt.Sprintf("credentials in %s are open to others (mode %04o): chmod 600 %s", e.File, e.Mode, e.File)
}
