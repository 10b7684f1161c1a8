package gitremote

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// maxCredentials bounds a file with a key, a password or certificates.
const maxCredentials = 1 << 20

// readRegular reads a regular file. Whoever can write its directory may have
// put something else there: a pipe would be waited for, a giant would take all
// memory.
func readRegular(name string) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is no regular file (%s)", name, info.Mode())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxCredentials+1))
	if err == nil && len(data) > maxCredentials {
		err = fmt.Errorf("%s has more than %d bytes", name, maxCredentials)
	}
	return data, info, err
}
