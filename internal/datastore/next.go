package datastore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/internal/ownfile"
)

// readNext reads the next authority, where there is one. Who was killed when it began to sign left it in both files.
func (k *keys) readNext() error {
	text, err := ownfile.Read(k.file(nextFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	next, err := authority.Parse(text)
	if err == nil && next.Fingerprint() == k.authority.Fingerprint() {
		return unless(os.Remove(k.file(nextFile)), fs.ErrNotExist)
	}
	if err == nil {
		err = k.expect(next)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; move it away, and type pullet fleet rotate when the datastore serves",
			k.file(nextFile), err)
	}
	return nil
}

// expect believes the next authority beside the one that signs.
func (k *keys) expect(next *authority.Authority) error {
	both, err := k.authority.Expect(next)
	if err == nil {
		k.authority, k.next = both, next
	}
	return err
}

// placeNext keeps the next authority, and believes it.
func (k *keys) placeNext(next *authority.Authority) error {
	if _, err := k.authority.Expect(next); err != nil {
		return err
	}
	if err := durable.Replace(k.file(nextFile), next.Encode()); err != nil {
		return err
	}
	return k.expect(next)
}

// signNext has the next authority sign from now on.
func (k *keys) signNext() error {
	if err := k.change(k.next); err != nil {
		return err
	}
	k.next = nil
	return unless(os.Remove(k.file(nextFile)), fs.ErrNotExist)
}

// exchanged is the next authority with its key, where this is what a rotation makes it; nil: it is not here.
func (k *keys) exchanged(fingerprint string) *authority.Authority {
	switch {
	case k.next != nil && k.next.Fingerprint() == fingerprint:
		return k.next
	case k.authority.Fingerprint() == fingerprint:
		return k.authority
	}
	return nil
}

// handed is what a member gets: the authority that signs, and the next one where there is one.
func (k *keys) handed() (signs, next string, err error) {
	if k.next != nil {
		next = string(k.next.Encode())
	}
	text, err := ownfile.Read(k.file(authorityFile)) // it does not believe the next one yet
	return string(text), next, err
}

// presents is the fingerprint of the authority that signed the credentials of the datastore itself. They are made one
// behind the other: the last one tells.
func (k *keys) presents() (string, error) {
	text, err := os.ReadFile(k.file(keeperFile))
	if err != nil {
		return "", err
	}
	return authority.SignedBy(text)
}
