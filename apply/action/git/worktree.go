package git

import (
	"path"
	"strings"

	"github.com/pullet/pullet/apply/hostfile"
)

// workTree is the directory of a checkout.
type workTree struct{ *hostfile.Dir }

// removeLeft removes what a checkout that was cut off left. What lies behind a link is somewhere else.
func (w workTree) removeLeft(name string) error {
	at, err := w.EntryHere(name)
	if at == nil {
		return err
	}
	defer at.Close()
	if err := at.Remove(); !hostfile.NotThere(err) {
		return err
	}
	return nil
}

// removeTracked removes a file and the directories that are empty then. What became a directory is not what the
// repository knew, and what lies behind a link is somewhere else.
func (w workTree) removeTracked(name string) error {
	at, err := w.EntryHere(name)
	if at == nil {
		return err
	}
	defer at.Close()
	info, err := at.Lstat()
	switch {
	case hostfile.NotThere(err) || err == nil && info.IsDir():
		return nil
	case err != nil:
		return err
	}
	if err := at.Remove(); err != nil {
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if w.removeLeft(dir) != nil { // it is not empty
			break
		}
	}
	return nil
}

// inTheWayOf is the first parent of a name, from the top, that is there and is no directory.
func (w workTree) inTheWayOf(name string) (string, bool) {
	parts := strings.Split(name, "/")
	for i := range parts[1:] {
		at := path.Join(parts[:i+1]...)
		e, err := w.Entry(at)
		if err != nil {
			return "", false
		}
		info, err := e.Lstat()
		e.Close()
		switch {
		case err != nil:
			return "", false
		case !info.IsDir():
			return at, true
		}
	}
	return "", false
}
