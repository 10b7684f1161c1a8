package datastore

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// leastFree is how much of its disk etcd needs to start, in bytes: with less it ends in the middle of its first files,
// and says so in many lines.
const leastFree = 4 << 20

// diskRoom says that the disk is too full for a record to begin there. One that is there goes on as long as it can.
func (c Config) diskRoom() error {
	if c.recorded() {
		return nil
	}
	var room unix.Statfs_t
	if err := unix.Statfs(c.Dir, &room); err != nil {
		return &fs.PathError{Op: "statfs", Path: c.Dir, Err: err}
	}
	if free := room.Bavail * uint64(room.Bsize); free < leastFree { //nolint:gosec // the size of a block is positive
		return fmt.Errorf("the disk of %s is full: %s are free, and etcd needs %s to start",
			c.Dir, sized(int64(free)), sized(leastFree))
	}
	return nil
}
