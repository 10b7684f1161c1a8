package extension

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/render"
)

// unusedTime is after which an executable that nothing uses is dropped: a version that is taken back still finds its
// own.
const unusedTime = 30 * 24 * time.Hour

// touch notes that a file is used, once a day.
func touch(path string) error {
	info, err := os.Stat(path)
	if now := time.Now(); err == nil && now.Sub(info.ModTime()) > 24*time.Hour {
		return os.Chtimes(path, now, now)
	}
	return err
}

// save writes the executable, if it is the right one, whole and durable.
func (b *definition) save(r io.Reader) error {
	f, err := renameio.NewPendingFile(
		b.path,
		renameio.WithPermissions(0o700),
		renameio.WithTempDir(filepath.Dir(b.path)),
	)
	if err != nil {
		return err
	}
	digest, err := copyDigest(f, r)
	switch {
	case err != nil:
		err = fmt.Errorf("cannot fetch the executable: %w", err)
	case digest != b.digest:
		err = b.another(digest)
	}
	if err != nil {
		return errors.Join(err, f.Cleanup())
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(b.path))
}

// another says that the executable has a digest which nobody meant.
func (b *definition) another(digest string) error {
	err := fmt.Errorf("%s has sha256:%s, and %s sha256:%s: it is not used", b.manifest.Source(), digest, b.says, b.digest)
	if b.manifest.Digest != "" {
		err = fmt.Errorf("%w; print the right one with: %s", err, b.manifest.PrintDigest())
	}
	return err
}

// copyDigest copies and gives the SHA-256 of what it copied.
func copyDigest(w io.Writer, r io.Reader) (string, error) {
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, h), io.LimitReader(r, render.MaxExecutable+1))
	if err == nil && n > render.MaxExecutable {
		err = fmt.Errorf("it is larger than %d MiB", render.MaxExecutable>>20)
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

// ready holds the executable against its digest before it is run.
func (b *definition) ready() error {
	switch {
	case b.failed != nil:
		return b.failed
	case b.path == "":
		return errors.New("its executable was not fetched")
	}
	if err := b.intact(); err != nil {
		return fmt.Errorf("%w; the next pull puts it back", err)
	}
	return nil
}

func (b *definition) intact() error {
	f, err := os.Open(b.path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	digest, err := copyDigest(io.Discard, f)
	switch {
	case err != nil:
		return err
	case digest != b.digest:
		return fmt.Errorf("the copy of %s on this host was changed: it has sha256:%s", b.manifest.Source(), digest)
	case info.Mode().Perm() != 0o700:
		return fmt.Errorf(
			"the copy of %s on this host was changed: its mode is %s",
			b.manifest.Source(),
			place.ModeBits(info.Mode()),
		)
	}
	return nil
}

// dropUnused removes what was not used for long, also what a fetch that was killed left.
func dropUnused(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < unusedTime {
			continue // one that is gone was dropped by another
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
