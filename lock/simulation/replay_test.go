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

	"github.com/google/uuid"

	"github.com/pullet/pullet/internal/etcdmodel"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// TestReplay: a seed gives the same history to the nanosecond, whatever the machine does; another seed gives another
// one. It is the product's code that takes its turns here, with faults.
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
func history(t *testing.T, seed uint64) []etcdmodel.Write {
	t.Helper()
	var out []etcdmodel.Write
	synctest.Test(t, func(t *testing.T) {
		c := etcdmodel.New(rand.New(rand.NewPCG(seed, 0)))
		defer c.Close()
		c.Inflict(etcdmodel.Faults{LostAnswer: 0.02, LostRequest: 0.02, Busy: 0.02, DropEvent: 0.1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		admin := storeOf(c.Connect("admin"))
		again(ctx, t, func() error {
			if err := begin(ctx, admin); err != nil {
				return err
			}
			_, err := admin.Versions.Propose(ctx, state.Version{ID: "v1"}, nil, 0)
			return err
		})
		var wait sync.WaitGroup
		var nodes []*etcdmodel.Conn
		for i := range 12 {
			n := c.Connect(fmt.Sprint("node", i))
			nodes = append(nodes, n)
			wait.Go(func() { turn(ctx, t, n) })
		}
		time.Sleep(5 * time.Second)
		nodes[2].Inflict(etcdmodel.Faults{Cut: true})
		time.Sleep(20 * time.Second)
		c.Compact()
		nodes[2].Inflict(etcdmodel.Faults{})
		wait.Wait()
		out = c.Writes()
	})
	return out
}

// storeOf is the fleet's record over a connection. Its clock is the bubble's, so that a node notices in virtual time
// that it is cut off.
func storeOf(n *etcdmodel.Conn) *state.Store {
	began := time.Now()
	return state.Over(n.Client(), "f", func() time.Duration { return time.Since(began) })
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
func turn(ctx context.Context, t *testing.T, n *etcdmodel.Conn) {
	s := storeOf(n)
	q := request("web", 2)
	again(ctx, t, func() (err error) {
		q.Version, q.VersionRev, err = s.Versions.Current(ctx)
		return err
	})
	again(ctx, t, func() (err error) {
		q.Presence, err = s.Presences.Register(ctx, state.Node{Name: n.Name(), Role: "web", UUID: uuidOf(n.Name())}, state.Alive{Owner: n.Name()}, nil, time.Minute)
		return err
	})
	s.Presences.KeepAlive(ctx, q.Presence, func() bool { return true }, func(bool) {})
	slot := lock.NewTurn(s, q)
	again(ctx, t, func() error { return slot.Acquire(ctx) })
	if !slot.Holds() {
		return
	}
	time.Sleep(time.Second)
	again(ctx, t, func() error { return slot.Succeed(ctx) })
}

// request is a node's wish in a group of which so many change at a time. Its node and version are to be filled in.
func request(group string, limit int) lock.Request {
	return lock.Request{Rules: lock.Rules{
		Group: group, Role: group, Limit: func(int) int { return limit },
		GroupOf: func(_ string, m state.Member) string { return state.GroupOf(m.Role) },
	}}
}

// uuidOf is a node's UUID. One by chance would make each life of a seed another.
func uuidOf(node string) string { return uuid.NewSHA1(uuid.Nil, []byte(node)).String() }
