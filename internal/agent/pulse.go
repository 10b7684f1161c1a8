package agent

import (
	"sync"
	"time"
)

// pulse tells an agent that hangs from one that is at work. Whatever begins says how long it may take at most; what is
// not over by then hangs. Nothing beats beside the work: a clock that goes on while the agent hangs would say nothing.
type pulse struct {
	tells func(atMost time.Duration) // within which time something begins or ends; nil: nobody asks
	began time.Time

	mu     sync.Mutex
	part   time.Duration               // when the part of a pull is due that goes on, or the pause: since began
	left   time.Duration               // of part, which stands still while something inside it goes on
	inside map[*time.Duration]struct{} // when each of those is due, since began
}

func newPulse() *pulse { return &pulse{began: time.Now(), inside: map[*time.Duration]struct{}{}} }

// work says that the next part of a pull begins, or a pause, and how long it takes at most, without the time of what
// goes on inside it.
func (p *pulse) work(atMost time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part, p.left = time.Since(p.began)+atMost, atMost
	p.tell()
}

// during says that something begins inside a part that has a bound of its own: a wait, a change, a command. What it
// returns says that it is over. It may be called by several goroutines; a nil pulse does nothing.
func (p *pulse) during(atMost time.Duration) (over func()) {
	if p == nil {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Since(p.began)
	if len(p.inside) == 0 {
		p.left = p.part - now
	}
	due := now + atMost
	p.inside[&due] = struct{}{}
	p.tell()
	return sync.OnceFunc(func() { p.over(&due) })
}

// over ends what during began.
func (p *pulse) over(due *time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if delete(p.inside, due); len(p.inside) == 0 {
		p.part = time.Since(p.began) + p.left
	}
	p.tell()
}

// due is when the first of what goes on is due, since began; p.mu is held.
func (p *pulse) due() time.Duration {
	if len(p.inside) == 0 {
		return p.part
	}
	first := time.Duration(1<<63 - 1)
	for due := range p.inside {
		first = min(first, *due)
	}
	return first
}

// tell says by when something has to begin or end; p.mu is held.
func (p *pulse) tell() {
	if p.tells != nil {
		p.tells(p.due() - time.Since(p.began))
	}
}

// leaseGrace is how long after its bound an agent counts as alive for the other hosts.
const leaseGrace = time.Minute

// atWork reports that the agent did not hang.
func (p *pulse) atWork() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.began) < p.due()+leaseGrace
}

// What a part of a pull may take, as docs/node.md lists it. A host that is slow is none that hangs.
const (
	slowHost  = 20 * time.Minute // for what the processor, the disk and the fleet's record of a slow host take
	fetches   = 4                // of a repository in one pull, at most: one that is taken anew is fetched twice
	turnTime  = 5 * time.Minute  // for another process that fetches
	settleFor = time.Minute      // for the requests that end a wait
)

// within is how long a phase of a pull that waits for so long may take, without its waits and changes, which have
// bounds of their own.
func (s *self) within(phase PhaseName, wait time.Duration) time.Duration {
	a := s.config.Agent
	switch phase {
	case PhaseFetch, PhaseAgree, PhaseCompile: // a version may take objects that the host lacks
		one := fetches*a.Git.limits().Whole().Time + turnTime
		return slowHost + time.Duration(len(s.config.Repositories))*one
	case PhaseApply:
		return slowHost + a.Deadline.Std() + wait + a.Finish.Std()
	case PhasePublish:
		return slowHost + a.Logs.Timeout.Std() + a.Traces.Timeout.Std()
	}
	return slowHost
}
