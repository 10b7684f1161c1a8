package archive

import (
	"io/fs"
	"path"
	"slices"

	"github.com/pullet/pullet/apply/hostfile"
)

// stale are the files and links that an earlier archive of the step left, and nobody has changed since: what is in a
// directory before it, and a directory only if nothing else is in it.
func (x *extraction) stale(rec, old *archiveRecord) ([]string, error) {
	if old == nil {
		return nil, nil
	}
	wanted, gone := map[string]bool{}, map[string]bool{}
	for _, e := range rec.Entries {
		wanted[e.Path] = true
	}
	var out []string
	for _, e := range slices.Backward(old.Entries) {
		if wanted[e.Path] {
			continue
		}
		same, err := x.untouched(e, gone)
		if err != nil {
			return nil, err
		}
		if same {
			out, gone[e.Path] = append(out, e.Path), true
		}
	}
	return out, nil
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
