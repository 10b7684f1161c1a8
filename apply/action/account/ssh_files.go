package account

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/passwd"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// maxSSHFile is the largest file of a user that is read.
const maxSSHFile = 4 << 20

// The modes of what is in a user's .ssh, as sshd wants them.
const (
	sshDirMode  fs.FileMode = 0o700
	sshFileMode fs.FileMode = 0o600
)

// What an earlier step may be about to make.
var (
	errNoUser = errors.New("make it with a user.present step before this one")
	errNoHome = errors.New("make it with createHome: true of user.present")
)

// sshFile is a file in the .ssh of a user. The agent is root and the user is not, and may put links anywhere in its
// home while the agent works: so the home and .ssh are opened once, no link in them is followed, and only what is the
// user's own is read or written.
type sshFile struct {
	user, name string // deploy, authorized_keys
	home       string // as the passwd file says
	uid, gid   int
	at         *os.Root    // the home
	dir        *os.Root    // .ssh; nil: not there
	dirInfo    fs.FileInfo // of .ssh
	info       fs.FileInfo // of the file; nil: not there
	data       []byte      // what is in it
}

// onlyDirectory, behind a path, lets the kernel open nothing but a directory: os.Root opens a pipe that a user
// exchanged for one as well, and waits there for a writer.
const onlyDirectory = "/."

