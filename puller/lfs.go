package puller

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/pullet/pullet/internal/gitremote"
	"github.com/pullet/pullet/internal/gitrules"
)

// minPointer is the size of the smallest pointer.
const minPointer = len(gitremote.PointerStart) + len("oid sha256:") + 64

func keptInLFS(name string) error {
	return contentError{
		name, "a file that is kept in git LFS, which pullet does not fetch: put it into the repository as it is",
	}
}

// refuseElsewhere refuses files of which the commit does not hold the content: pointers of LFS, where the repository
// says that it has some, because each look reads a file; and those that another filter changes.
func (t *tree) refuseElsewhere(ctx context.Context) error {
	attributes, err := t.attributes()
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(t.nodes)) // every node names the same file
	regular := slices.DeleteFunc(names, func(name string) bool { return !t.nodes[name].mode.IsRegular() })
	filters, err := gitrules.ReadFilters(attributes)
	if err != nil {
		return contentError{text: err.Error()}
	}
	if f, is, err := filters.First(ctx, regular, gitrules.NotLFS); err != nil {
		return err
	} else if is {
		return contentError{f.Name, f.Error()}
	}
	for _, text := range attributes {
		if bytes.Contains(text, []byte("filter=lfs")) {
			return t.refusePointers(ctx, regular)
		}
	}
	return nil
}

func (t *tree) refusePointers(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if size := t.nodes[name].size; size < int64(minPointer) || size >= gitremote.MaxPointer {
			continue
		}
		data, err := t.content(name, t.nodes[name])
		if err != nil {
			return fmt.Errorf("path %q: %w", name, err)
		}
		if gitremote.IsPointer(data) {
			return keptInLFS(name)
		}
	}
	return nil
}

// attributes reads the .gitattributes files of the tree, by their paths.
func (t *tree) attributes() (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, n := range t.nodes {
		if path.Base(name) != ".gitattributes" || !n.mode.IsRegular() {
			continue
		}
		data, err := t.content(name, n)
		if err != nil {
			return nil, fmt.Errorf("path %q: %w", name, err)
		}
		out[name] = data
	}
	return out, nil
}
