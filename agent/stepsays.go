package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/state"
)

// longStep is how long a step runs before the fleet is told of it: most end sooner, and each telling is a write.
const longStep = 2 * time.Second

// stepSays tells the fleet which step of a run takes long.
type stepSays struct {
	reporter *reporter
	during   context.Context
	v        *state.Version

	timers  map[string]*time.Timer // of the steps that run, by their ids; used by whoever watches the run, one at a time
	telling sync.WaitGroup
}

func (r *reporter) steps(ctx context.Context, v *state.Version) *stepSays {
	return &stepSays{reporter: r, during: ctx, v: v, timers: map[string]*time.Timer{}}
}

// begin is told each step that begins to change the host.
func (s *stepSays) begin(b apply.Begun) {
	if s.reporter.begins != nil {
		s.reporter.begins(b)
	}
	if s.reporter.store == nil {
		return
	}
	s.telling.Add(1)
	s.timers[b.ID] = time.AfterFunc(longStep, func() {
		defer s.telling.Done()
		st := s.reporter.status(s.v, state.InRun)
		st.Step = fmt.Sprintf("%s: %s: %s", b.Place(), b.Title, b.Doing)
		if err := s.reporter.store.BeginRun(s.during, s.reporter.presence, st); err != nil {
			s.reporter.log.WithError(err).Debug("the running step is not recorded")
		}
	})
}

// ended is told each step that ended.
func (s *stepSays) ended(r *apply.StepReport) {
	s.forget(r.Job + "/" + r.Step)
	if s.reporter.ends != nil {
		s.reporter.ends(r)
	}
}

func (s *stepSays) forget(id string) {
	if timer := s.timers[id]; timer != nil && timer.Stop() {
		s.telling.Done()
	}
	delete(s.timers, id)
}

// over waits until nothing more is told: what came of the run is told next.
func (s *stepSays) over() {
	for id := range s.timers {
		s.forget(id)
	}
	s.telling.Wait()
}
