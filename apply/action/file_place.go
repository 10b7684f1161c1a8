package action

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

// Placing is how new content takes the place of a file: as a whole, by a rename, with the owner, mode, access lists and labels of the
// old one.
type Placing struct {
	Permissions `yaml:",inline"`
	Validate    string `yaml:"validate"` // a command that must succeed before the file is replaced; %s is the path of a copy of it, with its name
	Backup      bool   `yaml:"backup"`   // keep the file that is replaced, in the state directory
	MakeDirs    bool   `yaml:"makeDirs"` // make missing parents, mode 0755
}

// newFileMode is the mode of a new file that says none.
const newFileMode = 0o644

func (p Placing) check() error {
	if p.Validate != "" && !strings.Contains(p.Validate, "%s") {
		return apply.BadParam("validate", "%%s is missing: it stands for the path of the candidate")
	}
	return p.Permissions.check()
}

// replace gives the entry what fill writes. The old file is open: what is kept of it is not somebody else's by now. The name is for messages.
func (p Placing) replace(ctx context.Context, h *apply.Host, name string, at *hostfile.Entry, old replacedFile, w wanted, fill func(io.Writer) error) error {
	c, err := p.candidate(ctx, h, name, at, old, w, fill)
	if err != nil {
		return err
	}
	defer c.Drop()
	return c.putDurable()
}

// candidate is a new file beside its place, with owner and mode.
type candidate struct {
	*hostfile.Candidate
	host *apply.Host
	name string
	at   *hostfile.Entry
	w    wanted
	over bool // it replaces a regular file
}

// candidate writes what fill writes beside the entry. What validate looks at is a copy where nobody else can change it.
func (p Placing) candidate(ctx context.Context, h *apply.Host, name string, at *hostfile.Entry, old replacedFile, w wanted, fill func(io.Writer) error) (*candidate, error) {
	if old.file != nil && p.Backup {
		if _, err := backup(h, name, at); err != nil {
			return nil, fmt.Errorf("backup: %w", err)
		}
	}
	w = w.orOf(old.info)
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
	c := &candidate{file, h, name, at, w, old.file != nil}
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
func (c *candidate) untouched(err error) error {
	return fmt.Errorf("%s: %w; the old file is untouched", c.name, err)
}

// putDurable gives a candidate that need not be durable yet its name, durable with the content.
func (c *candidate) putDurable() error {
	if err := c.Sync(); err != nil {
		return c.untouched(err)
	}
	if err := c.put(); err != nil {
		return err
	}
	return c.at.SyncDir()
}

// put gives a durable candidate its name.
func (c *candidate) put() error {
	err := c.PlaceUnsynced()
	switch {
	case errors.Is(err, syscall.EBUSY) && c.over: // something is mounted on it
		return overwrite(c.host, c.name, c.at, c.Candidate, c.w)
	case err != nil:
		return c.untouched(err)
	}
	return nil
}

// replacedFile is the regular file that new content takes the place of. A link is not followed: it may lead anywhere.
type replacedFile struct {
	info fs.FileInfo // nil: there is none
	file *os.File
}

func oldFile(at *hostfile.Entry) (replacedFile, error) {
	info, err := at.Lstat()
	if hostfile.NotThere(err) || err == nil && !info.Mode().IsRegular() {
		return replacedFile{}, nil
	}
	if err != nil {
		return replacedFile{}, err
	}
	f, err := at.Open()
	if err != nil {
		return replacedFile{}, err
	}
	now, err := f.Stat()
	return replacedFile{now, f}, err
}

func (o replacedFile) close() {
	if o.file != nil {
		_ = o.file.Close() // it was only read
	}
}

// dress gives the candidate the attributes of the old file, and the owner and mode that are wanted. The mode comes last: an access list
// changes it. What a user allowed others for a file that is not the user's any more is not kept.
func (o replacedFile) dress(c *hostfile.Candidate, w wanted) error {
	owner := w
	owner.setMode = false
	if err := owner.set(c); err != nil {
		return err
	}
	if o.file != nil && w.keepsOwner(o.info) {
		if err := hostfile.CopyAttributes(o.file, c.File); err != nil {
			return err
		}
	}
	w.uid, w.gid = -1, -1
	return w.set(c)
}

// keepsOwner reports that a file does not get another owner, or was root's before.
func (w wanted) keepsOwner(old fs.FileInfo) bool {
	if w.uid < 0 {
		return true
	}
	have := hostfile.Owner(old)
	return w.uid == have || have == 0
}

// parents makes the directories above an entry, or says that they are missing.
func (p Placing) parents(name string, at *hostfile.Entry) error {
	return makeParents(name, at, p.MakeDirs)
}

func makeParents(name string, at *hostfile.Entry, make bool) error {
	if make {
		return at.MakeParents(0o755)
	}
	if lack := lacksParent(name, at, false); lack != nil {
		return lack
	}
	return nil
}

// lacksParent is the directory in which a path would be made and which is not there; nil where it is, or is made with it.
func lacksParent(name string, at *hostfile.Entry, made bool) *apply.LackError {
	if made || at.HasParent() {
		return nil
	}
	dir := filepath.Dir(filepath.Clean(name))
	return &apply.LackError{Path: dir, Text: fmt.Sprintf("there is no directory %s: add makeDirs: true, or a file.directory step before this one", dir)}
}

// orOf fills what is not asked for from the file that is replaced, or from the defaults of a new one.
func (w wanted) orOf(old fs.FileInfo) wanted {
	st, regular := hostfile.Stat(old)
	regular = regular && old.Mode().IsRegular()
	if !w.setMode {
		w.setMode = true
		if w.mode == 0 {
			w.mode = newFileMode
		}
		if regular && w.keepsOwner(old) {
			w.mode = old.Mode() & modeMask
		}
	}
	if regular && w.uid < 0 {
		w.uid = int(st.Uid)
	}
	if regular && w.gid < 0 {
		w.gid = int(st.Gid)
	}
	return w
}

// maxKept bounds a copy of a file that is replaced.
const maxKept = 1 << 30

// backup copies a file into the state directory, named by its path and the time, and gives the copy's path.
func backup(h *apply.Host, name string, from *hostfile.Entry) (string, error) {
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
