package state

import (
	"context"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Rotation is how far the members of a datastore exchange the fleet's authority. Its phases come one behind the other:
// each of them is recorded when all members are ready for it.
type Rotation struct {
	Authority string            `json:"authority"` // fingerprint of the next one
	Phase     string            `json:"phase"`
	By        string            `json:"by"`               // the member whose host it began on
	At        time.Time         `json:"at"`               // when it began
	Finish    bool              `json:"finish,omitempty"` // nobody waits for hosts and people any more
	Sealed    map[string]Sealed `json:"sealed,omitempty"` // by member, until all of them have it
}

// Sealed is the next authority with its key, encrypted for a member.
type Sealed struct {
	Recipient string `json:"recipient"`
	Text      []byte `json:"text"`
}

// The phases of a rotation.
const (
	RotationBelieve = "believe" // members learn to believe the next authority, and sign nothing with it
	RotationSign    = "sign"    // it signs: hosts and people get certificates of it
	RotationPresent = "present" // they have them, and members present certificates of it, too
	RotationEnd     = "end"     // the former authority counts no more
)

var rotationPhases = []string{RotationBelieve, RotationSign, RotationPresent, RotationEnd}

// Reached reports that a rotation is in a phase, or behind it. One that never began is in none.
func (r Rotation) Reached(phase string) bool {
	return slices.Index(rotationPhases, r.Phase) >= slices.Index(rotationPhases, phase)
}

func (r *Rotation) check(Key) error {
	var c checks
	c.unless(slices.Contains(rotationPhases, r.Phase), "%s is no phase", quoted(r.Phase))
	c.unless(r.Authority != "", "it names no authority")
	c.word("authority", r.Authority)
	c.times(r.At)
	c.count("members", len(r.Sealed), maxMembers)
	for node, s := range r.Sealed {
		c.node(node)
		c.word("recipient", s.Recipient)
		c.unless(len(s.Text) <= maxSealed, "what %s gets is too long", quoted(node))
	}
	line(&r.By)
	return c.err
}

// Rotation is the last rotation with the revision of its record; none where that cannot be read.
func (s *Datastores) Rotation(ctx context.Context) (Rotation, int64, error) {
	r, revision, err := get[Rotation](ctx, s.store, s.key("rotation"))
	return r, revision, unlessBad(err)
}

// Rotate records a rotation in the place of what was on record at a revision. It is false where somebody else was
// faster.
func (s *Datastores) Rotate(ctx context.Context, r Rotation, revision int64) (bool, error) {
	key := s.key("rotation")
	done, err := s.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
		Then(Put(key, r)).Commit()
	return err == nil && done.Succeeded, err
}
