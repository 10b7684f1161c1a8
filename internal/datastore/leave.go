package datastore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pullet/pullet/internal/durable"
)

// leavingDir is where what a removed member kept is gathered, before it gets its name: who is killed meanwhile goes on.
const leavingDir = "leaving"

// removedPrefix begins the names of what removed members kept.
const removedPrefix = "removed-"

// leaving is a host that was a member.
type leaving struct{ Config }

// begun reports that not all that it kept is put aside.
func (c leaving) begun() bool { return c.has(leavingDir) }

// finish finishes what was begun, before another record comes into the place.
func (c leaving) finish() error {
	if !c.begun() {
		return nil
	}
	_, err := c.putAside(time.Now())
	return err
}

// putAside puts all that a member kept where nothing starts it again. Of those that were removed before nothing stays:
// a host may come and go many times.
func (c leaving) putAside(now time.Time) (string, error) {
	gathered, aside := c.file(leavingDir), c.file(removedPrefix+now.UTC().Format("20060102T150405.000Z"))
	if err := os.MkdirAll(gathered, 0o700); err != nil {
		return "", err
	}
	for _, name := range []string{
		memberDir, clusterFile, lifeFile, joiningFile, keeperFile, serverFile, bundleFile, crlFile, shutFile, nextFile,
		authorityFile,
	} {
		err := os.Rename(c.file(name), filepath.Join(gathered, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	before, err := filepath.Glob(c.file(removedPrefix + "*"))
	for _, one := range before {
		err = errors.Join(err, os.RemoveAll(one))
	}
	if err == nil {
		err = os.Rename(gathered, aside)
	}
	return aside, errors.Join(err, durable.SyncDir(c.Dir))
}
