package program

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/internal/ownfile"
)

// Installed is pullet as it is installed on this host. Its methods are called by one goroutine at a time.
type Installed struct {
	Path string // of the file that starts as pullet
	dir  string // below the state directory
	self string // the file from which the program of this process can be read

	own  func() (string, error) // the digest of the program of this process
	seen file                   // of Path, when it was read last
	is   string                 // its digest
}

// ownExe is the program of this process, also when its file was replaced or removed.
const ownExe = "/proc/self/exe"

// Open finds the program of this process, as it was started, and what a state directory keeps of programs.
func Open(state string) (*Installed, error) {
	path, err := exec.LookPath(os.Args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, fmt.Errorf("where pullet is installed: %w", err)
	}
	return at(path, state, ownExe), nil
}

// Kept is Open for who does not know where pullet is installed: Path is empty.
func Kept(state string) *Installed { return at("", state, ownExe) }

func at(path, state, self string) *Installed {
	own := sync.OnceValues(func() (string, error) { return digestOf(self) })
	return &Installed{Path: path, dir: filepath.Join(state, "program"), self: self, own: own}
}

// Replaced reports that the installed file is not the program of this process. It reads the file only when it is not
// the one that it read last.
func (i *Installed) Replaced() (bool, error) {
	now, err := identify(i.Path)
	if err != nil {
		return false, err
	}
	own, err := identify(i.self)
	if err != nil || now.same(own) {
		return false, err
	}
	is, err := i.digest()
	if err != nil {
		return false, err
	}
	mine, err := i.own()
	return is != mine, err
}

// unusable is the digest of what cannot be started, such as a file that is gone: it is no program's.
const unusable = "not executable"

// digest is the digest of the installed file.
func (i *Installed) digest() (string, error) {
	now, err := identify(i.Path)
	if err != nil || i.is != "" && now.same(i.seen) {
		return i.is, err
	}
	if err := ownfile.Check(i.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	is := unusable
	if now.Mode&syscall.S_IFMT == syscall.S_IFREG && now.Mode&0o100 != 0 {
		if is, err = digestOf(i.Path); err != nil {
			return "", err
		}
	}
	i.is, i.seen = is, now
	return is, nil
}

// file is what tells a file from another one, and from itself with other contents. Its zero is one that is gone.
type file struct {
	Dev     uint64    `json:"dev"`
	Inode   uint64    `json:"inode"`
	Mode    uint32    `json:"mode"`
	Size    int64     `json:"size"`
	Changed time.Time `json:"changed"`
}

func (f file) same(as file) bool {
	changed := f.Changed.Equal(as.Changed)
	f.Changed = as.Changed
	return changed && f == as
}

func identify(path string) (file, error) {
	var st syscall.Stat_t
	switch err := syscall.Stat(path, &st); {
	case errors.Is(err, fs.ErrNotExist):
		return file{}, nil
	case err != nil:
		return file{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return file{st.Dev, st.Ino, st.Mode, st.Size, time.Unix(st.Ctim.Unix())}, nil
}

func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// KeepError says that no copy of a program could be made in the state directory.
type KeepError struct {
	Path string // of the program
	Err  error
}

func (e *KeepError) Error() string { return fmt.Sprintf("cannot keep a copy of %s: %v", e.Path, e.Err) }

func (e *KeepError) Unwrap() error { return e.Err }

// keep copies a program into the state directory under a name.
func (i *Installed) keep(from, name string) error {
	err := os.MkdirAll(i.dir, 0o700)
	if err == nil {
		err = room(from, i.file(name))
	}
	if err == nil {
		err = place(from, i.file(name), 0o700)
	}
	if err != nil {
		return &KeepError{i.Path, err}
	}
	return nil
}

// room reports a disk on which a copy would not leave as much free as it takes: the records of this host need it more.
func room(from, to string) error {
	of, err := identify(from)
	if err != nil {
		return err
	}
	before, err := identify(to)
	if err != nil {
		return err
	}
	left, err := durable.Room(filepath.Dir(to))
	if err != nil {
		return err
	}
	free := int64(left)                                 //nolint:gosec // a disk has fewer
	if free < of.Size || free+before.Size < 2*of.Size { // the copy before is removed by the next
		return fmt.Errorf("%s has %d MiB free; the copy needs %[3]d MiB, and another %[3]d MiB must stay free",
			filepath.Dir(to), free>>20, of.Size>>20)
	}
	return nil
}

// file is a file of the state directory.
func (i *Installed) file(name string) string { return filepath.Join(i.dir, name) }

// install puts a program in the place of the installed file, or of a link to one.
func (i *Installed) install(from string) error {
	err := ownfile.Check(filepath.Dir(i.Path))
	if err == nil {
		err = place(from, i.Path, 0o755)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be put back: %w", i.Path, err)
	}
	return nil
}

// place copies a file to a name as a whole, durably. Until it is whole it has a name of its own, which a process that
// was killed leaves to the next one: nobody else can write the directory.
func place(from, to string, mode fs.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	part := filepath.Join(filepath.Dir(to), "."+filepath.Base(to)+".part")
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part))
		}
	}()
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	if err := os.Rename(part, to); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(to))
}
