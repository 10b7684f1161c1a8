package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/lock"
)

// progress shows what a long pull is at: on a terminal in one line that is drawn over, elsewhere a line for each new
// reason to wait, and every half minute one for the steps that came since.
type progress struct {
	w     io.Writer
	live  bool
	loud  bool         // what commands print stays; else a terminal shows the last line of it
	bytes func() int64 // that a fetch has received so far; nil: it is not known

	mu    sync.Mutex
	phase agent.PhaseName
	began time.Time // the phase, or what else is done
	doing string    // what else is done
	said  string    // the last line that a command printed
	wait  *lock.Wait
	steps int
	last  string
	now   map[string]apply.Begun // the steps that run, by their ids
	since map[string]time.Time
	told  string // the last line, but for how long it is so
	drawn time.Time
}

// The rhythm of progress: how often a terminal is redrawn at most, and anything else written to at least.
const (
	redrawEvery = 50 * time.Millisecond
	tellEvery   = 30 * time.Second
)

// newProgress starts showing; stop takes the line away and waits until nothing more is written.
func newProgress(ctx context.Context, w io.Writer) (p *progress, stop func()) {
	p = &progress{w: w, live: drawable(w), now: map[string]apply.Begun{}, since: map[string]time.Time{}, began: time.Now()}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.repeat(ctx)
	}()
	return p, func() {
		cancel()
		<-done
		p.clear()
	}
}

// repeat says again from time to time what takes so long.
func (p *progress) repeat(ctx context.Context) {
	every := tellEvery
	if p.live {
		every = time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.mu.Lock()
			p.tell()
			p.mu.Unlock()
		}
	}
}

// tell writes the state as it is; p.mu is held.
func (p *progress) tell() {
	text, since := "", ""
	if p.phase == agent.PhaseFetch {
		p.doing = p.phaseText() // more came
	}
	switch {
	case p.wait != nil:
		text, since = p.wait.Error(), " (for "+ago(p.wait.Since)+")"
	case len(p.now) > 0:
		b := p.oldest()
		doing := b.Doing
		if p.live && p.said != "" {
			doing = p.said
		}
		text, since = fmt.Sprintf("%s: %s: %s", b.Place(), b.Title, doing), " (for "+ago(p.since[b.ID])+")"
	case p.steps > 0 && (p.phase == "" || p.phase == agent.PhaseApply):
		text = fmt.Sprintf("%s done, the last: %s", count(p.steps, "step"), p.last)
	case p.doing != "":
		text, since = p.doing, " (for "+ago(p.began)+")"
	default:
		return
	}
	p.drawn = time.Now()
	if p.live {
		room := proseWidth(p.w) - 1 - len(since)
		own(p.w, "\r\x1b[K"+shorten(safetext.Line(text, 1000), room)+since)
	} else if text != p.told {
		fmt.Fprintln(p.w, text)
	}
	p.told = text
}

// Waiting shows a new reason to wait.
func (p *progress) Waiting(w *lock.Wait) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait = w
	p.tell()
}

// phaseText says what a pull does in a phase; "": what it does is said otherwise.
func (p *progress) phaseText() string {
	switch p.phase {
	case agent.PhaseJoin:
		return "opening the fleet's record"
	case agent.PhaseFetch:
		if p.bytes != nil {
			if n := p.bytes(); n > 0 {
				return "fetching the repositories: " + bytesText(n) + " so far"
			}
		}
		return "fetching the repositories"
	case agent.PhaseAgree:
		return "agreeing with the fleet on a version"
	case agent.PhaseCompile:
		return "compiling the version for this host"
	case agent.PhaseApply:
		return "applying"
	case agent.PhasePublish:
		return "recording what came of it"
	}
	return ""
}

// Phase notes what the pull does from now on.
func (p *progress) Phase(name agent.PhaseName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase, p.began, p.wait = name, time.Now(), nil
	p.doing = p.phaseText()
}

// Doing notes what is done from now on where that is no pull.
func (p *progress) Doing(text string) {
	if p == nil { // nobody looks
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing = text
}

// Begin notes a step that begins to change something.
func (p *progress) Begin(b apply.Begun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now[b.ID], p.since[b.ID], p.said = b, time.Now(), ""
}

// oldest is the step that has run for the longest time; p.mu is held.
func (p *progress) oldest() (first apply.Begun) {
	for id, b := range p.now {
		if first.ID == "" || p.since[id].Before(p.since[first.ID]) {
			first = b
		}
	}
	return first
}

// Step notes a step that ended.
func (p *progress) Step(s *apply.StepReport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait = nil
	delete(p.now, s.Job+"/"+s.Step)
	if s.Ended() {
		p.last = s.Title()
		p.steps++
	}
	if p.live && time.Since(p.drawn) > redrawEvery {
		p.tell()
	}
}

// Live shows what a command of a step prints, as it comes, such as what a package manager downloads.
func (p *progress) Live(step, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said = line; p.loud {
		p.clear()
		fmt.Fprintf(p.w, "%s: %s\n", step, line)
	} else if p.live && time.Since(p.drawn) > redrawEvery {
		p.tell()
	}
}

// clear takes the live line away.
func (p *progress) clear() {
	if p.live {
		own(p.w, "\r\x1b[K")
	}
}
