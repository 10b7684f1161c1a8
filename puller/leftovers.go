package puller

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// removeLeftovers removes what a killed fetch can leave behind. An index whose pack never
// came is worse than rubbish: go-git would not write it again, and it may be
// cut short.
func removeLeftovers(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := d.Name()
		left := strings.HasPrefix(name, "tmp_") || strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, ".")
		if base, ok := strings.CutSuffix(path, ".idx"); ok {
			_, err := os.Stat(base + ".pack")
			left = left || errors.Is(err, fs.ErrNotExist)
		}
		if left {
			return os.Remove(path)
		}
		return nil
	})
}

// removeRecordLeftovers removes the halves of a record that a kill can leave beside it.
func removeRecordLeftovers(file string) error {
	left, err := named(filepath.Dir(file), "."+filepath.Base(file), "")
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// syncTree makes everything below a directory durable. go-git does not.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncPath(path)
	})
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
