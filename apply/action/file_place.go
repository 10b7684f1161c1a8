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
	"github.com/pullet/pullet/state"
)

// Placing is how new content takes the place of a file: as a whole, by a rename, with the owner, mode, access lists and labels of the
// old one.
type Placing struct {
	Permissions `yaml:",inline"`
	Validate    string `yaml:"validate"` // a command that must succeed before the file is replaced; %s is the candidate's path
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

// place gives the file at path what fill writes: a candidate beside it gets owner and mode, is validated, and is renamed into place.
// The name is for messages.
func (p Placing) place(ctx context.Context, h *apply.Host, name, path string, w wanted, fill func(io.Writer) error) error {
	old, err := os.Lstat(path)
	if err != nil {
		old = nil
	}
	regular := old != nil && old.Mode().IsRegular() // a link is not followed: it may lead out of the root
	if regular && p.Backup {
		if _, err := backup(h, name, path); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
	}
	c, err := newCandidate(path)
	if err != nil {
		return err
	}
	defer c.drop()
	if err := fill(c); err != nil {
		return fmt.Errorf("%s: %w; the old file is untouched", name, err)
	}
	if err := c.dress(path, old, w.orOf(old)); err != nil {
		return fmt.Errorf("%s: %w; the old file is untouched", name, err)
	}
	if p.Validate != "" {
		if err := p.validate(ctx, h, name, c.Name()); err != nil {
			return err
		}
	}
	err = c.replace(path)
	if errors.Is(err, syscall.EBUSY) && regular { // something is mounted on it
		return overwrite(h, name, path, c.Name(), w)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; the old file is untouched", name, err)
	}
	return state.SyncDir(filepath.Dir(path))
}

// validate runs the command on the candidate.
func (p Placing) validate(ctx context.Context, h *apply.Host, name, candidate string) error {
	line := strings.ReplaceAll(p.Validate, "%s", shellQuote(candidate))
	out, err := h.Run(ctx, apply.Command{Args: apply.Shell(line)})
	if err != nil {
		return fmt.Errorf("validate: %w; the old file is untouched", err)
	}
	if out.ExitCode != 0 {
		return fmt.Errorf("validate: %s; the old file is untouched", strings.ReplaceAll(out.Failure(), candidate, name))
	}
	return nil
}

// parents makes the directories above a path, or says that they are missing.
func (p Placing) parents(name, path string) error { return makeParents(name, path, p.MakeDirs) }

func makeParents(name, path string, make bool) error {
	dir := filepath.Dir(path)
	if make {
		return os.MkdirAll(dir, 0o755)
	}
	if lack := lacksParent(name, path, false); lack != nil {
		return lack
	}
	return nil
}

// lacksParent is the directory in which a path would be made and which is not there; nil where it is, or is made with it.
func lacksParent(name, path string, made bool) *apply.LackError {
	if made || exists(filepath.Dir(path)) {
		return nil
	}
	dir := filepath.Dir(filepath.Clean(name))
	return &apply.LackError{Path: dir, Text: fmt.Sprintf("there is no directory %s: add makeDirs: true, or a file.directory step before this one", dir)}
}

// candidate is a file beside the one that it is going to replace.
type candidate struct {
	*os.File
	placed bool
}

// newCandidate makes an empty candidate, for its owner alone. The dot hides it from programs that read every file of a directory; the
// suffix is kept for checks that go by it. Its name is always the same, so that what a killed run left is removed by the next.
func newCandidate(path string) (*candidate, error) {
	at := besides(path)
	if err := os.Remove(at); err != nil && !missing(err) {
		return nil, err
	}
	f, err := os.OpenFile(at, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	return &candidate{File: f}, nil
}

// besides is the name of a path's candidate.
func besides(path string) string {
	const longest = 200 // names have 255 bytes at most
	base := filepath.Base(path)
	suffix := filepath.Ext(base)
	if len(base) > longest || suffix == base {
		base, suffix = base[:min(len(base), longest)], ""
	}
	return filepath.Join(filepath.Dir(path), "."+strings.TrimSuffix(base, suffix)+".pullet"+suffix)
}

// dress gives the candidate the attributes of the old file, and the owner and mode that are wanted. The mode comes last: an access list
// changes it.
func (c *candidate) dress(path string, old fs.FileInfo, w wanted) error {
	owner := w
	owner.setMode = false
	if err := owner.set(c.Name()); err != nil {
		return err
	}
	if old != nil && old.Mode().IsRegular() {
		if err := apply.CopyAttributes(path, c.Name()); err != nil {
			return err
		}
	}
	w.uid, w.gid = -1, -1
	return w.set(c.Name())
}

// replace makes the candidate durable and gives it its name.
func (c *candidate) replace(path string) error {
	if err := c.Sync(); err != nil {
		return err
	}
	if err := os.Rename(c.Name(), path); err != nil {
		return err
	}
	c.placed = true
	return nil
}

// drop closes the candidate, and removes it unless it has its place.
func (c *candidate) drop() {
	_ = c.Close() // it is on disk, or not wanted
	if !c.placed {
		_ = os.Remove(c.Name())
	}
}

// orOf fills what is not asked for from the file that is replaced, or from the defaults of a new one.
func (w wanted) orOf(old fs.FileInfo) wanted {
	st, regular := statOf(old)
	regular = regular && old.Mode().IsRegular()
	if !w.setMode {
		w.setMode = true
		if w.mode == 0 {
			w.mode = newFileMode
		}
		if regular {
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

func statOf(info fs.FileInfo) (*syscall.Stat_t, bool) {
	if info == nil {
		return nil, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return st, ok
}

// backup copies a file into the state directory, named by its path and the time, and says where it is.
func backup(h *apply.Host, name, path string) (string, error) {
	dir := filepath.Join(h.Backups, filepath.Clean(name)) // clean: no .. leads out of it
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	now := filepath.Join(dir, time.Now().UTC().Format("20060102T150405.000Z"))
	at := now
	for i := 2; exists(at); i++ { // no backup replaces another
		at = fmt.Sprintf("%s-%d", now, i)
	}
	c, err := newCandidate(at)
	if err != nil {
		return "", err
	}
	defer c.drop()
	if err := copyFrom(c, path); err != nil {
		return "", err
	}
	if err := c.replace(at); err != nil {
		return "", err
	}
	return at, state.SyncDir(dir)
}

// copyFrom writes the content of a file.
func copyFrom(to io.Writer, path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(to, f)
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// shellQuote makes a text one word of a shell command.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
