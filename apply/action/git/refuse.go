package git

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/pullet/pullet/internal/gitremote"
)

// refuse says which files of a commit cannot be checked out: their contents are not in the repository.
func (g *gitTree) refuse(files gitFiles) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		if f.mode == filemode.Submodule {
			return fmt.Errorf(
				"%s is a submodule, which is not fetched: put its files into the repository, or check "+
					"it out with a step of its own",
				name,
			)
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

// isPointer reads what is small enough to be a pointer.
func (g *gitTree) isPointer(f gitFile) (bool, error) {
	size, err := g.storage.EncodedObjectSize(f.hash)
	if err != nil || f.mode == filemode.Symlink || size < int64(len(gitremote.PointerStart)) ||
		size >= gitremote.MaxPointer {
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
	data, err := io.ReadAll(io.LimitReader(content, gitremote.MaxPointer))
	return gitremote.IsPointer(data), errors.Join(err, content.Close())
}
