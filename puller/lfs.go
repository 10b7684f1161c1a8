package puller

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/pullet/pullet/internal/gitremote"
)

// minPointer is the size of the smallest pointer.
const minPointer = len(gitremote.PointerStart) + len("oid sha256:") + 64

func keptInLFS(name string) error {
	return contentError{
		fmt.Sprintf(
			"path %q: a file that is kept in git LFS, which pullet does not fetch: put it into the repository as it is",
			name,
		),
	}
}

// refuseElsewhere refuses files of which the commit does not hold the content: pointers of LFS, where the repository
// says that it has some, because each look reads a file; and those that another filter changes.
func (t *tree) refuseElsewhere() error {
	attributes, err := t.attributes()
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(t.nodes)) // every node names the same file
	regular := slices.DeleteFunc(names, func(name string) bool { return !t.nodes[name].mode.IsRegular() })
	if f, is := gitremote.Filtered(attributes, regular); is {
		return contentError{fmt.Sprintf("path %q: %v", f.Name, f)}
	}
	for _, text := range attributes {
		if bytes.Contains(text, []byte("filter=lfs")) {
			return t.refusePointers(regular)
		}
	}
	return nil
}

func (t *tree) refusePointers(names []string) error {
	for _, name := range names {
		if size := t.nodes[name].size; size < int64(minPointer) || size >= gitremote.MaxPointer {
			continue
		}
		data, err := t.store.blob(t.nodes[name].hash)
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
		data, err := t.store.blob(n.hash)
		if err != nil {
			return nil, fmt.Errorf("path %q: %w", name, err)
		}
		out[name] = data
	}
	return out, nil
}
