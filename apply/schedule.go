package apply

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
)

// atMostAtOnce bounds the steps that run at once where the order leaves it free.
const atMostAtOnce = 8

// schedule runs steps in an order that keeps their edges. Steps in the order of their file run one at a time over the
// whole run; the others a few at once. A step that waits for a condition makes room: only what comes after it is held
// up.
//
// There is no goroutine of its own: who ends, or waits, brings it up to date, and goes on with a step that may start
// now. To hand each step to another goroutine costs more than most steps.
type schedule struct {
	x    *execution
	run  context.Context // of the run
	over chan struct{}   // closed: no step is alive

	mu       sync.Mutex                  // guards what follows
	open     map[*boundStep]int          // edges to steps that have not ended
	next     map[*boundStep][]*boundStep // the steps that come after a step
	ready    []*turn
	lane     bool                      // a step in the order of its file runs
	others   int                       // steps that run beside it
	alive    int                       // steps that were started and have not ended, the waiting ones included
	waitsFor map[*boundStep]string     // those that wait for other nodes, and what for
	follow   map[*boundStep]*boundStep // the step that comes after a step, as their file says
	group    *group                    // steps that have started and whose files become durable together; nil: none
}

// turn is a step that may run, or go on, as soon as there is room. With neither goOn nor rest it has not started.
type turn struct {
	step  *boundStep
	goOn  chan struct{} // closed: the goroutine of the step goes on
	rest  func()        // what is left of the step, for any goroutine
	batch *batch        // with whom it starts
	group *group        // to which it may belong
}

func (t *turn) started() bool { return t.goOn != nil || t.rest != nil }

// event is what a running step tells the schedule.
type event struct {
	step *boundStep
	turn *turn // it wants to go on; nil: it ended, or made room
	end  bool
	why  string // it waits for other nodes, for this

	gathers bool   // it waits in the group
	alone   bool   // it does not belong to it any more, and goes on alone behind it
	durable *group // whose files are durable, or never will be
}

// walk runs the steps of one phase until all have ended or the run is stopped.
func (x *execution) walk(ctx context.Context, steps []*boundStep) {
	c := &schedule{
		x: x, run: ctx, over: make(chan struct{}),
		open: map[*boundStep]int{}, next: map[*boundStep][]*boundStep{}, waitsFor: map[*boundStep]string{},
		follow: map[*boundStep]*boundStep{},
	}
	for _, s := range steps {
		c.open[s] = 0
	}
	for _, s := range steps {
		for _, e := range s.after {
			if _, here := c.open[e.step]; !here {
				continue
			}
			if c.open[s]++; e.why == fileOrder {
				c.follow[e.step] = s
			} else {
				c.next[e.step] = append(c.next[e.step], s)
			}
		}
		if c.open[s] == 0 {
			c.ready = append(c.ready, &turn{step: s})
		}
	}
	go c.work(c.begin()) // which may hang, see inline
	<-c.over
	for _, s := range steps {
		if x.of(s.ID()) == nil && ctx.Err() == nil && !x.stopped() { // it must not look as if all were done
			x.finish(s, &StepReport{
				Job: s.Job, Step: s.Name, Action: s.Action, Validation: s.job.Validation, Pos: s.Pos,
				Outcome: Failed, Reason: "it never had its turn: this is a fault of pullet",
			})
		}
	}
}

// begin starts the first steps, and gives one of them to the caller.
func (c *schedule) begin() *turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.advance(true)
}

// work takes steps as far as they get until there is none for this goroutine.
func (c *schedule) work(t *turn) {
	for t != nil {
		if t.rest == nil {
			t = c.tell(c.x.one(c.run, t, c))
			continue
		}
		t.rest()
		t = c.tell(event{step: t.step, end: true})
	}
}

// tell brings the schedule up to date with what happened to a step. A goroutine that is free now gets the step that it
// may go on with, if there is one.
func (c *schedule) tell(e event) *turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handle(e)
	return c.advance(e.end || e.turn != nil && e.turn.rest != nil)
}

// advance starts what may start now. One of the steps is given to the caller, if it is free to take it.
func (c *schedule) advance(free bool) *turn {
	own := c.grant(free)
	if c.alive == 0 {
		close(c.over)
	} else {
		c.park()
	}
	return own
}

// grant lets the first of the ready steps run for which there is room, and so on. A run that is stopped starts nothing
// new.
func (c *schedule) grant(free bool) (own *turn) {
	slices.SortStableFunc(c.ready, func(a, b *turn) int { return a.step.index - b.step.index })
	stopped := c.run.Err() != nil || c.x.stopped()
	if !stopped {
		joints(c.run, c.ready)
	}
	c.ready = slices.DeleteFunc(c.ready, func(t *turn) bool {
		if !t.started() && stopped || !c.room(t) && !stopped {
			return false
		}
		c.occupy(t.step, 1)
		if t.goOn != nil {
			close(t.goOn)
			return true
		}
		if !t.started() {
			c.alive++
			c.gathering(t)
		}
		if free && own == nil {
			own = t
		} else {
			go c.work(t)
		}
		return true
	})
	c.shut()
	return own
}

// room reports that a step may run now. One that goes on beside the others always may, they may be waiting for its
// answer; so may those that start together, which wait for each other.
func (c *schedule) room(t *turn) bool {
	if !t.started() && c.group != nil && !c.beside(t.step) {
		return false
	}
	if t.step.ordering() == oneByOne {
		return !c.lane
	}
	return c.others < atMostAtOnce || t.started() || t.batch != nil
}

func (c *schedule) occupy(s *boundStep, n int) {
	if s.ordering() == oneByOne {
		c.lane = n > 0
		return
	}
	c.others += n
}

// handle brings the schedule up to date with an event.
func (c *schedule) handle(e event) {
	if e.durable != nil {
		c.ready = append(c.ready, e.durable.turns...)
		return
	}
	if delete(c.waitsFor, e.step); e.why != "" {
		c.waitsFor[e.step] = e.why
	}
	if e.turn != nil && !e.gathers {
		c.ready = append(c.ready, e.turn)
		return
	}
	c.occupy(e.step, -1)
	if g := c.group; g != nil {
		if g.handle(e); g.shut && len(g.unfinished) == 0 {
			c.group = nil
		}
	}
	if next := c.follow[e.step]; next != nil && (e.gathers && !e.alone || e.end) {
		delete(c.follow, e.step)
		c.released(next)
	}
	if !e.end {
		return
	}
	c.alive--
	for _, s := range c.next[e.step] {
		c.released(s)
	}
}

// aside lets other steps run while this one waits, and returns when there is room again.
func (c *schedule) aside(s *boundStep, why string, wait func()) {
	c.tell(event{step: s, why: why})
	wait()
	t := &turn{step: s, goOn: make(chan struct{})}
	c.tell(event{step: s, turn: t})
	<-t.goOn
}

// park gives the node's slot to others when all that goes on here waits for other nodes.
func (c *schedule) park() {
	if c.x.options.Gates == nil || c.alive > len(c.waitsFor) {
		return
	}
	var why []string
	for _, s := range slices.SortedFunc(maps.Keys(c.waitsFor), func(a, b *boundStep) int { return a.index - b.index }) {
		why = append(why, c.waitsFor[s])
	}
	if err := c.x.makeDurable(c.run); err != nil { // the next node may count on it
		c.x.stopBecause(err)
		return
	}
	if err := c.x.options.Gates.Park(c.run, strings.Join(why, "; ")); err != nil && c.x.options.Log != nil {
		c.x.options.Log.WithError(err).Warn("the slot could not be given back while the node waits for others")
	}
}
