package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pullet/pullet/lock"
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

	failed  string // why the run failed
	late    bool   // in a way that stops nobody
	faulty  bool   // by a fault of the host
	pending string // for what it waits
	stopped error  // why it was stopped
	attempt string // of the step that it started last
}

func (p *process) execution(v *state.Version, r *release, turn *lock.Turn) *execution {
	return &execution{
		process: p, version: v, release: r, turn: turn, steps: lock.NewSteps(p.store, p.request(v, r)), candidates: map[string]*lock.Candidate{},
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
	if s.target > 0 {
		c, err := x.candidate(ctx, s)
		if err != nil {
			return x.waitOrFail(s, err), false
		}
		if elected = c.Chosen(); !elected {
			x.note(s, skipped)
			return skipped, false
		}
	}
	before := x.disk.steps[s.name]
	switch here := before.version == x.version.ID; {
	case here && before.how == "ok":
		x.note(s, "ok")
		return done, elected
	case here && !s.repeatable && (!before.ended || before.how == "unknown"):
		if err := x.save(func(d *disk) { d.steps[s.name] = journaled{x.version.ID, true, "unknown"} }); err != nil {
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
	return x.apply(ctx, s, elected), elected
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
	case errors.Is(err, lock.ErrSuperseded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		x.pending = err.Error()
	default:
		x.failed = fmt.Sprint(s.name, ": ", err)
		return failed
	}
	return pending
}

// apply changes the host, if it is the node's turn.
func (x *execution) apply(ctx context.Context, s *task, elected bool) string {
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
	}
	if elected {
		c := x.candidates[x.election(s).ID]
		read, err := c.Record(ctx, x.release.gate(s), 0)
		if err == nil {
			x.attempt = fmt.Sprint(x.name, " ", time.Now().UnixNano())
			err = c.Start(ctx, x.release.gate(s), x.attempt, read)
		}
		if err != nil {
			return x.waitOrFail(s, err)
		}
	}
	how := x.change(ctx, s)
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
		err = x.turn.Check(ctx, s.name)
	}
	if err != nil {
		x.stopped = err
		return pending
	}
	return ""
}

// change is the step itself, between two lines in the journal.
func (x *execution) change(ctx context.Context, s *task) string {
	err := x.save(func(d *disk) { d.steps[s.name], d.run = journaled{version: x.version.ID}, x.version.ID })
	if err == nil {
		x.note(s, "start")
		err = x.sleep(ctx, s.takes)
	}
	if err != nil { // it was killed, or told to stop
		x.stopped = err
		return pending
	}
	how := "ok"
	if x.rng.Float64() < s.fails && !x.fleet.isCalm() {
		how = failed
	} else if s.faults > 0 && x.rng.Float64() < s.faults && !x.fleet.isCalm() {
		how, x.faulty = failed, true
	}
	x.note(s, how)
	if err := x.save(func(d *disk) { d.steps[s.name] = journaled{x.version.ID, true, how} }); err != nil {
		x.stopped = err
		return pending
	}
	if how == failed {
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
	c := x.candidates[x.election(s).ID]
	read, err := c.Record(ctx, x.release.gate(s), 0)
	if err == nil && read.Final() {
		return how
	}
	if err == nil {
		r := state.StepResult{Result: map[string]string{done: "ok"}[how]}
		if r.Result == "" {
			r.Result = how
		}
		if x.disk.steps[s.name].how == "unknown" {
			r.Result = "unknown"
		}
		value, _ := json.Marshal(x.name)
		after, cancel := afterwards(ctx)
		defer cancel()
		err = c.Publish(after, x.release.gate(s), read.Attempt, r, value, 0)
	}
	if err != nil {
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
		if err := x.steps.Value(ctx, r, &by); err != nil || r.Result == "ok" && by != node {
			x.fleet.breaks("%s reads %q as the result of %s: %v", x.name, by, node, err)
		}
	}
	return nil
}

// park gives the slot back while all waits for other nodes. What could not be given back is tried again at the end of the run.
func (x *execution) park(ctx context.Context) {
	if x.turn != nil && x.turn.Holds() {
		_ = x.turn.Park(ctx, state.Status{Gate: "other nodes", Reason: "other nodes: a step waits for them", Clear: "no action needed"})
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

// note writes down what the node did.
func (x *execution) note(s *task, what string) {
	group := x.release.group(x.name, x.role)
	e := event{
		node: x.name, rollout: x.version.Rollout(), version: x.version.ID, group: group, step: s, what: what, gated: x.turn != nil,
		released: x.release.onLost != lock.Hold, stage: x.release.stage(group),
	}
	if x.turn != nil {
		e.fence = x.turn.Fence()
	}
	x.fleet.record(e)
}
