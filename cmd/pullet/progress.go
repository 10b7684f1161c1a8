package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
)

// progress shows what a long pull is at: on a terminal in one line that is drawn over, elsewhere a line for each new reason to wait and
// one every half minute.
type progress struct {
	w    io.Writer
	live bool

	mu    sync.Mutex
	wait  *lock.Wait
	steps int
	last  string
	drawn time.Time
}

// The rhythm of progress: how often a terminal is redrawn at most, and anything else written to at least.
const (
	redrawEvery = 50 * time.Millisecond
	tellEvery   = 30 * time.Second
)

// newProgress starts showing; stop takes the line away and waits until nothing more is written.
func newProgress(ctx context.Context, w io.Writer) (p *progress, stop func()) {
	p = &progress{w: w, live: terminal(w)}
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
	text := ""
	switch {
	case p.wait != nil:
		text = fmt.Sprintf("%s (for %s)", p.wait.Error(), ago(p.wait.Since))
	case p.steps > 0:
		text = fmt.Sprintf("%d steps done, the last: %s", p.steps, p.last)
	default:
		return
	}
	p.drawn = time.Now()
	if p.live {
		fmt.Fprintf(p.w, "\r\x1b[K%s", shorten(text, 150))
	} else {
		fmt.Fprintln(p.w, text)
	}
}

// Waiting is told each new reason to wait.
func (p *progress) Waiting(w *lock.Wait) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wait = w; p.live {
		p.tell()
		return
	}
	fmt.Fprintln(p.w, w.Error())
}

// Step is told each step that ended.
func (p *progress) Step(s *apply.StepReport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait, p.last = nil, s.Job+"/"+s.Step
	p.steps++
	if p.live && time.Since(p.drawn) > redrawEvery {
		p.tell()
	}
}

// Line is told what a command of a step prints, as it comes.
func (p *progress) Line(step, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintf(p.w, "%s: %s\n", step, line)
}

// clear takes the live line away.
func (p *progress) clear() {
	if p.live {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
