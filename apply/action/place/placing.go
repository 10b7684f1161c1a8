package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/hostfile"
)

// Placing is how new content takes the place of a file: as a whole, by a rename, with the owner, mode, access lists and
// labels of the old one.
type Placing struct {
	Permissions `yaml:",inline"`
	// a command that must succeed before the file is replaced; %s is the path of a copy of it, with its name
	Validate string `yaml:"validate"`
	Backup   bool   `yaml:"backup"`   // keep the file that is replaced, in the state directory
	MakeDirs bool   `yaml:"makeDirs"` // make missing parents, mode 0755
}

// NewMode is the mode of a new file that says none.
const NewMode = 0o644

// NewDirMode is the mode of a new directory that says none.
const NewDirMode = 0o755

// CheckParams finds parameters that cannot be right: an *apply.ParamError.
func (p Placing) CheckParams() error {
	if p.Validate != "" && !strings.Contains(p.Validate, "%s") {
		return apply.BadParam("validate", "%%s is missing: it stands for the path of the candidate")
	}
	return p.Permissions.CheckMode()
}

// ReplaceWith gives the entry what fill writes. The old file is open: what is kept of it is not somebody else's by now.
// The name is for messages.
func (p Placing) ReplaceWith(
	ctx context.Context,
	h *apply.Host,
	name string,
	at *hostfile.Entry,
	old Replaced,
	w Wanted,
	fill func(io.Writer) error,
) error {
	c, err := p.candidate(ctx, h, name, at, old, w, fill)
	if err != nil {
		return err
	}
	defer c.Drop()
	return c.putDurable()
}

// Prepared is a new file beside its place, with owner and mode.
type Prepared struct {
	*hostfile.Candidate
	host *apply.Host
	name string
	at   *hostfile.Entry
	w    Wanted
	over bool // it replaces a regular file
}

// candidate writes what fill writes beside the entry. What validate looks at is a copy where nobody else can change it.
func (p Placing) candidate(
	ctx context.Context,
	h *apply.Host,
	name string,
	at *hostfile.Entry,
	old Replaced,
	w Wanted,
	fill func(io.Writer) error,
) (*Prepared, error) {
	if old.File != nil && p.Backup {
		if _, err := Backup(h, name, at); err != nil {
			return nil, fmt.Errorf("backup: %w", err)
		}
	}
	w = w.orOf(old.Info)
	if p.Validate != "" {
		checked, err := p.validated(ctx, h, name, w, fill)
		if err != nil {
			return nil, err
		}
		defer checked.done()
		fill = checked.copyTo
	}
	file, err := at.Candidate()
	if err != nil {
		return nil, err
	}
	c := &Prepared{file, h, name, at, w, old.File != nil}
	if err = fill(file); err == nil {
		err = old.dress(file, w)
	}
	if err != nil {
		c.Drop()
		return nil, c.untouched(err)
	}
	return c, nil
}

// untouched says that a failure left the old file as it was.
func (c *Prepared) untouched(err error) error {
	return fmt.Errorf("%s: %w; the old file is untouched", c.name, err)
}

// putDurable gives a candidate that need not be durable yet its name, durable with the content.
func (c *Prepared) putDurable() error {
	if err := c.Sync(); err != nil {
		return c.untouched(err)
	}
	if err := c.Put(); err != nil {
		return err
	}
	return c.at.SyncDir()
}

// Put gives a durable candidate its name.
func (c *Prepared) Put() error {
	err := c.PlaceUnsynced()
	switch {
	case errors.Is(err, syscall.EBUSY) && c.over: // something is mounted on it
		return overwrite(c.host, c.name, c.at, c.Candidate, c.w)
	case err != nil:
		return c.untouched(err)
	}
	return nil
}

// Replaced is the regular file that new content takes the place of. A link is not followed: it may lead anywhere.
type Replaced struct {
	Info fs.FileInfo // nil: there is none
	File *os.File    // likewise
}

// OpenOld opens the regular file of an entry. Where there is none, or something else, what is returned has neither Info
// nor File.
func OpenOld(at *hostfile.Entry) (Replaced, error) {
	info, err := at.Lstat()
	if hostfile.NotThere(err) || err == nil && !info.Mode().IsRegular() {
		return Replaced{}, nil
	}
	if err != nil {
		return Replaced{}, err
	}
	f, err := at.Open()
	if err != nil {
		return Replaced{}, err
	}
	now, err := f.Stat()
	return Replaced{now, f}, err
}

