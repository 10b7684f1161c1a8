package lock

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/pullet/pullet/state"
)

// The pauses before the next attempt: the first one where that likely succeeds, the first one otherwise, and the
// longest.
const (
	retryFast = 20 * time.Millisecond
	retrySlow = 50 * time.Millisecond
	retryMost = 5 * time.Second
)

// again retries until there is an answer or ctx ends. The operation must be safe to do twice: an error leaves open
// whether it happened.
func again(ctx context.Context, node string, do func() error) error {
	return retry(ctx, node, retrySlow, do)
}

// retry is again with another first pause.
func retry(ctx context.Context, node string, first time.Duration, do func() error) error {
	for attempt := 0; ; attempt++ {
		err := do()
		if err == nil || isFinal(err) || !pause(ctx, node, attempt, first, retryMost) {
			return err
		}
	}
}

// pause waits before the next attempt, each time twice as long up to a maximum. It reports false when ctx ends first.
func pause(ctx context.Context, node string, attempt int, first, most time.Duration) bool {
	return state.Pause(ctx, jitter(node, attempt, min(most, first<<min(attempt, 10))))
}

// isFinal reports an error that no further attempt changes.
func isFinal(err error) bool {
	lost := errors.Is(err, ErrFenced) || errors.Is(err, state.ErrLeaseLost) || wentBack(err)
	return lost || errors.Is(err, state.ErrTooLarge)
}

// wentBack reports that the fleet's record went back in time: it is not asked again before the node joins anew.
func wentBack(err error) bool {
	_, back := errors.AsType[*state.WentBackError](err)
	return back
}

// jitter spreads the attempts of many nodes: it is between half of d and d, different for each node and attempt.
func jitter(node string, attempt int, d time.Duration) time.Duration {
	h := fnv.New32a()
	fmt.Fprint(h, node, attempt)
	return d/2 + d/2*time.Duration(h.Sum32()%1024)/1024
}
