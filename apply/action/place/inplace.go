package place

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/hostfile"
)

// overwrite writes a candidate's content into the file itself: what is a mount point, such as /etc/hosts in a
// container, cannot be renamed over. Readers may see half of it. The old content is kept in the state directory until
// the new one is on disk.
func overwrite(h *apply.Host, name string, at *hostfile.Entry, candidate *hostfile.Candidate, w Wanted) error {
	path, err := Backup(h, name, at)
	if err != nil {
		return fmt.Errorf(
			"%s is mounted and is written in place, but a copy of it cannot be kept: %w; the old file is untouched",
			name,
			err,
		)
	}
	kept, err := hostfile.Root("/").Entry(path)
	if err != nil {
		return err
	}
	defer kept.Close()
	if err := writeOver(at, candidate.File); err != nil {
		if back := restoreOver(at, kept); back != nil {
			return fmt.Errorf("%s: %w, nor can the old content be put back: %w; it is in %s", name, err, back, path)
		}
		return errors.Join(fmt.Errorf("%s: %w; the old content was put back", name, err), kept.Remove())
	}
	if err := kept.Remove(); err != nil {
		return err
	}
	return w.Set(at)
}

func restoreOver(at, kept *hostfile.Entry) error {
	f, err := kept.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	return writeOver(at, f)
}

// writeOver gives a file the content of another, in place. The room for it is taken first, so that a full disk is found
// before a byte has changed.
func writeOver(at *hostfile.Entry, source *os.File) error {
	info, err := source.Stat()
	if err != nil {
		return err
	}
	f, err := at.OpenWrite()
	if err != nil {
		return err
	}
	defer f.Close()
	if info.Size() > 0 {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, info.Size())
		if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
			return &fs.PathError{Op: "fallocate", Path: at.Path(), Err: err}
		}
	}
	if _, err := io.Copy(f, io.NewSectionReader(source, 0, info.Size())); err != nil {
		return err
	}
	if err := f.Truncate(info.Size()); err != nil {
		return err
	}
	return f.Sync()
}