// openSSH opens a user's .ssh, if it is there, and reads a file in it. What it gives is to be closed.
func openSSH(h *apply.Host, user, name string) (*sshFile, error) {
	f := &sshFile{user: user, name: name}
	err := f.openHome(h)
	if err == nil {
		err = f.openDir()
	}
	if err == nil && f.dir != nil {
		err = hostfile.WhileReplaced(f.read)
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// close closes what is open.
func (f *sshFile) close() error {
	var errs []error
	for _, r := range []*os.Root{f.dir, f.at} {
		if r != nil {
			errs = append(errs, r.Close())
		}
	}
	return errors.Join(errs...)
}

// path is a path in the home, for messages.
func (f *sshFile) path(elem ...string) string {
	return filepath.Join(append([]string{f.home}, elem...)...)
}

// openHome finds the user and opens its home, which must be its own; or root's, where nobody else could have put it
// there.
func (f *sshFile) openHome(h *apply.Host) error {
	all, err := passwd.Read(h, "passwd")
	if err != nil {
		return err
	}
	line := all.Named(f.user)
	if line == nil {
		return fmt.Errorf("there is no user %q on this host: %w", f.user, errNoUser)
	}
	uid, ok := line.Number(passwd.ID)
	gid, ok2 := line.Number(passwd.GID)
	if f.uid, f.gid, f.home = uid, gid, line.Field(passwd.Home); !ok || !ok2 || filepath.Clean(f.home) == "/" {
		return fmt.Errorf("user %s has no home of its own: /etc/passwd says %q", f.user, f.home)
	}
	path, err := h.Resolve(f.home)
	if err != nil {
		return err
	}
	f.at, err = os.OpenRoot(path + onlyDirectory)
	switch {
	case hostfile.NotThere(err):
		return fmt.Errorf("there is no directory %s, the home of %s: %w", f.home, f.user, errNoHome)
	case err != nil:
		return err
	}
	info, err := f.at.Stat(".")
	if err != nil {
		return err
	}
	owner := hostfile.Owner(info)
	if owner == f.uid || owner == os.Geteuid() && onlyOwn(h.Root, filepath.Dir(path)) {
		return nil
	}
	return fmt.Errorf(
		"%s, the home of %s, belongs to uid %d: give it to %s with file.directory first",
		f.home,
		f.user,
		owner,
		f.user,
	)
}

// onlyOwn reports that nobody but the agent's user can change what lies in the directories from the root to a
// directory.
func onlyOwn(root, dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || hostfile.Owner(info) != os.Geteuid() || info.Mode()&0o022 != 0 {
			return false
		}
		if dir == filepath.Clean(root) || dir == "/" {
			return true
		}
	}
}

// openDir opens .ssh, which must be a directory of the user's.
func (f *sshFile) openDir() error {
	const name = ".ssh"
	found, err := f.at.Lstat(name)
	switch {
	case hostfile.NotThere(err):
		return nil
	case err != nil:
		return err
	case !found.IsDir():
		return fmt.Errorf(
			"%s is no directory (%s): nothing is written through it; remove it first",
			f.path(name),
			found.Mode().Type(),
		)
	}
	if f.dir, err = f.at.OpenRoot(name + onlyDirectory); err != nil {
		return err
	}
	if f.dirInfo, err = f.dir.Stat("."); err != nil {
		return err
	}
	switch owner := hostfile.Owner(f.dirInfo); {
	case !os.SameFile(found, f.dirInfo):
		return fmt.Errorf("%s %w", f.path(name), hostfile.ErrReplaced)
	case owner != f.uid:
		return fmt.Errorf("%s belongs to uid %d: give it to %s with file.directory first", f.path(name), owner, f.user)
	}
	return nil
}

// read reads the file. It must be a plain one, with one name: a second could be that of another's file.
func (f *sshFile) read() error {
	f.info = nil // of an earlier look
	path := f.path(".ssh", f.name)
	found, err := f.dir.Lstat(f.name)
	switch {
	case hostfile.NotThere(err):
		return nil
	case err != nil:
		return err
	case !found.Mode().IsRegular():
		return fmt.Errorf(
			"%s is no plain file (%s): it is neither followed nor replaced; remove it first",
			path,
			found.Mode().Type(),
		)
	}
	file, err := f.dir.OpenFile(f.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if f.info, err = file.Stat(); err != nil {
		return err
	}
	st, ok := hostfile.Stat(f.info)
	switch owner := hostfile.Owner(f.info); {
	case !os.SameFile(found, f.info):
		return fmt.Errorf("%s %w", path, hostfile.ErrReplaced)
	case owner != f.uid && owner != os.Geteuid():
		return fmt.Errorf("%s belongs to uid %d: remove it, or give it to %s first", path, owner, f.user)
	case ok && st.Nlink > 1:
		return fmt.Errorf("%s has %d names (hard links): remove it first", path, st.Nlink)
	case f.info.Size() > maxSSHFile:
		return fmt.Errorf("%s has %d bytes, more than the %d that are read", path, f.info.Size(), maxSSHFile)
	}
	f.data, err = io.ReadAll(io.LimitReader(file, maxSSHFile))
	return err
}

// differs names what of owner and mode is not as sshd wants it.
func (f *sshFile) differs() []string {
	var out []string
	if f.dir != nil {
		for _, d := range (place.Wanted{Mode: sshDirMode, SetMode: true, UID: -1, GID: -1}).Differs(f.dirInfo) {
			out = append(out, ".ssh "+d)
		}
	}
	if f.info != nil {
		out = append(out, place.Wanted{Mode: sshFileMode, SetMode: true, UID: f.uid, GID: -1}.Differs(f.info)...)
	}
	return out
}

// editSSH replaces a file in a user's .ssh by what an edit makes of it.
func editSSH(ctx context.Context, h *apply.Host, user, name string, edit func(string) string) error {
	unlock, err := h.Lock(ctx, "~"+user+"/.ssh/"+name)
	if err != nil {
		return err
	}
	defer unlock()
	f, err := openSSH(h, user, name)
	if err != nil {
		return err
	}
	return errors.Join(f.write([]byte(edit(string(f.data)))), f.close())
}

// write replaces the file by a rename, and makes .ssh where it is missing.
func (f *sshFile) write(data []byte) error {
	if err := f.makeDir(); err != nil {
		return err
	}
	candidate := "." + f.name + ".pullet-" + rand.Text()
	file, err := f.dir.OpenFile(candidate, os.O_WRONLY|os.O_CREATE|os.O_EXCL, sshFileMode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Chown(f.uid, f.gid), file.Chmod(sshFileMode), file.Sync(), file.Close())
	if err == nil {
		err = f.dir.Rename(candidate, f.name)
	}
	if err != nil {
		return errors.Join(
			fmt.Errorf("%s: %w; the old file is untouched", f.path(".ssh", f.name), err),
			f.dir.Remove(candidate),
		)
	}
	return syncRoot(f.dir)
}

// makeDir makes .ssh, which gets its name when it is the user's, and gives it its mode.
func (f *sshFile) makeDir() error {
	if f.dir != nil {
		return onRoot(f.dir, func(dir *os.File) error { return dir.Chmod(sshDirMode) })
	}
	candidate := ".ssh.pullet-" + rand.Text()
	err := f.at.Mkdir(candidate, sshDirMode)
	if err != nil {
		return err
	}
	if f.dir, err = f.at.OpenRoot(candidate + onlyDirectory); err == nil {
		err = onRoot(f.dir, func(dir *os.File) error {
			return errors.Join(f.mine(dir), dir.Chown(f.uid, f.gid), dir.Chmod(sshDirMode))
		})
	}
	if err == nil {
		err = f.at.Rename(candidate, ".ssh")
	}
	if err != nil {
		return errors.Join(err, f.at.Remove(candidate))
	}
	return syncRoot(f.at)
}

// mine refuses a directory that is not the agent's new one: the user put it in its place.
func (f *sshFile) mine(dir *os.File) error {
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	if _, err := dir.Readdirnames(1); hostfile.Owner(info) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 ||
		!errors.Is(err, io.EOF) {
		return fmt.Errorf("%s was replaced while it was made", f.path(".ssh"))
	}
	return nil
}

// onRoot does something with an open directory.
func onRoot(r *os.Root, do func(*os.File) error) error {
	dir, err := r.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(do(dir), dir.Close())
}

func syncRoot(r *os.Root) error { return onRoot(r, (*os.File).Sync) }
