package patience

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// recorder keeps the failure of a test, and ends its goroutine there.
type recorder struct {
	testing.TB
	ctx    context.Context
	failed string
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure returns how a wait fails a test with the given context; "" if it passes.
func failure(ctx context.Context, wait func(t testing.TB)) string {
	r := &recorder{ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait(r)
	}()
	<-done
	return r.failed
}

// TestWaits: a wait ends as soon as its condition is met, and fails at its deadline or the end of the test.
func TestWaits(t *testing.T) {
	for name, c := range map[string]struct {
		wait func(t testing.TB, ready func() bool)
		at   time.Duration // when it is ready
		took time.Duration
		want string
	}{
		"met at once": {func(t testing.TB, ready func() bool) { Until(t, "x", ready) }, 0, 0, ""},
		"met later": {func(t testing.TB, ready func() bool) { Until(t, "x", ready) }, 19 * time.Second,
			19 * time.Second, ""},
		"met at the deadline": {func(t testing.TB, ready func() bool) { Until(t, "x", ready) }, usual, usual, ""},
		"never met": {func(t testing.TB, ready func() bool) { Until(t, "x is ready", ready) }, time.Hour,
			usual, "x is ready: not within 20s"},
		"met within an hour": {func(t testing.TB, ready func() bool) { UntilWithin(t, time.Hour, "x", ready) }, time.Minute,
			time.Minute, ""},
		"test ended": {func(t testing.TB, ready func() bool) { UntilWithin(t, 2*time.Hour, "x is ready", ready) }, 90 * time.Minute,
			time.Hour, "x is ready: not within 1h0m0s"},
		"succeeds": {func(t testing.TB, ready func() bool) { Succeeds(t, "x", errorUnless(ready)) }, time.Second,
			time.Second, ""},
		"never succeeds": {func(t testing.TB, ready func() bool) { Succeeds(t, "start x", errorUnless(ready)) }, time.Hour,
			usual, "start x: still fails after 20s: not ready"},
		"succeeds too late": {func(t testing.TB, ready func() bool) {
			SucceedsWithin(t, time.Second, "start x", errorUnless(ready))
		}, time.Minute, time.Second, "start x: still fails after 1s: not ready"},
		"stays": {func(t testing.TB, ready func() bool) { Stays(t, time.Second, "x", not(ready)) }, time.Minute,
			time.Second, ""},
		"stays until the last look": {func(t testing.TB, ready func() bool) { Stays(t, time.Second, "x is off", not(ready)) },
			time.Second, time.Second, "x is off: no longer after 1s"},
		"never was": {func(t testing.TB, ready func() bool) { Stays(t, time.Second, "x is off", not(ready)) }, 0,
			0, "x is off: no longer after 0s"},
		"stays to the end of the test": {func(t testing.TB, ready func() bool) { Stays(t, 2*time.Hour, "x is off", not(ready)) },
			90 * time.Minute, time.Hour, "x is off: the test ended after 1h0m0s of 2h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				got := failure(ctx, func(t testing.TB) { c.wait(t, func() bool { return time.Since(began) >= c.at }) })
				if got != c.want {
					t.Errorf("failure %q, want %q", got, c.want)
				}
				if took := time.Since(began); took < c.took || took > c.took+lastPause {
					t.Errorf("took %s, want %s", took, c.took)
				}
			})
		})
	}
}

func not(condition func() bool) func() bool { return func() bool { return !condition() } }

func errorUnless(ready func() bool) func() error {
	return func() error {
		if !ready() {
			return errors.New("not ready")
		}
		return nil
	}
}

// TestWaitsInCleanup: a cleanup, where the context of the test has ended, can wait all the same.
func TestWaitsInCleanup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		wait := func(t testing.TB) { Until(t, "x", func() bool { return time.Since(began) > time.Second }) }
		if got := failure(ended, wait); got != "" {
			t.Error(got)
		}
	})
}

// TestWait: it ends as soon as the condition holds, at its deadline, and with its context.
func TestWait(t *testing.T) {
	for name, c := range map[string]struct {
		at, took time.Duration
		holds    bool
	}{
		"in time":         {time.Second, time.Second, true},
		"at its deadline": {time.Hour, time.Minute, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			holds := Wait(t.Context(), time.Minute, func() bool { return time.Since(began) >= c.at })
			if took := time.Since(began); holds != c.holds || took < c.took || took > c.took+lastPause {
				t.Errorf("%s: %v after %s, want %v after %s", name, holds, took, c.holds, c.took)
			}
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if Wait(ended, time.Hour, func() bool { return false }) {
		t.Error("it holds with a context that ended")
	}
}

// TestPauses: pauses are short at first, and grow to a twentieth of a second.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks []time.Time
		Stays(t, usual, "", func() bool { looks = append(looks, time.Now()); return true })
		if first := looks[1].Sub(looks[0]); first != firstPause {
			t.Errorf("first pause: %s, want %s", first, firstPause)
		}
		for i := range looks[2 : len(looks)-1] {
			before, after := looks[i+1].Sub(looks[i]), looks[i+2].Sub(looks[i+1])
			if after < before || after > lastPause {
				t.Errorf("a pause of %s follows one of %s", after, before)
			}
		}
		if n := len(looks); n < 400 || n > 420 {
			t.Errorf("%d looks", n)
		}
	})
}

// limited is a test with a deadline.
type limited struct{ testing.TB }

func (limited) Deadline() (time.Time, bool) {
	return time.Now().Add(reserve + 50*time.Millisecond), true
}

// TestDeadlineOfTest: a wait leaves the test some seconds before its own deadline.
func TestDeadlineOfTest(t *testing.T) {
	for what, c := range map[string]struct {
		t       testing.TB
		d, want time.Duration
	}{
		"the test ends first":      {limited{t}, time.Hour, 50 * time.Millisecond},
		"the wait ends first":      {limited{t}, time.Millisecond, time.Millisecond},
		"the test has no deadline": {struct{ testing.TB }{t}, time.Hour, time.Hour},
	} {
		now := time.Now()
		if got := endOf(c.t, now.Add(c.d)).Sub(now); got.Round(10*time.Second) != c.want.Round(10*time.Second) {
			t.Errorf("%s: after %s, want %s", what, got, c.want)
		}
	}
}

// TestFactor: the slowness is measured again after some seconds, and stays within its limits.
func TestFactor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s speed
		measured := 0
		for _, c := range []struct {
			after        time.Duration
			slow, factor float64
			measured     int
		}{
			{0, 2, 2, 1}, {fresh - 1, 3, 2, 1}, {1, 3, 3, 2}, {fresh, 0.5, 1, 3}, {time.Hour, 1000, mostStretch, 4},
		} {
			<-time.After(c.after)
			if got := s.factor(func() float64 { measured++; return c.slow }); got != c.factor || measured != c.measured {
				t.Errorf("%v after %d measurements, want %v after %d", got, measured, c.factor, c.measured)
			}
		}
	})
}

// TestStretch: a stretched time is at most five times as long, and the same in virtual time.
func TestStretch(t *testing.T) {
	if got := Stretch(time.Minute); got < time.Minute || got > mostStretch*time.Minute {
		t.Error(got)
	}
	if got := slowness(); got <= 0.1 {
		t.Errorf("slowness %v: the measurement does no work", got)
	}
	synctest.Test(t, func(t *testing.T) {
		if got := Stretch(time.Minute); got != time.Minute || !inVirtualTime() {
			t.Error(got)
		}
	})
	if inVirtualTime() {
		t.Error("the clock is behind 2020")
	}
}
