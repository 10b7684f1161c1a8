package pkg

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/fetch"
)

// maxKey is the most that a key may have.
const maxKey = 1 << 20

var armorBegin = []byte("-----BEGIN PGP PUBLIC KEY BLOCK-----")

// armored reports a key in the form of text.
func armored(key []byte) bool { return bytes.Contains(key, armorBegin) }

// readKey reads the key that the job or files/ have, or learns from where it is fetched.
func (a *RepoManaged) readKey(b apply.Binding) (err error) {
	switch {
	case a.Key != "" && a.KeySource != "":
		return apply.BadParam("keySource", "key and keySource exclude each other: keep one")
	case fetch.IsAddress(a.KeySource) && a.KeyDigest == "":
		return apply.BadParam("keySource", "a key from an address needs keyDigest: sha256:..., as sha256sum prints it")
	case fetch.IsAddress(a.KeySource):
		a.remote, err = fetch.New(a.KeySource, a.KeyDigest)
		var bad *apply.ParamError
		if errors.As(err, &bad) { // the parameters have other names here
			bad.Param = map[string]string{"source": "keySource", "digest": "keyDigest"}[bad.Param]
		}
		return err
	case a.Key == "" && a.KeySource == "":
		return nil
	case a.Key != "" && !armored([]byte(a.Key)):
		return apply.BadParam("key", "is not an armored public key, which begins with %s", armorBegin)
	}
	a.key = []byte(strings.TrimSpace(a.Key) + "\n")
	if a.KeySource != "" {
		if a.key, err = b.File(a.KeySource); err != nil {
			return &apply.ParamError{Param: "keySource", Err: err}
		}
	}
	return a.checkDigest()
}

// checkDigest compares a key of the repository with its digest, if one is given.
func (a *RepoManaged) checkDigest() error {
	if a.KeyDigest == "" {
		return nil
	}
	want, err := fetch.ParseDigest(a.KeyDigest)
	var bad *apply.ParamError
	if errors.As(err, &bad) {
		bad.Param = "keyDigest"
		return err
	}
	if have := fetch.Digest(sha256.Sum256(a.key)); have != want {
		return apply.BadParam("keyDigest", "the key has %s, not %s", have, want)
	}
	return nil
}

// heldKey is the key as far as this host has it: that of the job, or the file with the right digest that was fetched
// before.
func (a *RepoManaged) heldKey(h *apply.Host, form repoForm) ([]byte, error) {
	if a.remote == nil {
		return a.key, nil
	}
	for _, name := range form.leftovers(a.Name)[1:] {
		key, err := readIfThere(h, name)
		if err != nil || key != nil && fetch.Digest(sha256.Sum256(key)) == a.remote.Digest {
			return key, err
		}
	}
	return nil, nil
}

// theKey is the key, fetched if need be.
func (a *RepoManaged) theKey(ctx context.Context, h *apply.Host, form repoForm) ([]byte, error) {
	key, err := a.heldKey(h, form)
	if err != nil || key != nil || a.remote == nil {
		return key, err
	}
	var fetched bytes.Buffer
	if err := a.remote.Fetch(ctx, &limited{to: &fetched, left: maxKey}); err != nil {
		return nil, fmt.Errorf("keySource: %w", err)
	}
	return fetched.Bytes(), nil
}

// limited takes only so many bytes.
type limited struct {
	to   *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errors.New("it is larger than 1 MiB: that is no key")
	}
	return l.to.Write(p)
}
