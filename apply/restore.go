package apply

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/google/renameio/v2"

	"github.com/pullet/pullet/state"
)

// kept is how a path was before the run changed it.
type kept struct {
	Step string      `json:"step"` // its id
	Path string      `json:"path"` // as the repository names it
	Mode fs.FileMode `json:"mode"`
	UID  int         `json:"uid"`
	GID  int         `json:"gid"`
	Link string      `json:"link,omitempty"` // what a symbolic link says
	File string      `json:"file,omitempty"` // where the content of a file is kept
	None bool        `json:"none,omitempty"` // there was nothing
}

// keeper keeps what upgrades change in the files of jobs that are put back when an upgrade fails: as they were when one succeeded last. It
// is on disk, so that a run which was killed and goes on still knows.
type keeper struct {
	dir  string
	kept []kept
}

// openKeeper reads what was kept since the last run that succeeded. The first line of a path says how it was, the last one whose it is.
func openKeeper(dir string) (*keeper, error) {
	k := &keeper{dir: dir}
	f, err := os.Open(k.index())
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		var one kept
		if json.Unmarshal(scan.Bytes(), &one) != nil { // a line that was cut off is of a step that did not start
			continue
		}
		if at := k.find(one.Path); at >= 0 {
			k.kept[at].Step = one.Step
			continue
		}
		k.kept = append(k.kept, one)
	}
	return k, nil
}

func (k *keeper) index() string { return filepath.Join(k.dir, "index.jsonl") }

func (k *keeper) find(path string) int {
	return slices.IndexFunc(k.kept, func(one kept) bool { return one.Path == path })
}

// forget drops what was kept: the files are good as they are.
func (k *keeper) forget() error {
	if len(k.kept) == 0 {
		return nil
	}
	k.kept = nil
	// The index first: without it the copies mean nothing.
	return errors.Join(os.Remove(k.index()), os.RemoveAll(k.dir))
}

// keep remembers how a path is, before a step changes it. The first time counts.
func (k *keeper) keep(h *Host, step, path string) error {
	have := k.find(path)
	if have >= 0 && k.kept[have].Step == step {
		return nil
	}
	one := kept{Step: step, Path: path}
	if have < 0 {
		at, err := h.Path(path)
		if err != nil {
			return err
		}
		if one, err = k.look(at); err != nil {
			return err
		}
		one.Step, one.Path = step, path
	}
	if err := k.append(one); err != nil {
		return err
	}
	if have >= 0 {
		k.kept[have].Step = step
		return nil
	}
	k.kept = append(k.kept, one)
	return nil
}

// append writes a line of the index. It is on disk when append returns.
func (k *keeper) append(one kept) error {
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(k.index(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte("\n" + string(line) + "\n")) // the line before may have been cut off
	return errors.Join(err, f.Sync(), f.Close())
}

// look takes down what stands at a path, with a copy of its content.
func (k *keeper) look(at string) (kept, error) {
	info, err := os.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return kept{None: true}, nil
	}
	if err != nil {
		return kept{}, err
	}
	one := kept{Mode: info.Mode(), UID: -1, GID: -1}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		one.UID, one.GID = int(st.Uid), int(st.Gid)
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		one.Link, err = os.Readlink(at)
	case info.Mode().IsRegular():
		one.File = filepath.Join(k.dir, strconv.Itoa(len(k.kept)))
		err = copyFile(at, one.File)
	}
	return one, err
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := renameio.WriteFile(to, data, 0o600, renameio.WithTempDir(filepath.Dir(to))); err != nil {
		return err
	}
	return CopyAttributes(from, to)
}

// still reports that a path is as it was: the step failed before it changed anything.
func (o kept) still(h *Host) bool {
	at, err := h.Path(o.Path)
	if err != nil {
		return false
	}
	info, err := os.Lstat(at)
	if err != nil {
		return o.None && notThere(at)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if o.None || !ok || info.Mode() != o.Mode || int(st.Uid) != o.UID || int(st.Gid) != o.GID {
		return false
	}
	switch {
	case o.Link != "":
		now, err := os.Readlink(at)
		return err == nil && now == o.Link
	case o.File != "":
		was, err := os.ReadFile(o.File)
		now, other := os.ReadFile(at)
		return err == nil && other == nil && bytes.Equal(was, now)
	}
	return true
}

// putBack makes a path what it was. A directory that was not there stays when there is something in it: that is syscall.ENOTEMPTY.
func (o kept) putBack(h *Host) error {
	at, err := h.Path(o.Path)
	if err != nil {
		return err
	}
	switch {
	case o.None:
		err = os.Remove(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	case o.Link != "":
		err = renameio.Symlink(o.Link, at)
	case o.Mode.IsDir():
		err = o.putBackDir(at)
	default:
		err = o.putBackFile(at)
	}
	if err != nil {
		return err
	}
	return state.SyncDir(filepath.Dir(at))
}

// putBackDir gives a directory its owner and mode. A link that stands there now is not followed: it may lead anywhere.
func (o kept) putBackDir(at string) error {
	if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	fd, err := syscall.Open(at, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: at, Err: err}
	}
	dir := os.NewFile(uintptr(fd), at)
	return errors.Join(dir.Chown(o.UID, o.GID), dir.Chmod(o.Mode), dir.Close())
}

func (o kept) putBackFile(at string) error {
	data, err := os.ReadFile(o.File)
	if err != nil {
		return fmt.Errorf("its copy is gone: %w", err)
	}
	t, err := renameio.NewPendingFile(at, renameio.WithTempDir(filepath.Dir(at)), renameio.WithPermissions(0o600))
	if err != nil {
		return err
	}
	defer t.Cleanup()
	if _, err := t.Write(data); err != nil {
		return err
	}
	// The owner first: it clears setuid.
	if err := errors.Join(os.Lchown(t.Name(), o.UID, o.GID), os.Chmod(t.Name(), o.Mode), CopyAttributes(o.File, t.Name())); err != nil {
		return err
	}
	err = t.CloseAtomicallyReplace()
	if errors.Is(err, syscall.EBUSY) { // something is mounted on it
		return os.WriteFile(at, data, o.Mode.Perm())
	}
	return err
}
