package simulation

import (
	"context"
	"flag"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var restores = flag.Bool("restore", false, "also restore the store to an older revision: nothing guards the fleet against that yet")

// TestFleetRestored: in a store that went back in time no gated step starts until an operator says that it may.
func TestFleetRestored(t *testing.T) {
	if !*restores {
		t.Skip("there is no guard yet: go test ./lock/simulation -run TestFleetRestored -restore")
	}
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(seed)
			defer f.c.close()
			ctx, cancel := context.WithCancel(t.Context())
			var hosts sync.WaitGroup
			for _, h := range f.hosts {
				hosts.Go(func() { h.run(ctx) })
			}
			time.Sleep(40 * time.Second)
			then := f.c.now()
			time.Sleep(f.upTo(time.Minute))
			f.c.restore(then)
			restored := time.Now().Add(time.Second) // what was asked before may start still
			time.Sleep(20 * time.Minute)
			cancel()
			hosts.Wait()
			for _, e := range f.log {
				if e.what == "start" && e.gated && e.at.After(restored) {
					t.Fatalf("seed %d: %s", seed, e.tell(f.began))
				}
			}
		})
	}
}
