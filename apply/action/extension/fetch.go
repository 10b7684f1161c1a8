package extension

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/render"
)

// fetchTime is how long one executable may take, with what is signed about it.
const fetchTime = 5 * time.Minute

// Host is where executables are kept, and whom the host believes about them.
type Host struct {
	// Dir is where executables are, each named by its digest. It is made where it is not there.
	Dir string
	// Signers are the keys that may sign. An error, where the host names none, fails the steps of signed extensions.
	Signers func() (*trust.Keys, error)
	// Record reads an executable from the fleet's record by its digest, which has 64 hexadecimal digits.
	Record func(ctx context.Context, digest string) ([]byte, error)
}

// Fetch puts the executables that the steps of a catalog need on a host, from the repository, an address or the fleet's
// record. One that cannot be had, or that nobody signed who may, fails the steps that need it, and no others.
// Executables that were not used for long are dropped.
func (x List) Fetch(ctx context.Context, h Host, cat *render.Catalog) (err error) {
	if h.Dir, err = filepath.Abs(h.Dir); err != nil { // commands run elsewhere
		return err
	}
	needed := map[string]bool{}
	for _, j := range cat.Jobs {
		for _, s := range j.Steps {
			needed[s.Action] = true
		}
	}
	for _, b := range x {
		if needed[b.manifest.Name] {
			b.failed = b.fetch(ctx, h)
		}
	}
	return dropUnused(h.Dir)
}

// fetch finds out which executable is meant, and makes sure that it is on this host.
func (b *definition) fetch(ctx context.Context, h Host) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		return err
	}
	if b.manifest.Signature != "" {
		return b.fetchSigned(ctx, h)
	}
	b.means(h, b.manifest.Digest, "the manifest wants")
	return b.fetchExecutable(ctx, h)
}

// means notes which executable it is, and who says so.
func (b *definition) means(h Host, digest, says string) {
	b.digest, b.says, b.path = digest, says, filepath.Join(h.Dir, digest)
}

// fetchExecutable makes sure that the executable is on this host.
func (b *definition) fetchExecutable(ctx context.Context, h Host) error {
	if b.intact() == nil {
		return touch(b.path)
	}
	from, err := b.open(ctx, h)
	if err != nil {
		return fmt.Errorf("cannot fetch the executable: %w", err)
	}
	return errors.Join(b.save(from), from.Close())
}

// open opens the executable where it comes from.
func (b *definition) open(ctx context.Context, h Host) (io.ReadCloser, error) {
	switch {
	case b.manifest.URL != "":
		return get(ctx, b.manifest.URL)
	case b.manifest.Datastore:
		content, err := h.Record(ctx, b.digest)
		return io.NopCloser(bytes.NewReader(content)), err
	}
	return b.manifest.Open()
}

// get opens what is behind an address.
func get(ctx context.Context, address string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s answers %s", address, resp.Status), resp.Body.Close())
	}
	return resp.Body, nil
}
