package state

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"golang.org/x/sys/unix"
)

// unborn marks a member that never served. One that is killed in its very first start has a log without the record of itself: etcd then
// waits for a leader for good.
const unborn = "unborn"

// conceive marks a member that starts for the first time, and clears away what an earlier first start left: nothing was ever written to it.
func conceive(data, member string) (first bool, err error) {
	mark := filepath.Join(data, unborn)
	_, marked := os.Stat(mark)
	_, made := os.Stat(member)
	switch {
	case marked == nil:
		return true, os.RemoveAll(member)
	case errors.Is(made, os.ErrNotExist):
		return true, errors.Join(writeFile(mark, nil), SyncDir(data))
	default:
		return false, made
	}
}

// bear runs the member once, before the first client comes, until it has a snapshot. Without one, a start goes through the log from its first
// entry. etcd drops entries from memory as soon as it applied 100 of them. raft may still look at them when it campaigns, and panics then:
// it never looks at those before a snapshot.
func (e *embedded) bear(ctx context.Context, data string, c embed.Config) error {
	c.SnapshotCount = 1
	if err := e.serve(ctx, &c); err != nil {
		return err
	}
	if err := e.end(); err != nil {
		return err
	}
	e.server = nil
	if err := unlocked(ctx, filepath.Join(c.Dir, "member", "wal")); err != nil {
		return err
	}
	return errors.Join(os.Remove(filepath.Join(data, unborn)), SyncDir(data))
}

// unlocked waits until nobody has a lock on the files of a log. A command that this process starts has it for a moment, until it is executed.
func unlocked(ctx context.Context, wal string) error {
	files, err := filepath.Glob(filepath.Join(wal, "*.wal"))
	if err != nil {
		return err
	}
	for _, file := range files {
		free, err := isFree(file)
		for ; !free && err == nil; free, err = isFree(file) {
			select {
			case <-ctx.Done():
				return ctx.Err()
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
