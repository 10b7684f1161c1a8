package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestSplay: a node has its own part of the time, always the same; many nodes are spread over all of it.
func TestSplay(t *testing.T) {
	const most, nodes, parts = 4 * time.Minute, 1000, 10
	counts := [parts]int{}
	for i := range nodes {
		name := fmt.Sprintf("web%d", i)
		d := splayOf(name, most)
		if d < 0 || d >= most || d != splayOf(name, most) {
			t.Fatalf("%s waits %s", name, d)
		}
		counts[d*parts/most]++
	}
	for i, n := range counts {
		if n < nodes/parts/2 || n > nodes/parts*2 {
			t.Errorf("%d of %d nodes begin in part %d of %d", n, nodes, i, parts)
		}
	}
	if splayOf("web1", 0) != 0 {
		t.Error("without a splay there is a wait")
	}
}

func TestStandBy(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if err := standBy(ctx, time.Nanosecond); err != nil {
		t.Error(err)
	}
	cancel()
	if err := standBy(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
