package action

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// A file that is kept in git LFS is a short text in the repository that begins so.
const (
	lfsPointer    = "version https://git-lfs.github.com/spec/v1\n"
	maxLFSPointer = 1024
)

// refuse says which files of a commit cannot be checked out: their contents are not in the repository.
func (g *gitTree) refuse(files gitFiles) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		if f.mode == filemode.Submodule {
			return fmt.Errorf("%s is a submodule, which is not fetched: put its files into the repository, or check it out with a step of its own", name)
		}
		pointer, err := g.isPointer(f)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if pointer {
			return fmt.Errorf("%s is kept in git LFS, which is not fetched: put it into the repository as it is", name)
		}
	}
	return nil
}

// isPointer reads the beginning of what is small enough to be a pointer.
func (g *gitTree) isPointer(f gitFile) (bool, error) {
	size, err := g.storage.EncodedObjectSize(f.hash)
	if err != nil || f.mode == filemode.Symlink || size < int64(len(lfsPointer)) || size >= maxLFSPointer {
		return false, err
	}
	blob, err := g.BlobObject(f.hash)
	if err != nil {
		return false, err
	}
	content, err := blob.Reader()
	if err != nil {
		return false, err
	}
	start, err := io.ReadAll(io.LimitReader(content, int64(len(lfsPointer))))
	return bytes.Equal(start, []byte(lfsPointer)), errors.Join(err, content.Close())
}
