package extension

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/render"
)

// fetchSigned takes the executable that a signed text names, if one of the host's keys signed it.
func (b *definition) fetchSigned(ctx context.Context, h Host) error {
	keys, err := h.Signers()
	if err != nil {
		return err
	}
	if !b.manifest.SignedElsewhere() {
		if err := b.believe(h, keys, b.manifest.Signed); err != nil {
			return err
		}
		return b.fetchExecutable(ctx, h)
	}
	if b.hasKept(h, keys) {
		return errors.Join(touch(b.path), touch(b.keptSigned(h)))
	}
	s, err := b.getSigned(ctx)
	if err != nil {
		return fmt.Errorf("cannot fetch the signature: %w", err)
	}
	if err := b.believe(h, keys, s); err != nil {
		return err
	}
	if err := b.fetchExecutable(ctx, h); err != nil {
		return err
	}
	return durable.Place(b.keptSigned(h), slices.Concat(s.Text, s.Signature))
}

// believe takes the executable that a signed text names for the one that is meant. A key counts now: a signature does
// not tell when it was made.
func (b *definition) believe(h Host, keys *trust.Keys, s render.Signed) error {
	text, _ := b.manifest.SignedSource()
	digest, err := namedDigest(b.manifest, s)
	if err != nil {
		return fmt.Errorf("%s %w", text, err)
	}
	if _, err := keys.VerifyExtension(trust.Signed{Payload: s.Text, Signature: s.Signature}, time.Now()); err != nil {
		return fmt.Errorf("%s %w (who may sign: extensions.allowedSigners of this host)", text, err)
	}
	b.means(h, digest, text+" names")
	return nil
}

// getSigned fetches the signed text and its signature.
func (b *definition) getSigned(ctx context.Context) (s render.Signed, err error) {
	text, signature := b.manifest.SignedSource()
	if s.Text, err = getAll(ctx, text); err != nil {
		return s, err
	}
	s.Signature, err = getAll(ctx, signature)
	return s, err
}

// getAll is what is behind an address, or so much of it that it is seen to be too large.
func getAll(ctx context.Context, address string) ([]byte, error) {
	body, err := get(ctx, address)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, render.MaxSigned+1))
}

// keptSigned is the file with the signed text that was fetched last, and its signature behind it.
func (b *definition) keptSigned(h Host) string {
	return filepath.Join(h.Dir, b.manifest.Name+".signed")
}

// hasKept reports that the host has what it fetched before, and that the manifest is still content with it. So what is
// behind an address changes no host before a commit raises the version: then hosts change in their turns.
func (b *definition) hasKept(h Host, keys *trust.Keys) bool {
	content, err := os.ReadFile(b.keptSigned(h))
	at := bytes.Index(content, []byte("-----BEGIN "))
	if err != nil || at < 0 {
		return false
	}
	return b.believe(h, keys, render.Signed{Text: content[:at], Signature: content[at:]}) == nil && b.intact() == nil
}
