package hostfile

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many links one path may lead through, as in the kernel.
const maxLinks = 40

// walk resolves a path one component at a time.
type walk struct {
	root   *Dir
	follow bool     // the last component, too
	stack  []*Dir   // the directories that lead to where the walk is
	rest   []string // what is left of the path
	links  int
	claims []claim
}

// claim is what a link that is followed has to lead to: something that belongs to who could put the link there.
type claim struct {
	rest    int // how much of the path is left where the link's target ends
	planter int
	refused *LinkRefused
}

func (w *walk) run(name string) (*Entry, error) {
	w.stack = []*Dir{w.root.keep()}
	defer func() {
		for _, d := range w.stack {
			d.Close()
		}
	}()
	w.rest = parts(name)
	for len(w.rest) > 0 {
		part := w.rest[0]
		w.rest = w.rest[1:]
		if part == ".." {
			w.up()
			if err := w.verifyClaims(w.top()); err != nil {
				return nil, err
			}
			continue
		}
		if len(w.rest) == 0 && !w.follow {
			return w.entry(part), nil
		}
		if e, err := w.step(part); e != nil || err != nil {
			return e, err
		}
	}
	d := w.top() // the path ends in a directory
	if len(w.stack) == 1 {
		return &Entry{dir: d.keep(), base: ".", path: "/"}, nil
	}
	return &Entry{dir: w.stack[len(w.stack)-2].keep(), base: path.Base(d.path), path: d.path}, nil
}

func (w *walk) top() *Dir { return w.stack[len(w.stack)-1] }

func (w *walk) up() {
	if len(w.stack) > 1 {
		w.top().Close()
		w.stack = w.stack[:len(w.stack)-1]
	}
}

func (w *walk) entry(base string) *Entry {
	return &Entry{dir: w.top().keep(), base: base, path: path.Join(w.top().path, base)}
}

// step goes on with one component. It gives the entry where the path ends there.
func (w *walk) step(part string) (*Entry, error) {
	at := path.Join(w.top().path, part)
	info, err := statAt(w.top().fd, part)
	switch {
	case NotThere(err):
		return w.nothing(part)
	case err != nil:
		return nil, failed("lstat", at, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, w.link(part)
	case !info.IsDir() && len(w.rest) > 0:
		return &Entry{
			path: path.Join(append([]string{at}, w.rest...)...),
			base: w.rest[len(w.rest)-1],
			gone: unix.ENOTDIR,
		}, nil
	case !info.IsDir():
		if err := w.claimed(info); err != nil {
			return nil, err
		}
		return w.entry(part), nil
	}
	fd, err := openOne(w.top().fd, part)
	if err != nil {
		return nil, failed("open", at, err)
	}
	w.stack = append(w.stack, w.root.root.newDir(fd, at))
	return nil, w.verifyClaims(w.top())
}

// nothing is the entry of a path that is not there. What would be made belongs to who owns the directory in which it
// would be.
func (w *walk) nothing(part string) (*Entry, error) {
	info, err := w.top().Stat()
	if err != nil {
		return nil, err
	}
	for _, c := range w.claims {
		if info.UID() != c.planter {
			return nil, c.refused
		}
	}
	e := w.entry(part)
	if slices.Contains(w.rest, "..") {
		return nil, failed("open", e.path, unix.ENOENT)
	}
	if len(w.rest) > 0 {
		e.missing = append([]string{part}, w.rest[:len(w.rest)-1]...)
		e.base, e.gone = w.rest[len(w.rest)-1], unix.ENOENT
		e.path = path.Join(append([]string{e.path}, w.rest...)...)
	}
	return e, nil
}

// verifyClaims holds what was reached against the links that led there.
func (w *walk) verifyClaims(d *Dir) error {
	if len(w.claims) == 0 {
		return nil
	}
	info, err := d.Stat()
	if err != nil {
		return err
	}
	return w.claimed(info)
}

func (w *walk) claimed(info Info) error {
	for _, c := range w.claims {
		if uid := info.UID(); uid != c.planter && !own(uid) {
			return c.refused
		}
	}
	for len(w.claims) > 0 {
		c := w.claims[len(w.claims)-1]
		if len(w.rest) > c.rest {
			return nil
		}
		if info.UID() != c.planter {
			return c.refused
		}
		w.claims = w.claims[:len(w.claims)-1]
	}
	return nil
}

// link takes a link's target into the path, if the link may be followed.
func (w *walk) link(part string) error {
	at := path.Join(w.top().path, part)
	var fd int
	err := again(func() (err error) {
		fd, err = unix.Openat(w.top().fd, part, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return failed("open", at, err)
	}
	defer unix.Close(fd)
	info, err := statFD(fd, part)
	if err != nil {
		return failed("stat", at, err)
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return replaced(at)
	}
	target, err := readLink(fd, "")
	if err != nil {
		return failed("readlink", at, err)
	}
	if w.links++; w.links > maxLinks {
		return failed("open", at, unix.ELOOP)
	}
	if err := w.checkLink(at, target, info); err != nil {
		return err
	}
	if strings.HasPrefix(target, "/") {
		for len(w.stack) > 1 {
			w.up()
		}
	}
	w.rest = append(parts(target), w.rest...)
	return w.verifyClaims(w.top()) // the target may be where the link is
}

// checkLink decides whether a link may be followed, and what it has to lead to.
func (w *walk) checkLink(at, target string, link Info) error {
	refused := &LinkRefused{Path: at, Target: target, UID: link.UID()}
	planter, err := w.planter(link)
	if err != nil {
		return err
	}
	refused.Cure = "remove the link, or manage the path that it leads to"
	switch {
	case planter < 0:
		return nil
	case own(planter):
		refused.Why = "root owns it, and others can write to a directory on the way to it"
		return refused
	case link.st.Nlink > 1:
		refused.Why = fmt.Sprintf("it has %d names (hard links)", link.st.Nlink)
		return refused
	case link.UID() != planter && !own(link.UID()):
		refused.Why = fmt.Sprintf("uid %d owns it, in a directory of uid %d", link.UID(), planter)
		return refused
	}
	refused.Why = fmt.Sprintf("uid %d can change it, and does not own what it leads to", planter)
	w.claims = append(w.claims, claim{len(w.rest), planter, refused})
	return nil
}

// planter is the user who can have put a link where it is; -1 is nobody but root.
func (w *walk) planter(link Info) (int, error) {
	for i, d := range w.stack {
		info, err := d.Stat()
		switch {
		case err != nil:
			return 0, err
		case info.private():
			continue
		case !own(info.UID()):
			return info.UID(), nil
		case i+1 == len(w.stack):
			return link.UID(), nil
		}
		next, err := w.stack[i+1].Stat() // in a directory for everybody, such as /tmp
		if err != nil || !own(next.UID()) {
			return next.UID(), err
		}
	}
	if own(link.UID()) {
		return -1, nil
	}
	return link.UID(), nil
}

func parts(name string) []string {
	var out []string
	for part := range strings.SplitSeq(name, "/") {
		if part != "" && part != "." {
			out = append(out, part)
		}
	}
	return out
}

func readLink(dir int, name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
