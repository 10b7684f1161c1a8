package simulation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// execution is one run of a release's steps on a host, one after the other.
type execution struct {
	*process
	version    *state.Version
	release    *release
	steps      *lock.Steps
	turn       *lock.Turn // nil: drift is corrected without one
	candidates map[string]*lock.Candidate

	failed  string                // why the run failed
	late    bool                  // in a way that stops nobody
	faulty  bool                  // by a fault of the host
	pending string                // for what it waits
	stopped error                 // why it was stopped
	attempt string                // by which the fleet knows its steps
	records map[*task]lock.Record // of the steps that it takes for others, as they were read
	started map[*task]string      // the attempts at them that the fleet was told of
}

func (p *process) execution(v *state.Version, r *release, turn *lock.Turn) *execution {
	return &execution{
		process: p, version: v, release: r, turn: turn, steps: lock.NewSteps(p.store, p.request(v, r)), candidates: map[string]*lock.Candidate{},
		attempt: fmt.Sprintf("%s-%d", p.name, time.Now().UnixNano()), records: map[*task]lock.Record{}, started: map[*task]string{},
	}
}

// What became of a step.
const (
	done    = "done"
	skipped = "skipped"
	failed  = "failed"
	pending = "pending"
)

// run takes the steps. What comes behind one that failed requires it, and what comes behind one that waits waits.
func (x *execution) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, deadline+x.wait)
	defer cancel()
	kept, err := lock.LeaveSteps(ctx, x.store, x.name, x.cutOff)
	if err != nil {
		x.stopped = err
		return
	}
	if kept > 0 {
		defer func() {
			if x.stopped == nil {
				_, x.stopped = lock.LeaveSteps(ctx, x.store, x.name, func(string) bool { return false })
			}
		}()
	}
	for _, s := range x.release.steps {
		if !x.release.has(s, x.name, x.role) {
			continue
		}
		if x.pending != "" || x.stopped != nil {
			return
		}
		how, elected := x.step(ctx, s)
		if how != pending && elected {
			how = x.publishResult(ctx, s, how)
		}
		if how != pending && s.sync {
			how = x.arrive(ctx, s, how)
		}
		if how == failed && x.failed == "" {
			x.failed, x.late = "step "+s.name+" failed", s.late
		}
	}
	if x.stopped == nil {
		if err := x.save(func(d *disk) { d.run = "" }); err != nil {
			x.stopped = err
		}
	}
}

// cutOff reports a serialized step that was started and did not end.
func (x *execution) cutOff(hash string) bool {
	return slices.ContainsFunc(x.release.steps, func(s *task) bool {
		j, started := x.disk.steps[s.name]
		return state.StepHash(x.release.gate(s).ID) == hash && started && !j.ended
	})
}

// step decides what becomes of one step, and whether this node takes it for others.
func (x *execution) step(ctx context.Context, s *task) (how string, elected bool) {
	if x.failed != "" {
		return failed, false
	}
	var read *lock.Record
	if s.target > 0 {
		c, err := x.candidate(ctx, s)
		if err == nil && c.Chosen() {
			var r lock.Record
			r, err = c.Record(ctx, x.release.gate(s), 0)
			read, x.records[s] = &r, r
		}
		if err != nil {
			return x.waitOrFail(s, err), false
		}
		if elected = c.Chosen(); !elected {
			x.note(s, skipped)
			return skipped, false
		}
	}
	switch x.stands(s, read) {
	case apply.Stands:
		x.note(s, "ok")
		return done, elected
	case apply.StandsUnknown:
		if err := x.save(func(d *disk) { d.steps[s.name] = journaled{x.key(s, read), x.attempt, true, true, "unknown"} }); err != nil {
			x.stopped = err
			return pending, elected
		}
		x.failed = "unknown: " + s.name
		return failed, elected
	}
	if s.reads != nil {
		if err := x.result(ctx, s.reads); err != nil {
			return x.waitOrFail(s, err), elected
		}
	}
	return x.apply(ctx, s, read), elected
}

// key is under what a step is remembered.
func (x *execution) key(s *task, read *lock.Record) string {
	key := x.version.ID
	if s.once {
		key = state.OnceScope
	}
	if read != nil && read.Again != "" {
		key += " " + read.Again
	}
	return key
}

