package state

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Skipped is the newest commit that a node saw and that the fleet does not take: By, At and Reason are the node's.
type Skipped struct {
	Version
	Over string `json:"over"` // the rollout of the fleet's version that it would come after; "" is none
	Kind string `json:"kind"` // why, for decisions
}

// Why a newer commit is skipped.
const (
	SkipBroken    = "broken"    // it does not compile for the node that says so
	SkipHost      = "host"      // it does not compile for the node that says so, by a fault of that host
	SkipElsewhere = "elsewhere" // it does for that one, and not for others
	SkipBad       = "bad"       // it halted or was undone before
	SkipHeld      = "held"      // the fleet is held at its version
	SkipCanaries  = "canaries"  // those of the fleet's version are not through
	SkipLacking   = "lacking"   // a service that nobody has announced
)

func (s *Skipped) check(k Key) error {
	if err := s.Version.check(k); err != nil {
		return err
	}
	var c checks
	c.word("over", s.Over)
	c.word("kind", s.Kind)
	return c.err
}

// Says reports that a record says the same, whoever wrote it. Where it names a node for which the commit compiles,
// another one for which it does not has nothing to add: else they would write in turns.
func (s *Skipped) Says(o *Skipped) bool {
	switch {
	case s == nil || o == nil || s.ID != o.ID || s.Over != o.Over:
		return false
	case s.By == o.By:
		return s.Kind == o.Kind && s.Reason == o.Reason
	}
	return s.Kind == o.Kind || s.Kind == SkipElsewhere && o.Kind == SkipBroken
}

// Beside is what the fleet skips beside its version; nil where that is not so any more.
func (s *Skipped) Beside(current *Version, held bool) *Skipped {
	over := ""
	if current != nil {
		over = current.Rollout()
	}
	if s == nil || s.Over != over || current != nil && s.ID == current.ID || s.Kind == SkipHeld && !held {
		return nil
	}
	return s
}

func (s *Versions) skippedKey() string { return s.store.key("skipped") }

// Skipped is the newest commit that the fleet does not take beside its version; nil where none is on record that can be
// read.
func (s *Versions) Skipped(ctx context.Context, current *Version) (*Skipped, bool, error) {
	held, err := s.Holds(ctx, current)
	if err != nil {
		return nil, false, err
	}
	one, seen, err := get[Skipped](ctx, s.store, s.skippedKey())
	if seen == 0 || err != nil {
		return nil, held, unlessBad(err)
	}
	return one.Beside(current, held), held, nil
}

// Skip records a newer commit that the fleet does not take, or with nil that there is none, unless somebody did so
// since the node registered.
func (s *Versions) Skip(ctx context.Context, p *Presence, skipped *Skipped) error {
	op := clientv3.OpDelete(s.skippedKey())
	if skipped != nil {
		op = Put(s.skippedKey(), skipped)
	}
	_, err := s.store.Client.Txn(ctx).
		If(p.Lives(), clientv3.Compare(clientv3.ModRevision(s.skippedKey()), "=", p.Found.SkippedRev)).
		Then(op, s.store.Bells.RingOp()).
		Commit()
	return err
}
