package apply

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/pullet/pullet/apply/hostfile"
)

// savedPath is how a path was before the run changed it.
type savedPath struct {
	Step string      `json:"step"` // its id
	Path string      `json:"path"` // as the repository names it
	Mode fs.FileMode `json:"mode"`
	UID  int         `json:"uid"`
	GID  int         `json:"gid"`
	Link string      `json:"link,omitempty"` // what a symbolic link says
	File string      `json:"file,omitempty"` // where the content of a file is kept
	None bool        `json:"none,omitempty"` // there was nothing
}

// keeper keeps what upgrades change in the files of jobs that are put back when an upgrade fails: as they were when one
// succeeded last. It is on disk, so that a run which was killed and goes on still knows.
type keeper struct {
	dir  string
	kept []savedPath
}

// openKeeper reads what was kept since the last run that succeeded. The first line of a path says how it was, the last
// one whose it is.
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
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		var one savedPath
		if json.Unmarshal(scan.Bytes(), &one) != nil { // a line that was cut off is of a step that did not start
			continue
		}
		if at := k.find(one.Path); at >= 0 {
			k.kept[at].Step = one.Step
			continue
		}
		k.kept = append(k.kept, one)
	}
	return k, scan.Err()
}

func (k *keeper) index() string { return filepath.Join(k.dir, "index.jsonl") }

func (k *keeper) find(path string) int {
	return slices.IndexFunc(k.kept, func(one savedPath) bool { return one.Path == path })
}

// forget drops what was kept: the files are good as they are.
func (k *keeper) forget() error {
	if len(k.kept) == 0 {
		return nil
	}
	// The index first, and nothing without it: the copies mean nothing then, and it means nothing without them.
	if err := os.Remove(k.index()); err != nil {
		return err
	}
	k.kept = nil
	return os.RemoveAll(k.dir)
}