// Close closes the file, if there is one.
func (o Replaced) Close() {
	if o.File != nil {
		_ = o.File.Close() // it was only read
	}
}

// dress gives the candidate the attributes of the old file, and the owner and mode that are wanted. The mode comes
// last: an access list changes it. What a user allowed others for a file that is not the user's any more is not kept.
func (o Replaced) dress(c *hostfile.Candidate, w Wanted) error {
	owner := w
	owner.SetMode = false
	if err := owner.Set(c); err != nil {
		return err
	}
	if o.File != nil && w.keepsOwner(o.Info) {
		if err := hostfile.CopyAttributes(o.File, c.File); err != nil {
			return err
		}
	}
	w.UID, w.GID = -1, -1
	return w.Set(c)
}

// keepsOwner reports that a file does not get another owner, or was root's before.
func (w Wanted) keepsOwner(old fs.FileInfo) bool {
	if w.UID < 0 {
		return true
	}
	have := hostfile.Owner(old)
	return w.UID == have || have == 0
}

// Parents makes the directories above an entry, or says that they are missing.
func (p Placing) Parents(name string, at *hostfile.Entry) error {
	return MakeParents(name, at, p.MakeDirs)
}

// MakeParents makes the directories above an entry with mode 0755, or returns the *apply.LackError that says that they
// are missing.
func MakeParents(name string, at *hostfile.Entry, make bool) error {
	if make {
		return at.MakeParents(0o755)
	}
	if lack := Lacks(name, at, false); lack != nil {
		return lack
	}
	return nil
}

// Lacks is the directory in which a path would be made and which is not there; nil where it is, or is made with it.
func Lacks(name string, at *hostfile.Entry, made bool) *apply.LackError {
	if made || at.HasParent() {
		return nil
	}
	dir := filepath.Dir(filepath.Clean(name))
	return &apply.LackError{
		Path: dir,
		Text: fmt.Sprintf(
			"there is no directory %s: add makeDirs: true, or a file.directory step before this one",
			dir,
		),
	}
}

// orOf fills what is not asked for from the file that is replaced, or from the defaults of a new one.
func (w Wanted) orOf(old fs.FileInfo) Wanted {
	st, regular := hostfile.Stat(old)
	regular = regular && old.Mode().IsRegular()
	if !w.SetMode {
		w.SetMode = true
		if w.Mode == 0 {
			w.Mode = NewMode
		}
		if regular && w.keepsOwner(old) {
			w.Mode = old.Mode() & modeMask
		}
	}
	if regular && w.UID < 0 {
		w.UID = int(st.Uid)
	}
	if regular && w.GID < 0 {
		w.GID = int(st.Gid)
	}
	return w
}

// maxKept bounds a copy of a file that is replaced.
const maxKept = 1 << 30

// Backup copies a file into the state directory, named by its path and the time, and gives the copy's path.
func Backup(h *apply.Host, name string, from *hostfile.Entry) (string, error) {
	dir := filepath.Join(h.Backups, filepath.Clean(name)) // clean: no .. leads out of it
	now := time.Now().UTC().Format("20060102T150405.000Z")
	at, err := hostfile.Root("/").Entry(filepath.Join(dir, now))
	if err != nil {
		return "", err
	}
	defer func() { at.Close() }()
	if err := at.MakeParents(0o700); err != nil {
		return "", err
	}
	for i := 2; at.Exists(); i++ { // no backup replaces another
		at.Close()
		if at, err = hostfile.Root("/").Entry(filepath.Join(dir, fmt.Sprintf("%s-%d", now, i))); err != nil {
			return "", err
		}
	}
	c, err := at.Candidate()
	if err != nil {
		return "", err
	}
	defer c.Drop()
	if err := from.CopyTo(c, maxKept); err != nil {
		return "", err
	}
	if err := c.Place(); err != nil {
		return "", err
	}
	return at.Path(), at.SyncDir()
}

// shellQuote makes a text one word of a shell command.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
