package puller

import (
	"bytes"
	"fmt"
	"path"
	"slices"

	"github.com/pullet/pullet/gitremote"
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

// refuseLFS looks for pointers, where the repository says that it has some: each
// look reads a file.
func (t *tree) refuseLFS() error {
	if uses, err := t.usesLFS(); !uses || err != nil {
		return err
	}
	var names []string
	for name, n := range t.nodes {
		if n.mode.IsRegular() && n.size >= int64(minPointer) && n.size < gitremote.MaxPointer {
			names = append(names, name)
		}
	}
	slices.Sort(names) // every node names the same file
	for _, name := range names {
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

// usesLFS reads the attributes, which say which files are kept in LFS.
func (t *tree) usesLFS() (bool, error) {
	for name, n := range t.nodes {
		if path.Base(name) != ".gitattributes" || !n.mode.IsRegular() {
			continue
		}
		data, err := t.store.blob(n.hash)
		if err != nil {
			return false, fmt.Errorf("path %q: %w", name, err)
		}
		if bytes.Contains(data, []byte("filter=lfs")) {
			return true, nil
		}
	}
	return false, nil
}
