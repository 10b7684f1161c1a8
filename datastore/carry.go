package datastore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"filippo.io/age"

	"github.com/pullet/pullet/authority"
	"github.com/pullet/pullet/durable"
	"github.com/pullet/pullet/ownfile"
	"github.com/pullet/pullet/state"
	"github.com/pullet/pullet/trust"
)

// recipientFile holds the key for which the authority is encrypted when this host becomes a member.
const recipientFile = "recipient.key"

// Carries reports that this host carries the datastore, or is to.
func (c Config) Carries() bool {
	_, err := os.Stat(c.file(authorityFile))
	return err == nil
}

// Offers reports that this host offered to carry the datastore.
func (c Config) Offers() bool {
	_, err := os.Stat(c.file(recipientFile))
	return err == nil
}

// Comes reports that this host got what it takes to become a member, and did not begin as one.
func (c Config) Comes() bool {
	_, err := os.Stat(c.file(joiningFile))
	return err == nil && c.Carries()
}

// asidePrefix begins the names of the directories with what a member kept that was removed.
const asidePrefix = "removed-"

// Left reports that this host carried the datastore and does so no more: another one took its place.
func (c Config) Left() bool {
	aside, _ := filepath.Glob(c.file(asidePrefix + "*")) // of a directory that cannot be read nothing is known
	_, err := os.Stat(c.file(memberDir))
	return len(aside) > 0 && !c.Carries() && errors.Is(err, fs.ErrNotExist)
}

// Offer is what this host says of itself that may carry the datastore, at these addresses. It makes the key that what it
// gets then is encrypted for.
func (c Config) Offer(at Addresses) (state.Carrier, error) {
	key, err := c.recipient()
	if err != nil {
		return state.Carrier{}, err
	}
	return state.Carrier{Client: at.Client, Peer: at.peer(), Door: at.Door, Recipient: key.Recipient().String()}, nil
}

func (c Config) recipient() (*age.X25519Identity, error) {
	text, err := ownfile.Read(c.file(recipientFile))
	if err == nil {
		return age.ParseX25519Identity(string(text))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := c.makeDir(); err != nil {
		return nil, err
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	return key, durable.Replace(c.file(recipientFile), []byte(key.String()))
}

// makeDir makes the directory, for root alone.
func (c Config) makeDir() error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	if err := ownfile.Check(c.Dir); err != nil {
		return err
	}
	return os.Chmod(c.Dir, 0o700) // it may have been there: the sockets in it are for root alone
}

// Accept places what this host got to become a member. Believed is what this host believes: an authority that is not
// among it is refused, since whoever writes etcd may hand out another one. A host with a record has no use for it.
func (c Config) Accept(h state.Handed, believed []byte) error {
	if _, err := os.Stat(c.file(memberDir)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key, err := c.recipient()
	if err != nil {
		return err
	}
	m, err := opened(h, key)
	if err != nil {
		return fmt.Errorf("what this host got to carry the datastore: %w", err)
	}
	a, err := authority.Parse([]byte(m.Authority))
	if err != nil {
		return err
	}
	known, err := authority.Fingerprints(believed)
	if err != nil {
		return err
	}
	if !slices.Contains(known, a.Fingerprint()) {
		return fmt.Errorf("this host is to carry the datastore of an authority that it does not believe: %s", a.Fingerprint())
	}
	for _, f := range []struct{ name, text string }{
		{clusterFile, m.Cluster + "\n"}, {joiningFile, ""}, {authorityFile, m.Authority},
	} {
		if err := durable.Replace(c.file(f.name), []byte(f.text)); err != nil {
			return err
		}
	}
	return nil
}

func opened(h state.Handed, key *age.X25519Identity) (m Membership, err error) {
	ids, err := trust.ParseIdentities(trust.File{Name: recipientFile, Content: []byte(key.String())}, nil)
	if err != nil {
		return m, err
	}
	text, err := trust.Unseal(h.Sealed, ids)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	return m, err
}

// putAside puts all that a member kept where nothing starts it again.
func (c Config) putAside(now time.Time) (string, error) {
	aside := c.file(asidePrefix + now.UTC().Format("20060102T150405Z"))
	if err := os.Mkdir(aside, 0o700); err != nil {
		return "", err
	}
	for _, name := range []string{authorityFile, memberDir, clusterFile, joiningFile, keeperFile, serverFile, bundleFile, crlFile} {
		if err := os.Rename(c.file(name), filepath.Join(aside, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return aside, durable.SyncDir(c.Dir)
}
