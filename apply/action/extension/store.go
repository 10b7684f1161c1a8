package extension

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/durable"
	"github.com/pullet/pullet/render"
)

const (
	fetchTime = 5 * time.Minute // for one executable
	// after which one that nothing uses is dropped: a version that is taken back still finds its own
	unusedTime = 30 * 24 * time.Hour
)

// Fetch puts the executables that the steps of a catalog need into a directory, each named by its digest, from the
// repository or its address. One that cannot be had fails the steps that need it, and no others. Executables that were
// not used for long are dropped.
func (x List) Fetch(ctx context.Context, dir string, cat *render.Catalog) error {
	dir, err := filepath.Abs(dir) // commands run elsewhere
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, j := range cat.Jobs {
		for _, s := range j.Steps {
			needed[s.Action] = true
		}
	}
	for _, b := range x {
		if !needed[b.manifest.Name] {
			continue
		}
		b.path = filepath.Join(dir, b.manifest.Digest)
		b.failed = b.fetch(ctx, dir)
	}
	return dropUnused(dir)
}

// fetch makes sure that the executable is on this host.
func (b *definition) fetch(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if b.intact() == nil {
		return touch(b.path)
	}
	if b.manifest.URL == "" {
		f, err := b.manifest.Open()
		if err != nil {
			return err
		}
		defer f.Close()
		return b.save(f)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.manifest.URL, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("cannot fetch the executable: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot fetch the executable: %s answers %s", b.manifest.URL, resp.Status)
	}
	return b.save(resp.Body)
}

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
	case digest != b.manifest.Digest:
		err = fmt.Errorf(
			"%s has sha256:%s, and the manifest wants sha256:%s: it is not used; print the right one with: %s",
			b.manifest.Source(),
			digest,
			b.manifest.Digest,
			b.manifest.PrintDigest(),
		)
	}
	if err != nil {
		return errors.Join(err, f.Cleanup())
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(b.path))
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
	case digest != b.manifest.Digest:
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
