package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pullet/pullet/internal/durable"
)

// How often the guard looks whether a new program made a pull, and whether one could be made again.
const (
	lookEvery = time.Second
	askEvery  = 15 * time.Second
)

// Guard watches over a new program from outside of it, as the proven one.
type Guard struct {
	*Installed
	AtWork  func() bool                 // the installed program is in the midst of a pull
	Away    func(context.Context) error // why no pull could be made now, whatever the program; nil: one could
	Version func() string               // of the fleet to which the host is being brought; "": to none
	Restart func(context.Context) error // of what runs the program
	Say     func(format string, args ...any)

	watched file // the new program
	since   time.Time
}

// Watch returns when the installed program made a pull. A new one that makes no pull in time is put back before;
// the time begins when Watch sees the program first, and anew when nobody could make a pull. Watch can be called at any
// time, and again after it was killed.
func (g *Guard) Watch(ctx context.Context) error {
	if err := g.restart(ctx); err != nil {
		return err
	}
	for said := ""; ; {
		next, err := g.look(ctx)
		switch {
		case err != nil || next.over:
			return err
		case next.lost != nil:
			return g.putBack(ctx, next.lost)
		case next.why != said:
			g.Say("%s is not the pullet that made the last pull here: %s", g.Path, next.why)
			said = next.why
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next.pause):
		}
	}
}

// verdict is what the guard saw.
type verdict struct {
	over  bool          // the installed program made a pull
	lost  *Proven       // it made no pull in time: this one is to be put back
	why   string        // it has more time
	pause time.Duration // until the next look
}

// look judges the installed program.
func (g *Guard) look(ctx context.Context) (verdict, error) {
	proven, err := g.Proven()
	if err != nil || proven == nil {
		return verdict{over: true}, err
	}
	g.Path = proven.Path
	is, err := g.digest()
	if err != nil || proven.knows(is) {
		return verdict{over: true}, err
	}
	if g.since.IsZero() || !g.watched.same(g.seen) {
		g.watched, g.since = g.seen, time.Now()
	}
	switch age := time.Since(g.since); {
	case age < proven.Within:
		return verdict{why: fmt.Sprintf("it must complete one within %s", proven.Within), pause: lookEvery}, nil
	case age < proven.AtMost && g.AtWork():
		return verdict{why: "its first pull is still running", pause: lookEvery}, nil
	}
	why := g.writable()
	if why == nil {
		why = g.Away(ctx)
	}
	if why != nil {
		g.since = time.Now() // a program that could not make one was not late
		pause := min(askEvery, max(lookEvery, proven.Within))
		return verdict{why: "nobody could make one now: " + why.Error(), pause: pause}, nil
	}
	return verdict{lost: proven}, nil
}

// writable is why no record of a pull could be written.
func (i *Installed) writable() error {
	try := i.file("guard.try")
	err := durable.Place(try, make([]byte, 64<<10))
	return errors.Join(err, os.RemoveAll(try))
}

// putBack puts the proven program back and has what runs it start anew.
func (g *Guard) putBack(ctx context.Context, proven *Proven) error {
	why := fmt.Sprintf("the new pullet made no pull in %s, and pullet %s was put back", proven.Within, proven.Version)
	g.Say("%s: %s", g.Path, why)
	if err := g.Refuse(Refused{Version: g.Version(), Why: why, Lost: true, Restart: true}); err != nil {
		return err
	}
	return g.restart(ctx)
}

// restart starts anew what may still run a program that was put back.
func (g *Guard) restart(ctx context.Context) error {
	r, err := g.Refused()
	if err != nil || r == nil || !r.Restart {
		return err
	}
	if is, err := g.digest(); err != nil || is == r.Digest { // it was killed before it put the program back
		return err
	}
	if err := g.Restart(ctx); err != nil {
		return err
	}
	return g.restarted(r)
}
