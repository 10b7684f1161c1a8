package action

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/apply"
)

// overwrite writes a candidate's content into the file itself: what is a mount point, such as /etc/hosts in a container, cannot be
// renamed over. Readers may see half of it. The old content is kept in the state directory until the new one is on disk.
func overwrite(h *apply.Host, name, path, candidate string, w wanted) error {
	kept, err := backup(h, name, path)
	if err != nil {
		return fmt.Errorf("%s is mounted and is written in place, but a copy of it cannot be kept: %w; the old file is untouched", name, err)
	}
	if err := writeOver(path, candidate); err != nil {
		if back := writeOver(path, kept); back != nil {
			return fmt.Errorf("%s: %w, nor can the old content be put back: %w; it is in %s", name, err, back, kept)
		}
		return errors.Join(fmt.Errorf("%s: %w; the old content was put back", name, err), os.Remove(kept))
	}
	if err := os.Remove(kept); err != nil {
		return err
	}
	return w.set(path)
}

// writeOver gives a file the content of another, in place. The room for it is taken first, so that a full disk is found before a byte
// has changed.
func writeOver(path, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if info.Size() > 0 {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, info.Size())
		if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
			return &fs.PathError{Op: "fallocate", Path: path, Err: err}
		}
	}
	if _, err := io.Copy(f, source); err != nil {
		return err
	}
	if err := f.Truncate(info.Size()); err != nil {
		return err
	}
	return f.Sync()
}
