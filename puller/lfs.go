package puller

import (
	"bytes"
	"fmt"
	"path"
	"slices"
)

// A file that is kept in git LFS is a pointer in the repository: a short text
// that begins so (github.com/git-lfs/git-lfs/blob/main/docs/spec.md). It is
// never taken for the content.
const pointerStart = "version https://git-lfs.github.com/spec/v1\n"

// The sizes that pointers have.
const (
	minPointer = len(pointerStart) + len("oid sha256:") + 64
	maxPointer = 1024
)

func isPointer(data []byte) bool {
	return len(data) < maxPointer && bytes.HasPrefix(data, []byte(pointerStart))
}

func keptInLFS(name string) error {
	return contentError{fmt.Sprintf("path %q: a file that is kept in git LFS, which pullet does not fetch: put it into the repository as it is", name)}
}

// refuseLFS looks for pointers, where the repository says that it has some: each
// look reads a file.
func (t *tree) refuseLFS() error {
	if uses, err := t.usesLFS(); !uses || err != nil {
		return err
	}
	var names []string
	for name, n := range t.nodes {
		if n.mode.IsRegular() && n.size >= int64(minPointer) && n.size < maxPointer {
			names = append(names, name)
		}
	}
	slices.Sort(names) // every node names the same file
	for _, name := range names {
		data, err := t.store.blob(t.nodes[name].hash)
		if err != nil {
			return fmt.Errorf("path %q: %w", name, err)
		}
		if isPointer(data) {
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
