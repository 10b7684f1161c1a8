package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/pullet/pullet/internal/gitremote"
	"github.com/pullet/pullet/internal/gitrules"
)

// refuse says which files of a commit cannot be checked out: the repository does not hold their contents, or a filter
// makes others of them.
func (g *gitTree) refuse(ctx context.Context, files gitFiles) error {
	attributes, regular := map[string][]byte{}, []string(nil)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !files[name].mode.IsFile() || files[name].mode == filemode.Symlink {
			continue
		}
		regular = append(regular, name)
		if path.Base(name) == ".gitattributes" {
			text, err := g.read(files[name], maxAttributes)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			attributes[name] = text
		}
	}
	filters, err := gitrules.ReadFilters(attributes)
	if err != nil {
		return err
	}
	if f, is, err := filters.First(ctx, regular, gitrules.NotLFS); err != nil {
		return err
	} else if is {
		return fmt.Errorf("%s: %w", f.Name, f)
	}
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
	data, err := g.read(f, gitremote.MaxPointer)
	return gitremote.IsPointer(data), err
}

// maxAttributes is how much of a .gitattributes is read. git reads no larger one.
const maxAttributes = 100 << 20

// read reads so many bytes of a file's content at most.
func (g *gitTree) read(f gitFile, most int64) ([]byte, error) {
	blob, err := g.BlobObject(f.hash)
	if err != nil {
		return nil, err
	}
	content, err := blob.Reader()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(content, most))
	return data, errors.Join(err, content.Close())
}
