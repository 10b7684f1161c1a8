package datastore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/state"
)

// New is a datastore that nobody serves yet.
type New struct {
	*keys
	now   time.Time
	first map[string]state.Identity // who has a certificate before it serves
}

// Create makes a datastore for a fleet: its authority, and the credentials of its server and its keeper. One that is
// there is an error.
func Create(c Config, fleet string, now time.Time) (*New, error) {
	if _, err := os.Stat(c.file(authorityFile)); !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, fmt.Errorf("there is a datastore in %s already", c.Dir))
	}
	if err := errors.Join(c.makeDir(), leaving{c}.finish()); err != nil {
		return nil, err
	}
	a, err := authority.Create(fleet, now)
	if err != nil {
		return nil, err
	}
	n := &New{&keys{Config: c, fleet: fleet, authority: a}, now, map[string]state.Identity{}}
	return n, errors.Join(n.write(now), n.revoke([]string{}, now))
}

// MemberDir is where the data of its member is: what is there when it serves first is its record.
func (n *New) MemberDir() string { return n.file(memberDir) }

// Admit gives somebody of this host a certificate for the key of a request.
func (n *New) Admit(i state.Invitation, csr []byte) (authority.Answer, error) {
	next, err := n.certificate(i.Name, state.Identity{Kind: i.Kind, By: i.By}, string(csr), n.now)
	if err != nil {
		return authority.Answer{}, err
	}
	next.Uses = next.Serials[0].Number
	n.first[i.Name] = next
	return n.answer(i.Name, next), nil
}

// Finish says that all is there: now it can be served.
func (n *New) Finish() error {
	if err := durable.WriteJSON(n.file(firstFile), n.first); err != nil {
		return err
	}
	return durable.Replace(n.file(authorityFile), n.authority.Encode())
}

// Fingerprint is that of the authority, with which hosts recognise it.
func (n *New) Fingerprint() string { return n.authority.Fingerprint() }

// AuthorityFile is where the key of the authority is.
func (c Config) AuthorityFile() string { return c.file(authorityFile) }
