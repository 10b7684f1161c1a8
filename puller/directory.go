package puller

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// entryModes are the modes that git writes, as it writes them.
var entryModes = map[string]filemode.FileMode{
	"40000":  filemode.Dir,
	"100644": filemode.Regular,
	"100664": filemode.Deprecated,
	"100755": filemode.Executable,
	"120000": filemode.Symlink,
	"160000": filemode.Submodule,
}

// parseDirectory reads a tree object.
func parseDirectory(text []byte) (entries []object.TreeEntry, err error) {
	for len(text) > 0 {
		mode, rest, hasMode := bytes.Cut(text, []byte(" "))
		name, rest, hasName := bytes.Cut(rest, []byte{0})
		if !hasMode || !hasName || len(rest) < len(plumbing.ZeroHash) {
			return nil, contentError{text: "the last entry is truncated"}
		}
		e := object.TreeEntry{Name: string(name), Mode: entryModes[string(mode)]}
		text = rest[copy(e.Hash[:], rest):]
		if e.Mode == 0 {
			return nil, contentError{text: fmt.Sprintf("entry %q: unknown mode %q", name, mode)}
		}
		if why := misplaced(entries, e); why != "" {
			return nil, contentError{text: fmt.Sprintf("entry %q: %s", name, why)}
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// misplaced returns why an entry cannot follow others in a directory; "" if it can.
func misplaced(before []object.TreeEntry, e object.TreeEntry) string {
	switch {
	case e.Name == "" || e.Name == "." || e.Name == ".." || strings.Contains(e.Name, "/"):
		return "the name is not a file name"
	case strings.EqualFold(e.Name, ".git"):
		return "the name is reserved for git"
	case e.Hash.IsZero():
		return "the object ID is zero"
	case len(before) == 0:
		return ""
	}
	switch order := compareEntries(before[len(before)-1], e); {
	case order == 0:
		return "the name exists twice"
	case order > 0:
		return "the entries are not sorted"
	case e.Mode == filemode.Dir:
		file := object.TreeEntry{Name: e.Name, Mode: filemode.Regular}
		if _, twice := slices.BinarySearchFunc(before, file, compareEntries); twice {
			return "the name exists twice"
		}
	}
	return ""
}

// compareEntries compares entries as git sorts them: the name of a directory ends in a slash.
func compareEntries(a, b object.TreeEntry) int {
	n := min(len(a.Name), len(b.Name))
	return cmp.Or(strings.Compare(a.Name[:n], b.Name[:n]), cmp.Compare(byteAt(a, n), byteAt(b, n)))
}

// byteAt returns a byte of the name by which an entry is sorted; 0 behind its end.
func byteAt(e object.TreeEntry, i int) byte {
	switch {
	case i < len(e.Name):
		return e.Name[i]
	case e.Mode == filemode.Dir:
		return '/'
	}
	return 0
}
