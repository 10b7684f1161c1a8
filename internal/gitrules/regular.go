package gitrules

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxFile bounds the files of git that are read.
const maxFile = 64 << 20

// UnfitFileError says that a file is not regular, or too large.
type UnfitFileError struct{ text string }

func (e *UnfitFileError) Error() string { return e.text }

// ReadRegular reads a regular file of at most limit bytes. It waits for nothing: a pipe may have taken the place of the
// file.
func ReadRegular(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &UnfitFileError{"not a regular file"}
	case info.Size() > limit:
		return nil, &UnfitFileError{fmt.Sprintf("%d bytes, larger than the limit of %d MiB", info.Size(), limit>>20)}
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = &UnfitFileError{fmt.Sprintf("larger than the limit of %d MiB", limit>>20)}
	}
	return data, err
}
