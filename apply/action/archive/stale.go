package archive

import (
	"io/fs"
	"path"
	"slices"

	"github.com/pullet/pullet/apply/hostfile"
)

// stale is what an earlier archive of the step left, nobody has changed since, and the new one does not have.
type stale struct {
	later []string        // goes when the new archive is there
	first []string        // is in the way: the new archive has another kind of thing at the path, or above it
	way   map[string]bool // those of first at whose path the new archive has something
}

// stale finds what an earlier archive left: what is in a directory before it, and a directory only if nothing else is
// in it.
func (x *extraction) stale(rec, old *archiveRecord) (stale, error) {
	out := stale{way: map[string]bool{}}
	if old == nil {
		return out, nil
	}
	kinds, gone := map[string]string{}, map[string]bool{}
	for _, e := range rec.Entries {
		kinds[e.Path] = e.Kind
	}
	for _, e := range slices.Backward(old.Entries) {
		kind, wanted := kinds[e.Path]
		if wanted && (kind == aDir) == (e.Kind == aDir) {
			continue
		}
		same, err := x.untouched(e, gone)
		if err != nil {
			return out, err
		}
		if !same {
			continue
		}
		gone[e.Path] = true
		if wanted || belowFile(kinds, e.Path) {
			out.first, out.way[e.Path] = append(out.first, e.Path), wanted
		} else {
			out.later = append(out.later, e.Path)
		}
	}
	return out, nil
}

// belowFile reports a path below one at which the archive has a file or a link.
func belowFile(kinds map[string]string, at string) bool {
	for dir := path.Dir(at); dir != "."; dir = path.Dir(dir) {
		if kind, known := kinds[dir]; known && kind != aDir {
			return true
		}
	}
	return false
}

// clears reports that something above a path is in the way, so that nothing will be at the path.
func (s stale) clears(at string) bool {
	for dir := path.Dir(at); dir != "."; dir = path.Dir(dir) {
		if s.way[dir] {
			return true
		}
	}
	return false
}

// onlyRemoved are the paths at which nothing will be.
func (s stale) onlyRemoved() []string {
	out := slices.Clone(s.later)
	for _, p := range s.first {
		if !s.way[p] {
			out = append(out, p)
		}
	}
	return out
}

// untouched reports that an entry is as it was extracted. What a link leads to now is not.
func (x *extraction) untouched(e archiveEntry, gone map[string]bool) (bool, error) {
	at, err := x.dir.EntryHere(e.Path)
	if at == nil {
		return false, err
	}
	defer at.Close()
	info, err := at.Lstat()
	switch {
	case hostfile.NotThere(err):
		return false, nil
	case err != nil:
		return false, err
	case e.Kind == aDir && info.IsDir():
		return emptyWithout(at, e.Path, gone)
	case e.Kind == aFile && info.Mode().IsRegular():
		return sameContent(at, e, info)
	case e.Kind == aLink && info.Mode()&fs.ModeSymlink != 0:
		target, err := at.Readlink()
		return target == e.Target, err
	}
	return false, nil
}

// emptyWithout reports a directory in which nothing is but what goes anyway.
func emptyWithout(at *hostfile.Entry, rel string, gone map[string]bool) (bool, error) {
	dir, err := at.Dir()
	if err != nil {
		return false, err
	}
	defer dir.Close()
	names, err := dir.Names()
	return !slices.ContainsFunc(names, func(name string) bool { return !gone[path.Join(rel, name)] }), err
}
