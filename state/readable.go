package state

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
)

// atWork marks a member that runs, or was killed, or lost power: its database is looked at before it is used again.
const atWork = "running"

// readable reads all of the database of a member that was not stopped in order. What is damaged there would end the
// process in the midst of its work, from a goroutine that nobody can answer for.
func readable(member string) (err error) {
	file, mark := filepath.Join(member, "member", "snap", "db"), filepath.Join(filepath.Dir(member), atWork)
	logs, err := os.ReadDir(filepath.Join(member, "member", "wal"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	info, err := os.Stat(file)
	switch gone := errors.Is(err, os.ErrNotExist); {
	case err != nil && !gone:
		return err
	case gone && len(logs) == 0: // it starts for the first time
		return os.WriteFile(mark, nil, 0o600)
	case gone || info.Size() == 0:
		return errors.New("its database is gone")
	case len(logs) == 0: // etcd would leave out what is written next
		return errors.New("its log is gone")
	}
	if _, err = os.Stat(mark); errors.Is(err, os.ErrNotExist) {
		return os.WriteFile(mark, nil, 0o600)
	}
	if err != nil {
		return err
	}
	defer debug.SetPanicOnFault(
		debug.SetPanicOnFault(true),
	) // a file that was cut short ends before what is mapped of it
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("its database cannot be read: %v", p)
		}
	}()
	return readAll(file)
}

func readAll(file string) error {
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return fmt.Errorf("its database cannot be opened: %w", err)
	}
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				_ = crc32.ChecksumIEEE(k) ^ crc32.ChecksumIEEE(v) // so that they are read
				return nil
			})
		})
	})
	return errors.Join(err, db.Close())
}

// rested takes the mark away behind a member that was stopped in order.
func (e *embedded) rested() error {
	if e.server == nil {
		return nil
	}
	if err := os.Remove(filepath.Join(e.dir, atWork)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil // somebody removed the directory while the member ran
}
