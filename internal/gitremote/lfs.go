package gitremote

import "bytes"

// A file that is kept in git LFS is a pointer in the repository: a short text
// that begins so (github.com/git-lfs/git-lfs/blob/main/docs/spec.md). It is
// never taken for the content.
const (
	PointerStart = "version https://git-lfs.github.com/spec/v1\n"
	MaxPointer   = 1024 // bytes; pointers are shorter
)

// IsPointer reports the content of a pointer of git LFS.
func IsPointer(data []byte) bool {
	return len(data) < MaxPointer && bytes.HasPrefix(data, []byte(PointerStart))
}
