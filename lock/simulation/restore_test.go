package simulation

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pullet/pullet/internal/etcdmodel"
	"github.com/pullet/pullet/state"
)

// TestClaimForgotten: a node whose registration a restored record has, and whose claim it lacks, doubts the record, at
// the latest with its next pull.
func TestClaimForgotten(t *testing.T) {
	seeds, forgot := uint64(20), 0
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, seed)
			defer f.c.Close()
			_, stop := f.begins(t)
			defer stop()
			claimed, ok := f.firstClaim()
			if !ok { // all are frozen
				return
			}
			forgot++
			f.c.Restore(claimed.Revision - 1)
			restored := time.Now()
			time.Sleep(20 * time.Minute)
			for _, w := range f.c.Writes() {
				if strings.HasSuffix(w.Key, "/config_state/store") && w.Time.After(restored) {
					return
				}
			}
			t.Errorf("seed %d: nobody misses the claim %s of revision %d", seed, claimed.Key, claimed.Revision)
		})
	}
	if forgot < int(seeds)/2 {
		t.Errorf("in %d of %d fleets a claim was forgotten", forgot, seeds)
	}
}

// begins lets the hosts run, without a storm, until they are stopped.
func (f *fleet) begins(t *testing.T) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var hosts sync.WaitGroup
	for _, h := range f.hosts {
		hosts.Go(func() { h.run(ctx) })
	}
	return ctx, func() {
		cancel()
		hosts.Wait()
	}
}

// firstClaim waits until somebody claims a slot.
func (f *fleet) firstClaim() (etcdmodel.Write, bool) {
	for range 600 {
		time.Sleep(time.Second)
		for _, w := range f.c.Writes() {
			if strings.Contains(w.Key, "/slot/") && w.Created {
				return w, true
			}
		}
	}
	return etcdmodel.Write{}, false
}

// TestFleetRestored: in a store that went back in time nobody is admitted during the grace time, nor, once a node
// reported that it knows better, until an operator accepts the store; then all go on.
func TestFleetRestored(t *testing.T) {
	seeds, seen := uint64(50), 0
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, seed)
			defer f.c.Close()
			ctx, stop := f.begins(t)
			time.Sleep(40 * time.Second)
			then := f.c.Revision()
			time.Sleep(f.upTo(time.Minute))
			f.c.Restore(then)
			restored := time.Now().Add(time.Second) // what was asked before may start still
			time.Sleep(20 * time.Minute)
			accepted := time.Now()
			operator := state.Over(f.c.Connect("operator").Client(), "f", f.clock)
			for operator.Doubts.Accept(ctx, "operator") != nil {
				time.Sleep(time.Second)
			}
			time.Sleep(20 * time.Minute)
			stop()
			noticed := accepted // by the first that saw more
			for _, w := range f.c.Writes() {
				if strings.HasSuffix(w.Key, "/config_state/store") && !w.Deleted && w.Time.After(restored) && w.Time.Before(noticed) {
					noticed = w.Time
				}
			}
			if noticed.Before(accepted) {
				seen++
			}
			holds := map[string]bool{} // since before
			for _, e := range f.log {
				switch {
				case e.what != "start" || !e.gated:
				case e.at.After(restored) && e.at.Before(restored.Add(state.Grace)) && !holds[e.node+" "+e.rollout]:
					t.Fatalf("seed %d: in the grace time: %s", seed, e.tell(f.began))
				case !e.at.After(noticed.Add(time.Second)):
					holds[e.node+" "+e.rollout] = true
				case e.at.Before(accepted) && !holds[e.node+" "+e.rollout]:
					t.Fatalf("seed %d: %s", seed, e.tell(f.began))
				}
			}
		})
	}
	if seen < int(seeds)/5 {
		t.Errorf("the restore was noticed in %d of %d fleets only", seen, seeds)
	}
}
