package main

import (
	"context"
	"hash/fnv"
	"io"
	"time"
)

// splayOf is how long a node's pull waits before it begins, of so much at most. It is always the same for a node: hosts
// that cron starts at the same minute are spread, and the time between the pulls of each stays that of cron, from which
// the length of its lease comes.
func splayOf(node string, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, node) // a hash takes everything
	return time.Duration(h.Sum64() % uint64(most))
}

// standBy waits for a time, unless a signal stops the command.
func standBy(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	end := time.NewTimer(d)
	defer end.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-end.C:
		return nil
	}
}
