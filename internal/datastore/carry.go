package datastore

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"filippo.io/age"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/internal/ownfile"
	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/state"
)

// recipientFile holds the key for which the authority is encrypted when this host becomes a member.
const recipientFile = "recipient.key"

// Carries reports that this host carries the datastore, or is to.
func (c Config) Carries() bool { return c.has(authorityFile) }

// Candidate is this host as one that may become a member of the datastore.
type Candidate struct{ Config }

// Offers reports that this host offered to carry the datastore.
func (c Candidate) Offers() bool { return c.has(recipientFile) }

// Comes reports that this host got what it takes to become a member, and did not begin as one.
func (c Candidate) Comes() bool { return c.has(joiningFile) && c.Carries() }

// Left reports that this host carried the datastore and does so no more: another one took its place.
func (c Config) Left() bool {
	aside, _ := filepath.Glob(c.file(removedPrefix + "*")) // of a directory that cannot be read nothing is known
	_, err := os.Stat(c.file(memberDir))
	return len(aside) > 0 && !c.Carries() && errors.Is(err, fs.ErrNotExist)
}

// Offer is what this host says of itself that may carry the datastore, at these addresses. It makes the key that what
// it gets then is encrypted for.
func (c Candidate) Offer(at Addresses) (state.Carrier, error) {
	key, err := c.recipient()
	if err != nil {
		return state.Carrier{}, err
	}
	return state.Carrier{Client: at.Client, Peer: at.peer(), Door: at.Door, Recipient: key.Recipient().String()}, nil
}

func (c Candidate) recipient() (*age.X25519Identity, error) {
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

// Awaits reports that this host is to place what it got: it has no record, and nothing of these members. Until it has
// the record, each change of the members is told anew: etcd begins only with those that there are.
func (c Candidate) Awaits(h state.Handed) bool {
	if !c.Carries() {
		return true
	}
	placed, err := os.ReadFile(c.file(joiningFile))
	return err == nil && string(placed) != told(h) && !c.recorded()
}

// told is a mark of what a host got.
func told(h state.Handed) string { return fmt.Sprintf("%x\n", sha256.Sum256(h.Sealed)) }

// recorded reports that etcd began here. Begun anew without its files, it would be another member under the same name.
func (c Config) recorded() bool { return wal.Exist(datadir.ToWALDir(c.file(memberDir))) }

// Accept places what this host got to become a member. Believed is what this host believes: an authority that is not
// among it is refused, since whoever writes etcd may hand out another one.
func (c Candidate) Accept(h state.Handed, believed []byte) error {
	if err := leaving(c).finish(); err != nil {
		return err
	}
	if c.recorded() {
		return fmt.Errorf("this host is to carry the datastore, and there is a record in %s: move it away", c.file(memberDir))
	}
	m, err := c.opened(h, believed)
	if err != nil {
		return fmt.Errorf("what this host got to carry the datastore: %w", err)
	}
	// It may have got a next authority before, and never begun.
	if err := os.Remove(c.file(nextFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, f := range []struct{ name, text string }{
		{clusterFile, m.Cluster + "\n"}, {joiningFile, told(h)}, {nextFile, m.Next}, {authorityFile, m.Authority},
	} {
		if f.text == "" {
			continue
		}
		if err := durable.Replace(c.file(f.name), []byte(f.text)); err != nil {
			return err
		}
	}
	return nil
}

// opened is what this host got, of an authority that it believes.
func (c Candidate) opened(h state.Handed, believed []byte) (m Membership, err error) {
	text, err := c.unseal(h.Sealed)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, err
	}
	a, err := authority.Parse([]byte(m.Authority))
	if err != nil {
		return m, err
	}
	if authority.Follow(believed, a.Bundle(), a.Links()) != nil {
		return m, fmt.Errorf("this host does not believe its authority: %s", a.Fingerprint())
	}
	if m.Next == "" {
		return m, nil
	}
	next, err := authority.Parse([]byte(m.Next))
	if err == nil {
		_, err = a.Expect(next)
	}
	return m, err
}

// unseal opens what was encrypted for this host.
func (c Candidate) unseal(text []byte) ([]byte, error) {
	key, err := c.recipient()
	if err != nil {
		return nil, err
	}
	ids, err := trust.ParseIdentities(trust.File{Name: recipientFile, Content: []byte(key.String())}, nil)
	if err != nil {
		return nil, err
	}
	return trust.Unseal(text, ids)
}
