package state

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// AwaitUnlocked waits until no process has a lock on the log of the etcd member in a directory, at most startTimeout. A
// command that this process starts keeps the locks of a member that was just closed until it is executed. etcd ends the
// whole process when it finds such a lock.
func AwaitUnlocked(ctx context.Context, member string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	wal := filepath.Join(member, "member", "wal")
	files, err := filepath.Glob(filepath.Join(wal, "*.wal"))
	if err != nil {
		return err
	}
	for _, file := range files {
		free, err := isFree(file)
		for ; !free && err == nil; free, err = isFree(file) {
			select {
			case <-ctx.Done():
				return fmt.Errorf("another process has a lock on %s: %w", file, ctx.Err())
			case <-time.After(tick):
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isFree asks whether a file could be locked, without locking it: a command that starts now would have that lock, too.
func isFree(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	would := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &would); err != nil {
		return false, err
	}
	return would.Type == unix.F_UNLCK, nil
}
