// Package durable keeps pullet's own files on disk: each is the whole old or the whole new one, also after a power
// loss.
package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// DamagedError says that a file is there and does not say what it should.
type DamagedError struct {
	path string
	err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged: %v; move it away to start anew", e.path, e.err)
}

// ReadJSON reads a file into v. It leaves v alone where there is no file; one that is not JSON of that kind is a
// *DamagedError.
func ReadJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return &DamagedError{path, err}
	}
	return nil
}

// WriteJSON places v as JSON.
func WriteJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return Place(path, data)
}

// Place replaces a file as a whole, with a line end behind the data, and makes its name durable.
func Place(path string, data []byte) error {
	if err := Replace(path, append(data, '\n')); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Replace replaces a file as a whole; its name is durable after SyncDir. The new one is made beside it and not in /tmp:
// it may hold secrets, and that may be another disk.
func Replace(path string, data []byte) error {
	err := renameio.WriteFile(path, data, 0o600, renameio.WithTempDir(filepath.Dir(path)))
	var at *fs.PathError
	switch {
	case errors.As(err, &at):
		return fmt.Errorf("%s cannot be written: %w", path, at.Err)
	case err != nil:
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	return nil
}

// Write replaces a file as a whole with what write writes, of any length, and makes its name durable. Only root can
// read it, or who runs pullet. Until it is whole it has a name of its own beside it, .NAME with digits behind.
func Write(path string, write func(io.Writer) error) error {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(0o600))
	if err != nil {
		return err
	}
	defer func() { _ = f.Cleanup() }() // what has its name stays
	if err := write(f); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a directory durable: a rename is on disk only then.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Room is how many bytes are left for files in a directory.
func Room(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return st.Bavail * uint64(st.Bsize), nil //nolint:gosec // the size of a block is positive
}
