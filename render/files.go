package render

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// TreeFile is a file of a folder below files/.
type TreeFile struct {
	Path       string // relative to the folder
	Executable bool
}

// Below lists the files of a folder below files/ and of those in it, of all repositories, sorted by path.
func (c *Catalog) Below(name string) ([]TreeFile, error) {
	full := path.Join("files", name)
	if full != "files" && !strings.HasPrefix(full, "files/") {
		return nil, fmt.Errorf("source %q leads out of files/", name)
	}
	found := map[string]TreeFile{}
	for _, l := range c.repo.layers {
		err := fs.WalkDir(l.FS, full, func(p string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist): // another repository has it
				return nil
			case err != nil || d.IsDir():
				return err
			case !d.Type().IsRegular():
				_, err := fs.Stat(l.FS, p)
				return fmt.Errorf("%s cannot be read: %w", c.repo.displayName(place{l, p}), plainFSError(err))
			}
			info, err := d.Info()
			if err == nil && p != full {
				rel := strings.TrimPrefix(p, full+"/")
				found[rel] = TreeFile{rel, info.Mode()&0o111 != 0}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(found) > 0 {
		return slices.SortedFunc(maps.Values(found), func(a, b TreeFile) int { return strings.Compare(a.Path, b.Path) }), nil
	}
	if c.repo.exists(full) {
		return nil, fmt.Errorf("%s is a file, not a directory", full)
	}
	return nil, fmt.Errorf("there is no directory %s in the repository%s", full, inBrackets(c.repo.unseenHint(full, "")))
}
