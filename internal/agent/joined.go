package agent

import "github.com/pullet/pullet/state"

// joined is the fleet's record as a pull sees it. The parts of the pull read it; what they learn comes in by the
// methods below.
type joined struct {
	store    *state.Store // nil: unreachable
	presence *state.Presence
	current  *state.Version // the fleet's
	agreed   int64          // the revision at which it was agreed
	wentBack bool           // the record was restored or replaced
}

// opened is a record that is read and in which the node is not registered; nil where etcd is away.
func (j *joined) opened(store *state.Store) { j.store = store }

// registered is the record in which the node is registered now.
func (j *joined) registered(store *state.Store, presence *state.Presence) {
	j.store, j.presence = store, presence
}

// drop asks the record nothing more in this pull.
func (j *joined) drop() { j.store = nil }

// without goes on without a record that is away, or that went back.
func (j *joined) without(wentBack bool) { j.wentBack = wentBack }

// reads is the fleet's version as it is read; others may propose a newer one meanwhile.
func (j *joined) reads(current *state.Version) { j.current = current }

// agrees is the revision at which the fleet's version was agreed.
func (j *joined) agrees(rev int64) { j.agreed = rev }