// keep remembers how a path is, before a step changes it. The first time counts.
func (k *keeper) keep(h *Host, step, path string) error {
	have := k.find(path)
	if have >= 0 && k.kept[have].Step == step {
		return nil
	}
	one := savedPath{Step: step, Path: path}
	if have < 0 {
		at, err := h.Entry(path)
		if err != nil {
			return err
		}
		defer at.Close()
		if one, err = k.backup(at); err != nil {
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
func (k *keeper) append(one savedPath) error {
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

// maxKept bounds the copy of a file.
const maxKept = 1 << 30

// backup takes down what stands at a path, with a copy of its content.
func (k *keeper) backup(at *hostfile.Entry) (savedPath, error) {
	info, err := at.Lstat()
	if hostfile.NotThere(err) {
		return savedPath{None: true}, nil
	}
	if err != nil {
		return savedPath{}, err
	}
	one := savedPathOf(info)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		one.Link, err = at.Readlink()
	case info.Mode().IsRegular():
		return k.copy(at, filepath.Join(k.dir, strconv.Itoa(len(k.kept))))
	}
	return one, err
}

func savedPathOf(info fs.FileInfo) savedPath {
	one := savedPath{Mode: info.Mode(), UID: -1, GID: -1}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		one.UID, one.GID = int(st.Uid), int(st.Gid)
	}
	return one
}

// copy keeps a file. Owner and mode are those of the file whose content is kept, whatever stands at the path by then.
func (k *keeper) copy(from *hostfile.Entry, to string) (savedPath, error) {
	f, err := from.Open()
	if err != nil {
		return savedPath{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return savedPath{}, err
	}
	if info.Size() > maxKept {
		return savedPath{}, fmt.Errorf("it has %d bytes, more than the %d that are kept", info.Size(), maxKept)
	}
	one := savedPathOf(info)
	one.File = to
	at, err := hostfile.Root("/").Entry(to)
	if err != nil {
		return savedPath{}, err
	}
	defer at.Close()
	if err := at.MakeParents(0o700); err != nil {
		return savedPath{}, err
	}
	c, err := at.Candidate()
	if err != nil {
		return savedPath{}, err
	}
	defer c.Drop()
	if _, err := io.Copy(c, io.LimitReader(f, maxKept)); err != nil {
		return savedPath{}, err
	}
	if err := errors.Join(hostfile.CopyAttributes(f, c.File), c.Place()); err != nil {
		return savedPath{}, err
	}
	return one, at.SyncDir()
}

// still reports that a path is as it was: the step failed before it changed anything.
func (o savedPath) still(h *Host) bool {
	at, err := h.Entry(o.Path)
	if err != nil {
		return false
	}
	defer at.Close()
	info, err := at.Lstat()
	if err != nil {
		return o.None && hostfile.NotThere(err)
	}
	now := savedPathOf(info)
	if o.None || now.Mode != o.Mode || now.UID != o.UID || now.GID != o.GID {
		return false
	}
	switch {
	case o.Link != "":
		now, err := at.Readlink()
		return err == nil && now == o.Link
	case o.File != "":
		return o.sameContent(at)
	}
	return true
}

func (o savedPath) sameContent(at *hostfile.Entry) bool {
	was, err := hostfile.Root("/").Entry(o.File)
	if err != nil {
		return false
	}
	defer was.Close()
	one, two := sha256.New(), sha256.New()
	if was.CopyTo(one, maxKept) != nil || at.CopyTo(two, maxKept) != nil {
		return false
	}
	return bytes.Equal(one.Sum(nil), two.Sum(nil))
}

// putBack makes a path what it was. A directory that was not there stays when there is something in it: that is
// syscall.ENOTEMPTY.
func (o savedPath) putBack(h *Host) error {
	at, err := h.Entry(o.Path)
	if err != nil {
		return err
	}
	defer at.Close()
	switch {
	case o.None:
		if err = at.Remove(); hostfile.NotThere(err) {
			return nil
		}
	case o.Link != "":
		err = at.Symlink(o.Link, o.UID, o.GID)
	case o.Mode.IsDir():
		err = o.putBackDir(at)
	default:
		err = o.putBackFile(at)
	}
	if err != nil {
		return err
	}
	return at.SyncDir()
}

// putBackDir gives a directory its owner and mode. A link that stands there now is not followed: it may lead anywhere.
func (o savedPath) putBackDir(at *hostfile.Entry) error {
	dir, err := at.Dir()
	if errors.Is(err, fs.ErrNotExist) {
		dir, err = at.Mkdir(0o700)
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Set(hostfile.Attributes{UID: o.UID, GID: o.GID, Mode: o.Mode, SetMode: true})
}

func (o savedPath) putBackFile(at *hostfile.Entry) error {
	copied, err := hostfile.Root("/").Entry(o.File)
	if err != nil {
		return err
	}
	defer copied.Close()
	from, err := copied.Open()
	if err != nil {
		return fmt.Errorf("its copy is gone: %w", err)
	}
	defer from.Close()
	c, err := at.Candidate()
	if err != nil {
		return err
	}
	defer c.Drop()
	if _, err := io.Copy(c, from); err != nil {
		return err
	}
	// The owner first: it clears setuid. The mode last: an access list changes it.
	err = errors.Join(c.Set(hostfile.Attributes{UID: o.UID, GID: o.GID}), hostfile.CopyAttributes(from, c.File),
		c.Set(hostfile.Attributes{UID: -1, GID: -1, Mode: o.Mode, SetMode: true}))
	if err != nil {
		return err
	}
	err = c.Place()
	if errors.Is(err, syscall.EBUSY) { // something is mounted on it
		return o.writeOver(at, c.File)
	}
	return err
}

// writeOver gives a file its old content where it stands.
func (o savedPath) writeOver(at *hostfile.Entry, from *os.File) error {
	to, err := at.OpenWrite()
	if err != nil {
		return err
	}
	defer to.Close()
	n, err := io.Copy(to, io.NewSectionReader(from, 0, math.MaxInt64))
	return errors.Join(err, to.Truncate(n), to.Sync())
}
