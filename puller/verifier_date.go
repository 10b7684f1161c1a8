package puller

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/pullet/pullet/internal/trust"
)

// date determines a commit's place in time: not before the commits that it comes after, whatever its own date says.
func (v *verifier) date(c *link) error {
	when := c.when
	for _, id := range c.parents {
		parent, known := v.when[id]
		if !known {
			old, err := v.store.commit(id)
			switch {
			case errors.Is(err, plumbing.ErrObjectNotFound): // the history is cut off here
			case err != nil:
				return err
			default:
				parent = old.Committer.When
			}
		}
		when = later(when, parent)
	}
	v.when[c.id] = v.inTime(when)
	return nil
}

// signature is one that was held against keys.
type signature struct {
	commit plumbing.Hash
	keys   *trust.Keys
}

// signer returns who of the owners of keys signed a commit. A key has to be valid at the commit's place in time.
func (v *verifier) signer(c *link, keys *trust.Keys) (trust.Signer, error) {
	if known, ok := v.signers[signature{c.id, keys}]; ok {
		return known, nil
	}
	content, err := v.store.object(plumbing.CommitObject, c.id, maxCommit)
	if err != nil {
		return trust.Signer{}, err
	}
	signed, err := trust.Commit(content)
	var who trust.Signer
	if err == nil {
		who, err = v.signed(signed, keys, v.when[c.id])
	}
	if err == nil {
		v.signers[signature{c.id, keys}] = who
	}
	return who, unverified(c.id, "", err)
}

// signed returns who signed something at a time. If this host saw the repository without it after that time, the key
// has to be valid then, too: whoever has a key that expired chooses the dates of commits, but not when hosts saw them.
func (v *verifier) signed(s trust.Signed, keys *trust.Keys, at time.Time) (trust.Signer, error) {
	who, err := keys.Verify(s, at)
	if err != nil || !v.seen.After(at) {
		return who, err
	}
	now, err := keys.Verify(s, v.seen)
	if err != nil {
		return now, fmt.Errorf("%w, when this host last saw the repository without it", err)
	}
	who.Names = slices.DeleteFunc(slices.Clone(who.Names), func(name string) bool {
		return !slices.Contains(now.Names, name)
	})
	return who, nil
}

// inTime takes a date of the future for now.
func (v *verifier) inTime(when time.Time) time.Time {
	if when.After(v.now) {
		return v.now
	}
	return when
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
