package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// lookEvery is how often the guard looks whether a new program made a pull.
const lookEvery = time.Second

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

// Watch returns when the installed program is the proven one. A new one that makes no pull in time is put back before;
// the time begins when Watch sees the program first. It can be called at any time, and again after it was killed.
func (g *Guard) Watch(ctx context.Context) error {
	if err := g.restart(ctx); err != nil {
		return err
	}
	for said := ""; ; {
		why, err := g.due(ctx)
		switch {
		case err != nil || why == "":
			return err
		case why == lost:
			return g.putBack(ctx)
		case why != said:
			g.Say("%s is not the pullet that made the last pull here: %s", g.Path, why)
			said = why
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookEvery):
		}
	}
}

// lost is what due says of a program that is to be put back.
const lost = "it made no pull in time"

// due is what is waited for; "": it is the proven one.
func (g *Guard) due(ctx context.Context) (string, error) {
	proven, err := g.Proven()
	if err != nil || proven == nil {
		return "", err
	}
	g.Path = proven.Path
	is, err := g.digest()
	if errors.Is(err, fs.ErrNotExist) { // somebody removed it
		return "", nil
	}
	if err != nil || is == proven.Digest {
		return "", err
	}
	if g.watched != g.seen {
		g.watched, g.since = g.seen, time.Now()
	}
	switch age := time.Since(g.since); {
	case age < proven.Within:
		return fmt.Sprintf("it has %s for its first one", proven.Within), nil
	case age < proven.AtMost && g.AtWork():
		return "it is in the midst of its first one", nil
	}
	if why := g.Away(ctx); why != nil {
		return "nobody could make one now: " + why.Error(), nil
	}
	return lost, nil
}

// putBack puts the proven program back and has what runs it start anew.
func (g *Guard) putBack(ctx context.Context) error {
	proven, err := g.Proven()
	if err != nil {
		return err
	}
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
