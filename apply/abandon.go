package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pullet/pullet/apply/hostfile"
)

// hangGrace is how long an action may take to return after its time is over. A command needs up to two killGraces of
// it.
const hangGrace = 30 * time.Second

// Abandoned are the actions that hang: their time is over and they have not returned. A system call on a dead file
// system cannot be ended, so runs go on without them, and nothing works on the same things until they return. An agent
// keeps one Abandoned for all its runs. The zero value is empty. It is safe for concurrent use.
type Abandoned struct {
	Grace time.Duration // how long an action may take to return after its time is over; 0 is 30 seconds

	mu   sync.Mutex
	hung map[*HungError][]string // with what each works on
}

// HungError says that an action did not return when its time was over. It is a fault of the host.
type HungError struct {
	Step  string // "job/name"
	Doing string // check, change or reaction
	Since time.Time
}

func (e *HungError) Error() string {
	return fmt.Sprintf(
		"%s: its %s has not returned since %s and is abandoned; a file system of the host may hang: see ps (state D) "+
			"and dmesg",
		e.Step,
		e.Doing,
		e.Since.UTC().Format(time.RFC3339),
	)
}

// HostFault makes it one of this host alone.
func (e *HungError) HostFault() bool { return true }

// abandoned is the agent's record, or the host's own.
func (h *Host) abandoned() *Abandoned {
	if h.Abandoned != nil {
		return h.Abandoned
	}
	return &h.own
}

// checking is what an action does that only looks.
const checking = "check"

// bounded does something that may hang in a system call, and waits for it until ctx ended and the grace is over. What
// do writes must be its own: it may still run after bounded returned. An action is called in this file alone; a test
// over the source holds the others to it.
func bounded[T any](
	ctx context.Context,
	h *Host,
	s *boundStep,
	doing string,
	do func() (T, error),
) (value T, err error) {
	a := h.abandoned()
	if hung := a.find(s); hung != nil {
		return value, hung
	}
	type answer struct {
		value T
		err   error
	}
	if doing != checking { // of which a run makes thousands
		defer h.bounds(ctx, a.grace())()
	}
	began, returned := time.Now(), make(chan answer, 1)
	go func() {
		value, err := do()
		returned <- answer{value, err}
	}()
	select {
	case r := <-returned:
		return r.value, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-returned:
		return r.value, r.err
	case <-time.After(a.grace()):
	}
	hung := &HungError{s.ID(), doing, began}
	a.add(hung, s.worksOn())
	go func() {
		<-returned
		a.drop(hung)
	}()
	return value, hung
}

func (a *Abandoned) grace() time.Duration {
	if a.Grace > 0 {
		return a.Grace
	}
	return hangGrace
}

// find is an action that hangs and works on what the step works on; nil is none.
func (a *Abandoned) find(s *boundStep) *HungError {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.hung) == 0 {
		return nil
	}
	own := s.worksOn()
	for hung, on := range a.hung {
		if slices.ContainsFunc(own, func(what string) bool { return slices.Contains(on, what) }) {
			return hung
		}
	}
	return nil
}

func (a *Abandoned) add(hung *HungError, on []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hung == nil {
		a.hung = map[*HungError][]string{}
	}
	a.hung[hung] = on
}

func (a *Abandoned) drop(hung *HungError) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.hung, hung)
}

// worksOn names the step and the things that it manages.
func (s *boundStep) worksOn() []string {
	out := []string{"step " + s.ID()}
	if m, ok := s.act.(Manager); ok {
		for _, what := range m.Manages() {
			out = append(out, what.ID)
		}
	}
	return out
}

// compare asks the action what it would change.
func (s *boundStep) compare(ctx context.Context, h *Host) (Change, error) {
	act := s.act
	return bounded(ctx, h, s, checking, func() (Change, error) { return act.Check(ctx, h) })
}

// check compares a step with the host as one of the group.
func (g *group) check(ctx context.Context, s *running) (*seen, error) {
	act, _ := s.step.act.(Preparer)
	h := s.x.options.Host
	check := func() (*seen, error) {
		at, err := h.Entry(s.step.prepares)
		if err != nil {
			return nil, err
		}
		found := &seen{at: at, alone: g.meets(at.Place(), s.step.prepares)}
		if !found.alone {
			found.change, found.prepare, err = act.CheckAt(h, at)
			found.alone = found.prepare == nil && !found.change.Empty()
		}
		if err != nil || found.alone || found.change.Empty() {
			at.Close()
			found.at = nil
			return found, err
		}
		_, err = at.Lstat()
		found.gone = hostfile.NotThere(err)
		return found, nil
	}
	return inline(ctx, s, "check", check, func(found *seen) {
		if found != nil && found.at != nil {
			found.at.Close()
		}
	}, func(hung error) {
		if errors.Is(ctx.Err(), context.Canceled) {
			s.endRun(errStopped)
			return
		}
		s.r.fail(hung)
	})
}

// change lets the action make the change that compare found.
func (s *boundStep) change(ctx context.Context, h *Host, c Change) (Output, error) {
	act := s.act
	return bounded(ctx, h, s, "change", func() (Output, error) { return act.Apply(ctx, h, c) })
}

// answer lets an action react to a change of what it watches.
func (s *boundStep) answer(ctx context.Context, h *Host, reactor Reactor) (Output, error) {
	return bounded(ctx, h, s, "reaction", func() (Output, error) { return reactor.React(ctx, h) })
}

// changeTogether lets an action make the changes of several.
func (s *boundStep) changeTogether(ctx context.Context, h *Host, act Joiner, all []Action) error {
	_, err := bounded(
		ctx,
		h,
		s,
		"change",
		func() (struct{}, error) { return struct{}{}, act.ApplyTogether(ctx, h, all) },
	)
	return err
}

// isThere looks for a path. Where that cannot be told, something may be there.
func (s *boundStep) isThere(ctx context.Context, h *Host, path string) bool {
	gone, err := bounded(ctx, h, s, checking, func() (bool, error) { return h.gone(path), nil })
	return err != nil || !gone
}
