package datastore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pullet/pullet/durable"
)

// leavingDir is where what a removed member kept is gathered, before it gets its name: who is killed meanwhile goes on.
const leavingDir = "leaving"

// removedPrefix begins the names of what removed members kept.
const removedPrefix = "removed-"

// leaving reports a member that was removed and is not put aside as a whole.
func (c Config) leaving() bool {
	_, err := os.Stat(c.file(leavingDir))
	return err == nil
}

// finishLeaving finishes what was begun, before another record comes into the place.
func (c Config) finishLeaving() error {
	if !c.leaving() {
		return nil
	}
	_, err := c.putAside(time.Now())
	return err
}

// putAside puts all that a member kept where nothing starts it again. Of those that were removed before nothing stays:
// a host may come and go many times.
func (c Config) putAside(now time.Time) (string, error) {
	leaving, aside := c.file(leavingDir), c.file(removedPrefix+now.UTC().Format("20060102T150405.000Z"))
	if err := os.MkdirAll(leaving, 0o700); err != nil {
		return "", err
	}
	for _, name := range []string{
		memberDir, clusterFile, joiningFile, keeperFile, serverFile, bundleFile, crlFile, shutFile, authorityFile,
	} {
		if err := os.Rename(c.file(name), filepath.Join(leaving, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	before, err := filepath.Glob(c.file(removedPrefix + "*"))
	for _, one := range before {
		err = errors.Join(err, os.RemoveAll(one))
	}
	if err == nil {
		err = os.Rename(leaving, aside)
	}
	return aside, errors.Join(err, durable.SyncDir(c.Dir))
}
