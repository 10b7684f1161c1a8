package agent

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// places are what the node runs and holds, and what it tells the fleet of that where the record went back in time. They
// may be used by several goroutines.
type places struct {
	node   string
	log    *logrus.Entry
	runs   atomic.Pointer[state.Version]
	slot   atomic.Pointer[state.HeldPlace]
	steps  stepPlaces
	took   atomic.Bool // this pull took a place at a serialized step
	missed atomic.Bool // the record was restored or replaced, and it was noticed in mid-run
}

// mayBeInStep reports that the node may hold places at serialized steps: it did when it registered, or this pull took
// some. Nobody else takes places for it.
func (p *places) mayBeInStep(registered *state.Presence) bool {
	return registered.Found.InStep || p.took.Load()
}

// compare looks whether the fleet's record went back in time, because etcd restarted or does not know the node's lease
// any more: the others learn within the grace time that this node knows better and what it holds, also while a long
// step runs. It runs beside the pull.
func (p *places) compare(
	ctx context.Context,
	store *state.Store,
	seen state.Origin,
	next time.Duration,
) (back *state.WentBackError) {
	held := p.all()
	_, err := store.Doubts.Guard(ctx, p.node, seen)
	if errors.As(err, &back) {
		first := !p.missed.Swap(true)
		if first {
			p.log.Error(err)
		}
		err = nil
		for _, one := range held {
			err = errors.Join(err, p.putBack(ctx, store, back, one))
		}
		if first {
			err = errors.Join(err, p.doubts(ctx, store, back, next))
		}
	}
	if len(held) > 0 {
		p.warnUntold(err)
	}
	return back
}

// warnUntold warns that a record which went back in time could not be told of this node: it goes on without.
func (p *places) warnUntold(err error) {
	if err != nil {
		p.log.WithError(err).Warn("the fleet does not know what this node holds and doubts")
	}
}

// doubts tells a record that went back in time that this node lives and what it runs, until after its next pull: it
// does not register there.
func (p *places) doubts(ctx context.Context, store *state.Store, back *state.WentBackError, next time.Duration) error {
	if back == nil {
		return nil
	}
	return store.Explain(store.Doubts.Tell(ctx, p.node, back, p.runs.Load(), next))
}

// all are the places that the node holds now: its slot, and those at serialized steps.
func (p *places) all() (out []*state.HeldPlace) {
	if slot := p.slot.Load(); slot != nil {
		out = append(out, slot)
	}
	return append(out, p.steps.all()...)
}

// stepPlaces are the places at serialized steps that a run holds. They may be used by several goroutines.
type stepPlaces struct {
	mu     sync.Mutex
	byTurn map[*lock.Turn]*state.HeldPlace
}

func (s *stepPlaces) add(turn *lock.Turn, place *state.HeldPlace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byTurn == nil {
		s.byTurn = map[*lock.Turn]*state.HeldPlace{}
	}
	s.byTurn[turn] = place
}

func (s *stepPlaces) remove(turn *lock.Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byTurn, turn)
}

func (s *stepPlaces) all() []*state.HeldPlace {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.byTurn))
}

// putBack tells a record that went back in time which place the node holds, as long as nobody accepted it.
func (p *places) putBack(
	ctx context.Context,
	store *state.Store,
	back *state.WentBackError,
	held *state.HeldPlace,
) error {
	if back == nil || held == nil {
		return nil
	}
	_, err := lock.PutBack(ctx, store, held, store.Doubts.None())
	return store.Explain(err)
}
