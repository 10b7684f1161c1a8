package agent

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// compare looks whether the fleet's record went back in time, because etcd restarted or does not know the node's lease any more: the others learn within
// the grace time that this node knows better and what it holds, also while a long step runs. It runs beside the pull.
func (p *pull) compare(ctx context.Context, store *state.Store, seen state.Origin, next time.Duration) {
	held := p.holds()
	_, err := store.Guard(ctx, p.config.Node.Name, seen)
	var back *state.WentBackError
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
}

// warnUntold warns that a record which went back in time could not be told of this node: it goes on without.
func (p *pull) warnUntold(err error) {
	if err != nil {
		p.log.WithError(err).Warn("the fleet does not know what this node holds and doubts")
	}
}

// doubts tells a record that went back in time that this node lives, until after its next pull: it does not register there.
func (p *pull) doubts(ctx context.Context, store *state.Store, back *state.WentBackError, next time.Duration) error {
	if back == nil {
		return nil
	}
	return store.Explain(store.Doubts(ctx, p.config.Node.Name, back, next))
}

// holds are the places that the node holds now: its slot, and those at serialized steps.
func (p *pull) holds() (out []*state.HeldPlace) {
	if slot := p.held.Load(); slot != nil {
		out = append(out, slot)
	}
	return append(out, p.inSteps.all()...)
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
func (p *pull) putBack(ctx context.Context, store *state.Store, back *state.WentBackError, held *state.HeldPlace) error {
	if back == nil || held == nil {
		return nil
	}
	_, err := lock.PutBack(ctx, store, held, store.Doubted())
	return store.Explain(err)
}

// acceptedWithout tells a record that an operator accepted what it may have forgotten of this node: the slot that it holds, and that it is through. The
// node is registered before: a copy of this host's disk, which is refused, holds nothing.
func (p *pull) acceptedWithout(ctx context.Context, store *state.Store, presence *state.Presence) error {
	p.local.Through = ""
	if p.local.Held == nil {
		return nil
	}
	claimed, err := lock.PutBack(ctx, store, p.local.Held, presence.Lives())
	presence.Claims(claimed)
	return err
}
