package agent

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pullet/pullet/internal/gitremote"
	"github.com/pullet/pullet/puller"
)

// told is a pulse, and what it told last.
func told() (*pulse, *time.Duration) {
	var last time.Duration
	p := newPulse()
	p.tells = func(atMost time.Duration) { last = atMost }
	return p, &last
}

// TestPulse: what goes on inside a part of a pull has a bound of its own, and the time of the part stands still
// meanwhile. Of several things the first that is due counts.
func TestPulse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, last := told()
		is := func(when string, want time.Duration) {
			t.Helper()
			if *last != want {
				t.Errorf("%s: something has to begin or end within %s, want %s", when, *last, want)
			}
		}
		p.work(time.Hour)
		is("a part", time.Hour)
		time.Sleep(20 * time.Minute)
		long := p.during(10 * time.Hour)
		is("a long wait in it", 10*time.Hour)
		short := p.during(time.Minute)
		is("a command beside it", time.Minute)
		time.Sleep(time.Minute)
		short()
		is("the end of the command", 10*time.Hour-time.Minute)
		time.Sleep(9 * time.Hour)
		long()
		is("the end of the wait", 40*time.Minute)
		long() // once more says nothing
		is("the same end", 40*time.Minute)
		p.work(time.Second)
		is("the next part", time.Second)

		inside := p.during(time.Hour)
		p.work(time.Minute) // another part begins while something of the last one goes on
		is("a part that begins meanwhile", time.Hour)
		time.Sleep(time.Hour)
		inside()
		is("that part alone", time.Minute)
	})
}

// TestPulseHangs: what is not over by its bound hangs, a minute later for the other hosts; the end of it is a sign of
// life.
func TestPulseHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _ := told()
		p.work(time.Hour)
		over := p.during(time.Minute)
		time.Sleep(2*time.Minute - time.Second)
		if !p.atWork() {
			t.Error("an agent hangs whose command is not over for a minute")
		}
		time.Sleep(time.Second)
		if p.atWork() {
			t.Error("an agent is at work whose command had to be over a minute ago")
		}
		over()
		if !p.atWork() {
			t.Error("an agent hangs whose command ended late")
		}
	})
}

// TestWaitsAreBounded: a wait says how long it may take, whichever it is, and the end of it is told, too.
func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, last := told()
		p.work(time.Minute)
		w := &waits{allowed: time.Hour, pulse: p}
		look := func(context.Context) error { return check(t, *last, time.Hour+settleFor) }
		if err := w.within(t.Context(), look); err != nil {
			t.Error(err)
		}
		if err := w.rest(t.Context(), func(ctx context.Context) { look(ctx) }); err != nil {
			t.Error(err)
		}
		if err := w.standBy(t.Context(), look); err != nil {
			t.Error(err)
		}
		check(t, *last, time.Minute)
		if err := (&waits{allowed: time.Hour}).within(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Errorf("without a pulse: %v", err)
		}
	})
}

func check(t *testing.T, got, want time.Duration) error {
	t.Helper()
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	return nil
}

// TestPhasesAreBounded: the bound of a phase is above what bounds each of its parts.
func TestPhasesAreBounded(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Repositories = make([]puller.Source, 3)
	s, wait := &self{config: c}, 2*time.Hour
	fetch := 3 * gitremote.Limits{}.Whole().Time
	for phase, least := range map[PhaseName]time.Duration{
		PhaseJoin: 10 * time.Minute, PhaseFetch: 3 * fetch, PhaseAgree: fetch, PhaseCompile: fetch, PhaseWait: 10 * time.Minute,
		PhaseApply:   c.Agent.Deadline.Std() + wait + c.Agent.Finish.Std() + 10*time.Minute,
		PhasePublish: c.Agent.Logs.Timeout.Std() + 10*time.Minute,
	} {
		if got := s.within(phase, wait); got < least {
			t.Errorf("%s may take %s, and that is less than %s", phase, got, least)
		}
	}
}

// TestLoopIsAtWork: an agent tells again and again within which time it is heard of, and between two pulls that is the
// pause, whose end it names.
func TestLoopIsAtWork(t *testing.T) {
	t.Parallel()
	h := newHost(t, "steps: [{name: c, action: cmd.run, parameters: {cmd: 'true'}, runOptions: {timeout: 7s}}]\n")
	h.Agent.Interval, h.Agent.Splay = 3600e9, 0
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all []time.Duration
	var next time.Time
	ctx, end := context.WithCancel(t.Context())
	o := Observer{
		Waiting: nil, Pulled: func(*Outcome, error) {}, AtWork: func(atMost time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, atMost)
		},
		Rests: func(at time.Time) { next = at; end() },
	}
	if err := a.Loop(ctx, o); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(next); left < 50*time.Minute || left > time.Hour {
		t.Errorf("the next pull is in %s", left)
	}
	last := all[len(all)-1]
	if last > time.Hour || last < 50*time.Minute {
		t.Errorf("the pause is %s", last)
	}
	command := func(d time.Duration) bool { return d > 7*time.Second && d < 13*time.Second }
	if !slices.ContainsFunc(all, command) {
		t.Errorf("none is of a command with 7s: %s", all)
	}
}
