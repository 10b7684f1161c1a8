package apply

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// openKeeper reads what was kept since the last run that succeeded.
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
		if json.Unmarshal(scan.Bytes(), &one) == nil { // a line that was cut off is of a step that did not start
			k.kept = append(k.kept, one)
		}
	}
	return k, nil
}

func (k *keeper) index() string { return filepath.Join(k.dir, "index.jsonl") }

// forget drops what was kept: the files are good as they are.
func (k *keeper) forget() error {
	if len(k.kept) == 0 {
		return nil
	}
	k.kept = nil
	return os.RemoveAll(k.dir)
}

// keep remembers how a path is, before a step changes it. The first time counts.
func (k *keeper) keep(h *Host, step, path string) error {
	for _, one := range k.kept {
		if one.Path == path {
			return nil
		}
	}
	at, err := h.Path(path)
	if err != nil {
		return err
	}
	one, err := k.look(at)
	if err != nil {
		return err
	}
	one.Step, one.Path = step, path
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
	_, err = f.Write(append(line, '\n'))
	k.kept = append(k.kept, one)
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
	return renameio.WriteFile(to, data, 0o600, renameio.WithTempDir(filepath.Dir(to)))
}

// putBack makes a path what it was.
func (o kept) putBack(h *Host) error {
	at, err := h.Path(o.Path)
	if err != nil {
		return err
	}
	switch {
	case o.None: // a directory that others filled since stays
		err = os.Remove(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	case o.Link != "":
		err = renameio.Symlink(o.Link, at)
	case o.Mode.IsDir():
		err = os.MkdirAll(at, o.Mode.Perm())
	default:
		err = o.putBackFile(at)
	}
	if err != nil {
		return err
	}
	if o.Mode.IsDir() {
		if err := errors.Join(os.Lchown(at, o.UID, o.GID), os.Chmod(at, o.Mode)); err != nil {
			return err
		}
	}
	return state.SyncDir(filepath.Dir(at))
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
	if err := errors.Join(os.Lchown(t.Name(), o.UID, o.GID), os.Chmod(t.Name(), o.Mode)); err != nil { // the owner first: it clears setuid
		return err
	}
	return t.CloseAtomicallyReplace()
}