// stands is what is known of a step: of one that the node takes for others, the fleet's record decides.
func (x *execution) stands(s *task, read *lock.Record) apply.Standing {
	before, key := x.disk.steps[s.name], x.key(s, read)
	known, done := before.known(key)
	switch {
	case read != nil:
		r := apply.Record{Attempt: read.Attempt, Of: read.Result.Attempt, Fresh: read.Fresh, Result: render.StepResult{Result: read.Result.Result}}
		if before.key == key && before.how == "unknown" {
			known.Began = true
		}
		return r.Standing(known, done, s.repeatable)
	case done:
		return apply.Stands
	case before.key == key && !s.repeatable && (!before.ended || before.how == "unknown"):
		return apply.StandsUnknown
	}
	return apply.StandsOpen
}

func (x *execution) candidate(ctx context.Context, s *task) (*lock.Candidate, error) {
	e := x.election(s)
	if c := x.candidates[e.ID]; c != nil {
		return c, nil
	}
	c, err := x.steps.Elect(ctx, e)
	if err == nil {
		x.candidates[e.ID] = c
	}
	return c, err
}

func (x *execution) election(s *task) lock.Election {
	return x.release.election(s, x.release.stage(x.release.group(x.name, x.role)))
}

// waitOrFail is what becomes of a step whose gate did not open.
func (x *execution) waitOrFail(s *task, err error) string {
	var wait *lock.Wait
	switch {
	case x.ctx.Err() != nil:
		x.stopped = err
	case errors.As(err, &wait):
		x.pending = wait.Error()
	case errors.Is(err, lock.ErrSuperseded), errors.Is(err, state.ErrLeaseLost), errors.Is(err, lock.ErrFenced), errors.Is(err, lock.ErrMoved),
		state.Unanswered(err), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		x.pending = err.Error()
	default:
		x.failed = fmt.Sprint(s.name, ": ", err)
		return failed
	}
	return pending
}

// apply changes the host, if it is the node's turn.
func (x *execution) apply(ctx context.Context, s *task, read *lock.Record) string {
	if how := x.hold(ctx, s); how != "" {
		return how
	}
	var semaphore *lock.Turn
	if s.serialize > 0 {
		var err error
		if semaphore, err = x.steps.Serialize(ctx, x.release.gate(s), func(int) int { return s.serialize }); err == nil {
			err = x.waits(ctx, semaphore.Acquire)
		}
		if err != nil {
			return x.waitOrFail(s, err)
		}
		x.inStep.Store(semaphore.Slot())
		defer x.inStep.Store(nil)
	}
	claim := journaled{key: x.key(s, read)}
	if read != nil {
		claim.attempt = x.attempt
		err := x.save(func(d *disk) { d.steps[s.name], d.run = claim, x.version.ID })
		if err == nil {
			x.started[s] = x.attempt
			err = x.candidates[x.election(s).ID].Start(ctx, x.release.gate(s), x.attempt, *read)
		}
		if err != nil {
			return x.waitOrFail(s, err)
		}
	}
	how := x.change(ctx, s, claim)
	if semaphore != nil && how != pending {
		how = x.serialized(ctx, s, semaphore, how)
	}
	return how
}

// hold makes sure that it is the node's turn.
func (x *execution) hold(ctx context.Context, s *task) string {
	if x.turn == nil {
		return ""
	}
	var err error
	if !x.turn.Holds() {
		err = x.waits(ctx, x.turn.Acquire)
		if err != nil && !errors.Is(err, lock.ErrSuperseded) {
			return x.waitOrFail(s, err)
		}
	}
	if err == nil {
		x.held.Store(x.turn.Slot())
		err = x.turn.Check(ctx, s.name)
	}
	if err != nil {
		x.stopped = err
		return pending
	}
	return ""
}

// change is the step itself, between two lines in the journal.
func (x *execution) change(ctx context.Context, s *task, line journaled) string {
	line.begun = true
	err := x.save(func(d *disk) { d.steps[s.name], d.run = line, x.version.ID })
	if err == nil {
		x.runs(x.note(s, "start"), s.takes)
		if err = x.sleep(ctx, s.takes); err == nil {
			x.ended()
		}
	}
	if err != nil { // it was killed, or told to stop
		x.stopped = err
		return pending
	}
	line.ended, line.how = true, "ok"
	if x.rng.Float64() < s.fails && !x.fleet.isCalm() {
		line.how = failed
	} else if s.faults > 0 && x.rng.Float64() < s.faults && !x.fleet.isCalm() {
		line.how, x.faulty = failed, true
	}
	x.note(s, line.how)
	if err := x.save(func(d *disk) { d.steps[s.name] = line }); err != nil {
		x.stopped = err
		return pending
	}
	if line.how == failed {
		return failed
	}
	return done
}

