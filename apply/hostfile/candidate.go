package hostfile

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Candidate is a new file beside the one that it is going to replace. It is written, and gets owner, mode and
// attributes, through its descriptor: what somebody puts under its name meanwhile is not touched.
type Candidate struct {
	*os.File
	at     *Entry
	to     *Entry
	made   Info // as it was made: which file it is does not change
	placed bool
}

// Candidate makes an empty file for its owner alone. The dot hides it from programs that read every file of a
// directory; the suffix is kept for those that go by it. Its name is always the same, so that what a killed run left is
// removed by the next.
func (e *Entry) Candidate() (*Candidate, error) {
	return e.CandidateNamed(besides(e.base))
}

// CandidateNamed is Candidate under another name.
func (e *Entry) CandidateNamed(name string) (*Candidate, error) {
	if e.gone != nil {
		return nil, failed("create", e.path, e.gone)
	}
	at := nextTo(e, name)
	f, err := create(at, unix.O_RDWR, 0o600)
	if errors.Is(err, unix.EEXIST) { // what a killed run left
		if err := at.Remove(); err != nil && !errors.Is(err, unix.ENOENT) {
			return nil, err
		}
		f, err = create(at, unix.O_RDWR, 0o600)
	}
	if err != nil {
		return nil, err
	}
	c := &Candidate{File: f, at: at, to: e}
	if c.made, err = statFD(int(f.Fd()), name); err != nil {
		c.Drop()
		return nil, failed("stat", at.path, err)
	}
	return c, nil
}

// disown takes away what a directory of another user hands down to what is made in it: its group and its access list.
func disown(e *Entry, fd int) error {
	private, err := e.Private()
	if err != nil || private {
		return err
	}
	err = unix.Fremovexattr(fd, accessList)
	if err != nil && !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.EOPNOTSUPP) {
		return failed("removexattr", e.path, err)
	}
	info, err := statFD(fd, e.base)
	if err != nil || int(info.st.Gid) == os.Getegid() {
		return failed("stat", e.path, err)
	}
	return failed("chown", e.path, unix.Fchown(fd, -1, os.Getegid()))
}

// besides is the name of a file's candidate.
func besides(base string) string {
	const longest = 200 // names have 255 bytes at most
	suffix := filepath.Ext(base)
	if len(base) > longest || suffix == base {
		base, suffix = base[:min(len(base), longest)], ""
	}
	return "." + strings.TrimSuffix(base, suffix) + ".pullet" + suffix
}

// CandidateNear is a file beside the entry, or in the deepest directory above it that is there. It gets no other name:
// it is dropped.
func (e *Entry) CandidateNear(name string) (*Candidate, error) {
	if e.dir == nil {
		return nil, failed("create", e.path, e.gone)
	}
	return nextTo(e, name).CandidateNamed(name)
}

// Set gives the candidate owner and mode.
func (c *Candidate) Set(a Attributes) error {
	if a.UID < 0 && a.GID < 0 && !a.SetMode {
		return nil
	}
	info, err := statFD(int(c.Fd()), c.at.base)
	if err == nil {
		err = setFD(int(c.Fd()), info, a)
	}
	return failed("chown", c.at.path, err)
}

// SetTime sets when the candidate was changed last.
func (c *Candidate) SetTime(t time.Time) error {
	ts := unix.NsecToTimespec(t.UnixNano())
	name := "/proc/self/fd/" + strconv.Itoa(int(c.Fd())) // nobody else can change that name
	return failed("utimensat", c.at.path, unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{ts, ts}, 0))
}

// ReadOnly ends the writing. The kernel executes no program that somebody has open to write.
func (c *Candidate) ReadOnly() error {
	name := "/proc/self/fd/" + strconv.Itoa(int(c.Fd())) // nobody else can change that name
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return failed("open", c.at.path, err)
	}
	written := c.File
	c.File = os.NewFile(uintptr(fd), written.Name())
	return written.Close()
}

// Place makes the candidate durable and gives it its name. The name is durable after SyncDir of the entry.
func (c *Candidate) Place() error {
	if err := c.Sync(); err != nil {
		return err
	}
	return c.PlaceUnsynced()
}

// PlaceUnsynced is Place without making the candidate durable: SyncAll did that before, or what comes of a power loss
// is found by a record that is written later.
func (c *Candidate) PlaceUnsynced() error {
	if err := renamed(c.at, c.to, c.made); err != nil {
		return err
	}
	c.placed = true
	return nil
}

// renamed renames what is open under the entry's name, and finds out whether it was that which got the name.
func renamed(e *Entry, to *Entry, open Info) error {
	err := again(func() error { return unix.Renameat(e.dir.fd, e.base, to.dir.fd, to.base) })
	if err != nil {
		return failed("rename", to.path, err)
	}
	now, err := to.Lstat()
	if err != nil {
		return err
	}
	if !open.same(now) {
		return replaced(to.path)
	}
	return nil
}

// Drop closes the candidate, and removes it unless it has its place.
func (c *Candidate) Drop() {
	_ = c.Close() // it is on disk, or not wanted
	if !c.placed {
		_ = c.at.Remove() // the next candidate takes its place
	}
}
