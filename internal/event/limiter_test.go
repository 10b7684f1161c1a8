package event

import (
	"math/rand"
	"strconv"
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

// at is a time of the tests: so many seconds after their beginning.
func at(seconds float64) time.Time {
	return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

// TestLimiter: when a reaction starts for occurrences at some times, looked at when the limiter says and at each of
// them, and for how many each start is.
func TestLimiter(t *testing.T) {
	type start struct {
		at float64
		n  int
	}
	for name, c := range map[string]struct {
		l     Limiter
		seen  []float64
		wants []start
	}{
		"at once":                        {Limiter{Window: time.Hour}, []float64{1, 2}, []start{{1, 1}, {2, 1}}},
		"three of them":                  {Limiter{MinOccurrences: 3, Window: time.Minute}, []float64{0, 10, 20, 30}, []start{{20, 3}}},
		"too rarely":                     {Limiter{MinOccurrences: 3, Window: 15 * time.Second}, []float64{0, 10, 20, 30}, nil},
		"the window slides":              {Limiter{MinOccurrences: 2, Window: 15 * time.Second}, []float64{0, 20, 30}, []start{{30, 2}}},
		"the edge of the window":         {Limiter{MinOccurrences: 2, Window: 10 * time.Second}, []float64{0, 10}, nil},
		"waits for more":                 {Limiter{Window: time.Hour, Timeout: 10 * time.Second, Max: time.Hour}, []float64{0, 5, 9, 30}, []start{{10, 3}, {40, 1}}},
		"each further one begins anew":   {Limiter{Window: time.Hour, Timeout: 10 * time.Second, Reset: true, Max: time.Hour}, []float64{0, 5, 12}, []start{{22, 3}}},
		"never longer than max":          {Limiter{Window: time.Hour, Timeout: 10 * time.Second, Reset: true, Max: 20 * time.Second}, []float64{0, 8, 16, 19}, []start{{20, 4}}},
		"limited":                        {Limiter{Window: time.Hour, Delay: 30 * time.Second}, []float64{0, 5, 20}, []start{{0, 1}, {30, 2}}},
		"limited, and out of the window": {Limiter{Window: 10 * time.Second, MinOccurrences: 2, Delay: time.Minute}, []float64{0, 1, 5, 6}, []start{{1, 2}, {61, 2}}},
		"those that made it ready count": {Limiter{Window: 5 * time.Second, MinOccurrences: 2, Timeout: 20 * time.Second, Max: time.Hour}, []float64{0, 1}, []start{{21, 2}}},
	} {
		var got []start
		tally := state.Tally{}
		look := time.Time{}
		judge := func(now time.Time) {
			var v Verdict
			if tally, v = c.l.Judge(tally, now); v.Starts {
				got = append(got, start{now.Sub(at(0)).Seconds(), v.Occurrences})
				tally = Start(tally, now)
			}
			look = v.Look
		}
		until := func(now time.Time) {
			for !look.IsZero() && !look.After(now) {
				judge(look)
			}
		}
		for _, s := range c.seen {
			until(at(s))
			tally = Count(tally, at(s), 1)
			judge(at(s))
		}
		until(at(10_000))
		if len(got) != len(c.wants) {
			t.Errorf("%s: starts %v, want %v", name, got, c.wants)
			continue
		}
		for i := range got {
			if got[i] != c.wants[i] {
				t.Errorf("%s: starts %v, want %v", name, got, c.wants)
				break
			}
		}
	}
}

// TestLimiterHolds: whatever happens when, and whenever somebody looks: a reaction starts at most once in its delay,
// not later than it waits for more unless it is limited, and each occurrence is answered once, counts still, or fell
// out of the window.
func TestLimiterHolds(t *testing.T) {
	for seed := range int64(2000) {
		r := rand.New(rand.NewSource(seed))
		seconds := func(most int) time.Duration { return time.Duration(r.Intn(most*1000)) * time.Millisecond }
		l := Limiter{
			MinOccurrences: r.Intn(5), Window: time.Second + seconds(100), Delay: seconds(60), Timeout: seconds(30), Reset: r.Intn(2) == 0,
		}
		l.Max = l.Timeout + seconds(60)
		if problem := limits(r, l); problem != "" {
			t.Fatalf("seed %d, %+v: %s", seed, l, problem)
		}
	}
}

// limits runs a limiter in virtual time, and says what it did wrong.
func limits(r *rand.Rand, l Limiter) string {
	tally, now, look := state.Tally{}, at(0), time.Time{}
	counted, answered, fell := 0, 0, 0
	var started, ready time.Time
	have := func(t state.Tally) (n int) {
		for _, s := range t.Seen {
			n += s.N
		}
		return n
	}
	judge := func() string {
		before := have(tally)
		var v Verdict
		tally, v = l.Judge(tally, now)
		fell += before - have(tally)
		if look = v.Look; !v.Starts {
			if tally.Ready.IsZero() {
				ready = time.Time{}
			} else if ready.IsZero() {
				ready = tally.Ready
			}
			if !tally.Ready.IsZero() && now.Sub(ready) > l.Max && now.Sub(started) >= l.Delay {
				return "it waits longer than its max"
			}
			if have(tally) > 0 && look.IsZero() {
				return "it counts occurrences that nobody looks at again"
			}
			return ""
		}
		switch {
		case !started.IsZero() && now.Sub(started) < l.Delay:
			return "it starts again after " + now.Sub(started).String()
		case v.Occurrences != have(tally), v.Occurrences < l.MinOccurrences:
			return "it starts for another number of occurrences than there are"
		case !tally.Ready.IsZero() && now.Sub(tally.Ready) > l.Max && !started.Add(l.Delay).Equal(now):
			return "it starts too late: " + now.Sub(tally.Ready).String()
		}
		answered, started, ready = answered+v.Occurrences, now, time.Time{}
		tally = Start(tally, now)
		return ""
	}
	for range 200 {
		next := now.Add(time.Duration(r.Intn(20_000)) * time.Millisecond)
		for !look.IsZero() && !look.After(next) {
			if now = look; now.Before(at(0)) {
				return "it looks into the past"
			}
			if problem := judge(); problem != "" {
				return problem
			}
		}
		now = next
		if r.Intn(4) > 0 {
			late := time.Duration(0)
			if r.Intn(5) == 0 { // a host that was offline tells it later
				late = time.Duration(r.Intn(120_000)) * time.Millisecond
			}
			n := 1 + r.Intn(3)
			tally, counted = Count(tally, now.Add(-late), n), counted+n
		}
		if problem := judge(); problem != "" {
			return problem
		}
		if left := counted - answered - fell - have(tally); left != 0 {
			return "occurrences that nobody knows: " + strconv.Itoa(left)
		}
	}
	return ""
}

// TestClocks: times that lie ahead, by the clock of an earlier reactor, hold nothing back for longer than they would by
// this one's.
func TestClocks(t *testing.T) {
	l := Limiter{Window: time.Hour, Delay: time.Minute, Timeout: time.Second, Max: time.Second}
	tally := Count(state.Tally{Reacted: at(1e6), Ready: at(1e6)}, at(1e6), 1)
	tally, v := l.Judge(tally, at(0))
	if v.Starts || v.Look.After(at(60)) {
		t.Errorf("%+v", v)
	}
	if _, v = l.Judge(tally, at(60)); !v.Starts {
		t.Errorf("%+v", v)
	}
}

// TestCountMerges: of many occurrences none is lost, and the closest are counted as one.
func TestCountMerges(t *testing.T) {
	tally := state.Tally{}
	for i := range 1000 {
		tally = Count(tally, at(float64(i%7)*1000+float64(i)/1000), 1)
	}
	n := 0
	for i, s := range tally.Seen {
		if n += s.N; i > 0 && s.At.Before(tally.Seen[i-1].At) {
			t.Error("not in order")
		}
	}
	if n != 1000 || len(tally.Seen) != state.MaxSeen {
		t.Errorf("%d occurrences at %d times", n, len(tally.Seen))
	}
}
