// Package patience waits for conditions in tests. It looks again and again until a deadline, which is longer on a busy
// machine. Tests only.
package patience

import (
	"context"
	"testing"
	"time"
)

const (
	usual      = 20 * time.Second      // deadline of Until and Succeeds on an idle machine
	reserve    = 5 * time.Second       // time that a test keeps before its own deadline to report the failure
	firstPause = time.Millisecond      // between the first two looks; each pause is half as long again
	lastPause  = 50 * time.Millisecond // longest pause between two looks
)

// Until waits until the condition holds. It fails the test after 20 seconds, stretched by the speed of the machine.
// What names the condition in the failure.
func Until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	UntilWithin(t, usual, what, condition)
}

// UntilWithin is Until with a deadline of its own: d on an idle machine, and longer on a busy one.
func UntilWithin(t testing.TB, d time.Duration, what string, condition func() bool) {
	t.Helper()
	if took, held := poll(t, Stretch(d), condition); !held {
		t.Fatalf("%s: not within %s", what, took)
	}
}

// Succeeds waits until the operation returns no error, as long as Until. The failure has its last error.
func Succeeds(t testing.TB, what string, operation func() error) {
	t.Helper()
	SucceedsWithin(t, usual, what, operation)
}

// SucceedsWithin is Succeeds with a deadline of its own: d on an idle machine, and longer on a busy one.
func SucceedsWithin(t testing.TB, d time.Duration, what string, operation func() error) {
	t.Helper()
	var err error
	took, done := poll(t, Stretch(d), func() bool {
		err = operation()
		return err == nil
	})
	if !done {
		t.Fatalf("%s: still fails after %s: %v", what, took, err)
	}
}

// Stays looks again and again for the time d, which is not stretched, and fails the test as soon as the condition does
// not hold. It is for events that must not happen: d has to give them a real chance.
func Stays(t testing.TB, d time.Duration, what string, condition func() bool) {
	t.Helper()
	took, ended := poll(t, d, func() bool { return !condition() })
	if ended {
		t.Fatalf("%s: no longer after %s", what, took)
	}
	if took < d {
		t.Fatalf("%s: the test ended after %s of %s", what, took, d)
	}
}

// Wait reports whether the condition holds within d, which is longer on a busy machine, and before ctx ends. It is for
// goroutines that cannot fail the test.
func Wait(ctx context.Context, d time.Duration, condition func() bool) bool {
	_, held := look(ctx, time.Now().Add(Stretch(d)), condition)
	return held
}

// poll looks until the condition holds, the limit is over or the test has to end. It returns how long it waited.
func poll(t testing.TB, limit time.Duration, condition func() bool) (took time.Duration, held bool) {
	ctx := t.Context()
	if ctx.Err() != nil { // a cleanup, which waits after the test
		ctx = context.WithoutCancel(ctx)
	}
	return look(ctx, endOf(t, time.Now().Add(limit)), condition)
}

// look looks until the condition holds, or until end or the end of ctx. It looks at least once, and once more at end.
func look(ctx context.Context, end time.Time, condition func() bool) (took time.Duration, held bool) {
	began := time.Now()
	for pause := firstPause; ; pause = min(pause+pause/2, lastPause) {
		if condition() {
			return time.Since(began), true
		}
		left := time.Until(end)
		if left <= 0 {
			return time.Since(began), false
		}
		select {
		case <-ctx.Done():
			return time.Since(began), false
		case <-time.After(min(pause, left)):
		}
	}
}

// endOf returns the end of a wait: the test's own deadline less the reserve, if that is before end.
func endOf(t testing.TB, end time.Time) time.Time {
	limited, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok || inVirtualTime() { // where it panics
		return end
	}
	if last, ok := limited.Deadline(); ok && last.Add(-reserve).Before(end) {
		return last.Add(-reserve)
	}
	return end
}