// serialized lets the next node take the step.
func (x *execution) serialized(ctx context.Context, s *task, semaphore *lock.Turn, how string) string {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	var err error
	switch {
	case how != failed:
		err = semaphore.GoOnStep(ctx)
	case s.late:
		err = semaphore.Release(ctx)
	default:
		err = semaphore.StopStep(ctx, "it failed", map[bool]lock.Failure{true: lock.Host}[x.faulty])
	}
	if err != nil && how != failed {
		x.failed = fmt.Sprint(s.name, ": ", err)
		return failed
	}
	return how
}

// publishResult gives the others what came of a step that this node was chosen for.
func (x *execution) publishResult(ctx context.Context, s *task, how string) string {
	read, known := x.records[s]
	if !known || read.Final() {
		return how
	}
	r := state.StepResult{Result: map[string]string{done: "ok"}[how]}
	if r.Result == "" {
		r.Result = how
	}
	if x.disk.steps[s.name].how == "unknown" {
		r.Result = "unknown"
	}
	value, _ := json.Marshal(x.disk.steps[s.name].attempt)
	after, cancel := afterwards(ctx)
	defer cancel()
	c := x.candidates[x.election(s).ID]
	if err := c.Publish(after, x.release.gate(s), cmp.Or(x.started[s], read.Attempt), r, value, 0); err != nil {
		x.failed = fmt.Sprint(s.name, ": ", err)
		return failed
	}
	return how
}

// result waits for what the chosen nodes made.
func (x *execution) result(ctx context.Context, s *task) error {
	x.park(ctx)
	var found map[string]state.StepResult
	err := x.waits(ctx, func(ctx context.Context) (err error) {
		found, err = x.steps.Results(ctx, x.release.gate(s), x.election(s), 0, s.repeatable, x.waiting(x.version))
		return err
	})
	if err != nil {
		return err
	}
	for node, r := range found {
		if r.Result == "failed" || r.Result == "unknown" {
			return fmt.Errorf("it reads a result that is %s on %s", r.Result, node)
		}
		var by string
		said := strings.HasPrefix(r.Reason, "settled by ")
		if err := x.steps.Value(ctx, r, &by); err != nil || r.Result == "ok" && !said && !strings.HasPrefix(by, node+"-") {
			x.fleet.breaks("%s reads %q as the result of %s: %v", x.name, by, node, err)
		} else if r.Result == "ok" {
			x.reads(s, node, by)
		}
	}
	return nil
}

// park gives the slot back while all waits for other nodes. What could not be given back is tried again at the end of
// the run.
func (x *execution) park(ctx context.Context) {
	if x.turn != nil && x.turn.Holds() {
		x.held.Store(nil)
		_ = x.turn.Park(ctx, state.Status{Gate: "other nodes", Reason: "other nodes: a step waits for them", Remedy: state.NoAction()})
	}
}

// arrive tells the barrier of a step how that ended here, and waits there.
func (x *execution) arrive(ctx context.Context, s *task, how string) string {
	gate := x.release.staged(s, x.name, x.role)
	after, cancel := afterwards(ctx)
	defer cancel()
	word := how
	if how == failed && x.faulty {
		word = lock.Faulty
	}
	open, err := x.steps.Arrive(after, gate, word)
	switch {
	case err != nil && how == failed, how == failed:
		return how
	case err != nil:
		return x.waitOrFail(s, err)
	case !open:
		x.park(ctx)
		err = x.waits(ctx, func(ctx context.Context) error { return x.steps.AwaitOpen(ctx, gate, x.waiting(x.version)) })
	}
	if err != nil {
		return x.waitOrFail(s, err)
	}
	return how
}

// reads writes down which result the node read.
func (x *execution) reads(s *task, of, value string) {
	x.fleet.record(event{host: x.host, node: x.name, rollout: x.version.Rollout(), version: x.version.ID, step: s, what: "read", value: of + ": " + value})
}

// note writes down what the node did.
func (x *execution) note(s *task, what string) event {
	group := x.release.group(x.name, x.role)
	e := event{
		host: x.host, node: x.name, rollout: x.version.Rollout(), version: x.version.ID, group: group, step: s, what: what, gated: x.turn != nil,
		released: x.release.onLost != lock.Hold, stage: x.release.stage(group),
	}
	if x.turn != nil {
		e.fence = x.turn.Fence()
	}
	x.fleet.record(e)
	return e
}
