package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// TestReplay: a seed gives the same history to the nanosecond, whatever the machine does; another seed gives another one. It is the
// product's code that takes its turns here, with faults.
func TestReplay(t *testing.T) {
	for seed := range uint64(5) {
		first := history(t, seed)
		if again := history(t, seed); !slices.Equal(first, again) {
			for n := range min(len(first), len(again)) {
				if first[n] != again[n] {
					t.Fatalf("seed %d, write %d of %d and %d:\n%+v\n%+v", seed, n, len(first), len(again), first[n], again[n])
				}
			}
			t.Fatalf("seed %d: %d and %d writes", seed, len(first), len(again))
		}
		if other := history(t, seed+1000); slices.Equal(first, other) {
			t.Errorf("seeds %d and %d have the same history", seed, seed+1000)
		}
	}
}

// history is what a small fleet writes that takes turns.
func history(t *testing.T, seed uint64) []write {
	t.Helper()
	var out []write
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(rand.New(rand.NewPCG(seed, 0)))
		defer c.close()
		c.inflict(faults{lostAnswer: 0.02, lostRequest: 0.02, busy: 0.02, dropEvent: 0.1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		admin := &state.Store{Client: c.connect("admin").client()}
		again(ctx, t, func() error {
			_, err := admin.Propose(ctx, state.Version{ID: "v1"}, 0)
			return err
		})
		var wait sync.WaitGroup
		for i := range 12 {
			n := c.connect(fmt.Sprint("node", i))
			wait.Go(func() { turn(ctx, t, n) })
		}
		time.Sleep(5 * time.Second)
		c.connections[3].inflict(faults{cut: true})
		time.Sleep(20 * time.Second)
		c.compact()
		c.connections[3].inflict(faults{})
		wait.Wait()
		out = c.writes()
	})
	return out
}

// again does something until it succeeds.
func again(ctx context.Context, t *testing.T, do func() error) {
	for {
		err := do()
		if err == nil || errors.Is(err, lock.ErrFenced) { // freed, and the answer was lost
			return
		}
		if ctx.Err() != nil {
			t.Error(err)
			return
		}
		time.Sleep(time.Second)
	}
}

// turn registers a node, waits for its turn, and changes for a second. The node lives on until ctx ends.
func turn(ctx context.Context, t *testing.T, n *connection) {
	s := &state.Store{Client: n.client()}
	q := lock.Request{Group: "web", Limit: func(int) int { return 2 }, Members: map[string]string{}}
	again(ctx, t, func() (err error) {
		q.Version, q.VersionRev, err = s.Current(ctx)
		return err
	})
	again(ctx, t, func() (err error) {
		q.Presence, err = s.Register(ctx, state.Node{Name: n.name, Role: "web"}, state.Alive{Owner: n.name}, nil, time.Minute)
		return err
	})
	again(ctx, t, func() error { return s.KeepAlive(ctx, q.Presence) })
	var slot *lock.Slot
	again(ctx, t, func() (err error) {
		slot, err = lock.Acquire(ctx, s, q)
		return err
	})
	if slot == nil {
		return
	}
	time.Sleep(time.Second)
	again(ctx, t, func() error { return slot.Succeed(ctx) })
}
