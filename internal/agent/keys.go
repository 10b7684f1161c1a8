package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/ownfile"
	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/render"
)

// keyring opens what is encrypted for the host. Its keys are read when they are first needed.
type keyring struct {
	read   func() ([]trust.Identity, error)
	failed error // why they could not be read
}

func newKeyring(c *Config) *keyring { return &keyring{read: sync.OnceValues(c.identities)} }

// identities are the host's private keys: those that the configuration names, else those of its SSH server that can
// decrypt.
func (c *Config) identities() (out []trust.Identity, err error) {
	for _, file := range c.Secrets.Identities {
		ids, err := readIdentities(file)
		if err != nil {
			return nil, fmt.Errorf("secrets.identities: %w", err)
		}
		out = append(out, ids...)
	}
	if len(c.Secrets.Identities) > 0 {
		return out, nil
	}
	for _, key := range []DefaultPath{defaultEd25519Key, defaultRSAKey} {
		file, err := key.Below(c.Root)
		if err != nil {
			return nil, err
		}
		text, err := ownfile.Read(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// One that is not suited, such as a short one, is none of those that secrets are encrypted for.
		if ids, err := trust.ParseIdentities(trust.File{Name: file, Content: text}, nil); err == nil {
			out = append(out, ids...)
		}
	}
	return out, nil
}

func readIdentities(file string) ([]trust.Identity, error) {
	if err := ownfile.Private(file); err != nil {
		return nil, err
	}
	text, err := ownfile.Read(file)
	if err != nil {
		return nil, err
	}
	return trust.ParseIdentities(trust.File{Name: file, Content: text}, nil)
}

// unseal decrypts a file of the repository.
func (k *keyring) unseal(sealed []byte) ([]byte, error) {
	ids, err := k.read()
	if err != nil {
		k.failed = err
		return nil, err
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%w, which has none that can be read: there is no %s, and "+
			"secrets.identities names no other", render.ErrNotForNode, defaultEd25519Key)
	}
	text, err := trust.Unseal(sealed, ids)
	if errors.Is(err, trust.ErrNotRecipient) {
		return nil, render.ErrNotForNode
	}
	return text, err
}

// checkSealed finds what keeps a host with these public keys from opening a file.
func checkSealed(sealed []byte, keys []string) error {
	header, err := trust.ReadersOf(sealed)
	if err != nil {
		return err
	}
	for _, text := range keys {
		key, err := trust.ParseRecipient(text)
		if err != nil {
			return nil // a mistake that validate finds: what the host has is not known
		}
		if has, sure := header.Has(key); has || !sure {
			return nil
		}
	}
	return render.ErrNotForNode
}

// vault encrypts what the journal has of sensitive steps with the host's first key.
func (k *keyring) vault() apply.Vault {
	return apply.Vault{
		Seal: func(text []byte) ([]byte, error) {
			ids, err := k.read()
			if err != nil || len(ids) == 0 {
				return nil, err
			}
			return trust.SealBinary(text, []trust.Recipient{ids[0].Recipient})
		},
		Open: func(sealed []byte) ([]byte, error) {
			ids, err := k.read()
			if err != nil {
				return nil, err
			}
			return trust.Unseal(sealed, ids)
		},
	}
}
