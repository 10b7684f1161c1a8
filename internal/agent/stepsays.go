package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/state"
)

// longStep is how long a step runs before it goes on the fleet's record, and the least time between two such writes:
// most steps end sooner.
const longStep = 2 * time.Second

// betweenSteps is how long the next step has to begin once the one on record ended.
const betweenSteps = 100 * time.Millisecond

// stepSays tells the fleet which step of a run takes long: of those that run, the one that began first. Once that ended
// it tells which runs then, or none.
type stepSays struct {
	reporter *reporter
	during   context.Context
	giveUp   context.CancelFunc // ends during
	v        *state.Version     // nil: the fleet is not told

	mu      sync.Mutex // timers fire at any time
	running []apply.Begun
	timers  map[string]*time.Timer // of the steps that run, by their ids; "" is for a record that is out of date
	told    string                 // the id of the step on record; "" is none
	at      time.Time              // when that was told

	writing door // what is written last is what is true last
	telling sync.WaitGroup
}

func (r *reporter) steps(ctx context.Context, v *state.Version) *stepSays {
	ctx, giveUp := context.WithCancel(ctx)
	return &stepSays{reporter: r, during: ctx, giveUp: giveUp, v: v, timers: map[string]*time.Timer{}, writing: newDoor()}
}

// begin is called with each step that begins to change the host.
func (s *stepSays) begin(b apply.Begun) {
	if s.reporter.begins != nil {
		s.reporter.begins(b)
	}
	if s.reporter.store == nil || s.v == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = append(s.running, b)
	s.tellAfter(b.ID, longStep)
}

// ended is called with each step that ended.
func (s *stepSays) ended(r *apply.StepReport) {
	s.rests(r.Job + "/" + r.Step)
	if s.reporter.ends != nil {
		s.reporter.ends(r)
	}
}

// rests takes a step off that does nothing more: it ended, or waits at its barrier or for a condition. That wait is on
// record.
func (s *stepSays) rests(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(id)
	s.running = slices.DeleteFunc(s.running, func(b apply.Begun) bool { return b.ID == id })
	if s.told == id && s.timers[""] == nil {
		s.tellAfter("", max(betweenSteps, longStep-time.Since(s.at)))
	}
}

// tellAfter tells in a while what runs then; s.mu is held.
func (s *stepSays) tellAfter(id string, d time.Duration) {
	s.telling.Add(1)
	s.timers[id] = time.AfterFunc(d, func() {
		defer s.telling.Done()
		s.tell(id)
	})
}

// tell writes which step runs now, where the record does not say so already.
func (s *stepSays) tell(timer string) {
	s.writing.Lock()
	defer s.writing.Unlock()
	st, id := s.reporter.status(s.v, state.InRun), ""
	s.mu.Lock()
	delete(s.timers, timer)
	if len(s.running) > 0 {
		b := s.running[0]
		id, st.Step = b.ID, fmt.Sprintf("%s: %s: %s", b.Place(), b.Title, b.Doing)
	}
	same := s.told == id
	s.told, s.at = id, time.Now()
	s.mu.Unlock()
	if same {
		return
	}
	if err := s.reporter.store.Statuses.BeginRun(s.during, s.reporter.presence, st); err != nil {
		s.reporter.log.WithError(err).Debug("the running step is not recorded")
	}
}

// forget stops a timer that has not fired; s.mu is held.
func (s *stepSays) forget(id string) {
	if timer := s.timers[id]; timer != nil && timer.Stop() {
		s.telling.Done()
	}
	delete(s.timers, id)
}

// over waits until nothing more is written: what came of the run is written next. Where etcd is silent, nothing is, and
// what is on its way is given up.
func (s *stepSays) over(silent bool) {
	defer s.giveUp()
	if silent {
		s.giveUp()
	}
	s.mu.Lock()
	for id := range s.timers {
		s.forget(id)
	}
	s.mu.Unlock()
	s.telling.Wait()
}
