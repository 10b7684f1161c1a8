package gitremote

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/revlist"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// What the child does with a repository on this machine.

// openRepository reads the repository whose directory is given.
func openRepository(dir *os.File) (*filesystem.Storage, error) {
	if err := dir.Chdir(); err != nil {
		return nil, &LocalError{"its owner may not enter it: " + err.Error()}
	}
	// Objects may be borrowed from anywhere: the owner's rights say from where.
	o := filesystem.Options{AlternatesFS: regular{osfs.New("/")}}
	return filesystem.NewStorageWithOptions(regular{osfs.New(".")}, cache.NewObjectLRU(16<<20), o), nil
}

// regular opens nothing but regular files: reading from a pipe could take until
// the time is up. It hides lock files, which go-git takes for references.
type regular struct{ billy.Filesystem }

func (r regular) Open(name string) (billy.File, error) { return r.OpenFile(name, os.O_RDONLY, 0) }

func (r regular) OpenFile(name string, flag int, mode fs.FileMode) (billy.File, error) {
	info, err := r.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &LocalError{fmt.Sprintf("%s is not a regular file", name)}
	}
	return r.Filesystem.OpenFile(name, flag, mode)
}

func (r regular) ReadDir(path string) ([]fs.FileInfo, error) {
	infos, err := r.Filesystem.ReadDir(path)
	kept := infos[:0]
	for _, info := range infos {
		if !strings.HasSuffix(info.Name(), ".lock") {
			kept = append(kept, info)
		}
	}
	return kept, err
}

const maxPeel = 10 // tags of tags

// peelTags says what annotated tags point to in the end; others are left out.
func (t task) peelTags(dir *os.File) (map[string]string, error) {
	st, err := openRepository(dir)
	if err != nil {
		return nil, err
	}
	peeled := map[string]string{}
	for _, id := range t.Wants {
		hash := plumbing.NewHash(id)
		for range maxPeel {
			o, err := st.EncodedObject(plumbing.AnyObject, hash)
			if err != nil {
				return nil, &LocalError{fmt.Sprintf("the object %s of a tag cannot be read: %v", hash, err)}
			}
			if o.Type() != plumbing.TagObject {
				break
			}
			tag, err := object.DecodeTag(st, o)
			if err != nil {
				return nil, &LocalError{fmt.Sprintf("the tag %s cannot be read: %v", hash, err)}
			}
			hash = tag.Target
			peeled[id] = hash.String()
		}
	}
	return peeled, nil
}

// packRepository writes a pack with what is wanted and not had. It spends no
// time on deltas: the pack goes no further than to this disk.
func (t task) packRepository(dir, to *os.File) error {
	st, err := openRepository(dir)
	if err != nil {
		return err
	}
	var wants, known []plumbing.Hash
	for _, id := range t.Wants {
		wants = append(wants, plumbing.NewHash(id))
	}
	for _, id := range t.Haves {
		if h := plumbing.NewHash(id); st.HasEncodedObject(h) == nil {
			known = append(known, h)
		}
	}
	have, err := revlist.Objects(st, known, nil)
	if err != nil {
		return missing(err)
	}
	send, err := revlist.Objects(st, wants, have)
	if err != nil {
		return missing(err)
	}
	if len(send) > t.Limits.Objects {
		return &LimitError{
			What:    fmt.Sprintf("a pack of %d objects", len(send)),
			Setting: "objects",
			Limit:   fmt.Sprint(t.Limits.Objects),
		}
	}
	buffered := bufio.NewWriterSize(to, 256<<10)
	if _, err := packfile.NewEncoder(buffered, st, false).Encode(send, 0); err != nil {
		return missing(err)
	}
	return buffered.Flush()
}

func missing(err error) error {
	if local, ok := errors.AsType[*LocalError](err); ok {
		return local
	}
	return &LocalError{"its objects cannot be read: " + err.Error()}
}
