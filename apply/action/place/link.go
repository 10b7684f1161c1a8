package place

import (
	"io/fs"

	"github.com/pullet/pullet/apply/hostfile"
)

// Link makes the entry a link that says target, for good. What is not wanted of its owner stays as it was.
func (w Wanted) Link(at *hostfile.Entry, target string) error {
	if old, err := at.Lstat(); err == nil && old.Mode()&fs.ModeSymlink != 0 {
		st, _ := hostfile.Stat(old)
		w.UID, w.GID = or(w.UID, int(st.Uid)), or(w.GID, int(st.Gid))
	}
	if err := at.Symlink(target, w.UID, w.GID); err != nil {
		return err
	}
	return at.SyncDir()
}

// or is a number, or another where it says nothing.
func or(id, other int) int {
	if id < 0 {
		return other
	}
	return id
}
