package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/pullet/pullet/render"
)

// Gates are where the steps of a run wait for other nodes. Its methods are called by several steps at once. A wait that
// ends before what it waits for is there returns a *PendingError.
type Gates interface {
	// Hold is asked before each step that changes the host: the node holds its slot, or takes one again that it gave
	// back.
	Hold(ctx context.Context, s GatedStep) error
	// Park is called when nothing in the run can go on but by what other nodes do, with what that is.
	Park(ctx context.Context, why string) error

	// Chosen says whether this node takes a targeted step, else who does.
	Chosen(ctx context.Context, s GatedStep) (yes bool, others string, err error)
	// Record is what the fleet knows of the step on this node, which was chosen for it.
	Record(ctx context.Context, s GatedStep) (Record, error)
	// Begin records that the chosen node starts an attempt of the step, if the record is what Record read.
	Begin(ctx context.Context, s GatedStep, attempt string) error
	// Publish gives the others the step's result. One that is final stays as it is.
	Publish(ctx context.Context, s GatedStep, attempt string, r render.StepResult, reason string) error
	// Result waits for that of the node that was chosen.
	Result(ctx context.Context, s GatedStep) (render.StepResult, error)

	// Serialize waits until the node is one of those that may take the step now. Its end says how that went: Failed and
	// why, or Pending when it was not started after all.
	Serialize(ctx context.Context, s GatedStep) (end EndSerial, err error)
	// Arrive records how the step ended here: done, skipped, failed, and then whose fault it is. Await waits until
	// everybody arrived.
	Arrive(ctx context.Context, s GatedStep, how string, fault Fault) (open bool, err error)
	Await(ctx context.Context, s GatedStep) error
}

// EndSerial gives a place at a serialized step back. It says how the step went and, where it failed, whose fault that
// is and why.
type EndSerial func(ctx context.Context, how Outcome, fault Fault, why string) error

// GatedStep is a step as gates know it.
type GatedStep struct {
	*render.Step
	Job *render.Job
	// Repeatable: when it was started and its end is not known, it may run again.
	Repeatable bool
}

func (s *boundStep) gated() GatedStep { return GatedStep{s.Step, s.job, s.repeatable()} }

// elsewhere asks whether another node takes the step for this one, and leaves the outcome then.
func (s *running) elsewhere(ctx context.Context) bool {
	target := s.step.Options.Target
	if target == nil {
		return false
	}
	labels := s.x.program.catalog.Node.Labels
	if target.Hosts.Text != "" && !target.Hosts.Matches(s.x.program.catalog.Node.Name, labels) {
		s.skipElsewhere("it is for " + target.Hosts.Text)
		return true
	}
	if s.x.plan { // who will be chosen is not known before
		return false
	}
	if s.x.options.Gates == nil {
		if _, done := s.done(); done {
			return false
		}
		s.skipElsewhere(noStore + ", so who takes it is not known")
		return true
	}
	chosen, others, err := s.x.options.Gates.Chosen(ctx, s.step.gated())
	if err != nil {
		s.waitOrFail(err)
		return true
	}
	if !chosen {
		s.skipElsewhere(others + " takes it")
		return true
	}
	if s.fleet, err = s.x.options.Gates.Record(ctx, s.step.gated()); err != nil {
		s.waitOrFail(err)
		return true
	}
	s.elected, s.stale, s.attempt = true, s.fleet.published() && !s.fleet.Fresh, s.fleet.Attempt
	return false
}

// noStore is why nothing is done at a gate in a run without gates.
const noStore = "etcd is unreachable"

// skipElsewhere leaves a step to others.
func (s *running) skipElsewhere(why string) {
	s.r.Outcome, s.r.Reason, s.r.others = Skipped, why, true
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	s.x.foreign[s.step.ID()] = s.step
}

// reading does something that may read results of steps that other nodes took: those are waited for, and it is done
// again.
func (s *running) reading(ctx context.Context, do func() error) error {
	for {
		s.x.mu.Lock()
		s.wanted = nil
		s.x.mu.Unlock()
		err := do()
		s.x.mu.Lock()
		wanted, refused := s.wanted, s.refused
		s.x.mu.Unlock()
		if refused != nil {
			return refused
		}
		if len(wanted) == 0 {
			return unannounced(ctx, s.x.options.Host.Fleet, err)
		}
		for _, t := range wanted {
			if err := s.fetch(ctx, t); err != nil {
				return err
			}
		}
	}
}

// lackingError is the wait for a service that nobody has announced yet, or for a node that never came.
type lackingError struct{ *PendingError }

func (e *lackingError) Unwrap() error { return e.PendingError }

// unannounced makes a wait of a failure that has its cause in a service which nobody has announced yet: that needs more
// time.
func unannounced(ctx context.Context, fleet Fleet, err error) error {
	var bad *render.Error
	if fleet == nil || !errors.As(err, &bad) {
		return err
	}
	for _, name := range bad.Services {
		if name == "" { // which one is not known
			continue
		}
		if found, away := fleet.Services(ctx, name); away == nil && len(found) == 0 {
			return &lackingError{
				&PendingError{Reason: fmt.Sprintf("waiting for service %s: nobody has announced it: %v", name, bad)},
			}
		}
	}
	return err
}

// unseen makes a wait of a failure that has its cause in a node of the inventory that never came.
func unseen(ctx context.Context, inventory render.Inventory, fleet FleetReader, err error) error {
	bad, ok := errors.AsType[*render.Error](err)
	if !ok || fleet == nil || len(bad.Servers) == 0 {
		return err
	}
	view, away := fleet.View(ctx)
	if name := inventory.Unseen(view, bad.Servers); away == nil && name != "" {
		return &lackingError{
			&PendingError{Reason: fmt.Sprintf("waiting for node %s: nodes/ lists it and it never came: %v", name, bad)},
		}
	}
	return err
}

// fetch waits for the result of a step that another node took.
func (s *running) fetch(ctx context.Context, t *boundStep) (err error) {
	if s.x.options.Gates == nil {
		return &PendingError{Reason: "waiting for the result of " + t.ID() + ": " + noStore}
	}
	var result render.StepResult
	s.aside("the result of "+t.ID(), func() { result, err = s.x.options.Gates.Result(ctx, t.gated()) })
	if err != nil {
		return err
	}
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	s.x.values[t.ID()] = result
	delete(s.x.foreign, t.ID())
	return nil
}

// aside waits while other steps run. Where only other nodes can end the wait, why says what it is for.
func (s *running) aside(why string, wait func()) {
	s.alone()
	if s.schedule == nil { // a reaction, behind all other steps
		wait()
		return
	}
	s.schedule.aside(s.place, why, wait)
}

// arrive tells the barrier of the step how it ended here, and waits there until all have.
func (s *running) arrive(ctx context.Context) {
	o := s.step.Options
	if s.x.options.Gates == nil || s.x.plan || !o.Sync && !o.FailAfterAllTargetsRan || s.r.Outcome == Pending {
		return
	}
	how := map[Outcome]string{Skipped: "skipped", Failed: "failed", Unmet: "failed"}[s.r.Outcome]
	if how == "" {
		how = "done"
	}
	open, err := s.x.options.Gates.Arrive(ctx, s.step.gated(), how, s.faultNow())
	if err != nil {
		if how != "failed" {
			s.waitOrFail(err)
		} else {
			s.also(err)
		}
		return
	}
	if open || !o.Sync || how == "failed" {
		return
	}
	s.aside("the barrier of "+s.step.ID(), func() { err = s.x.options.Gates.Await(ctx, s.step.gated()) })
	if err != nil {
		here := string(s.r.Outcome)
		s.waitOrFail(err)
		s.r.Reason = here + " here; " + s.r.Reason
	}
}

// held reports a step that comes after one that waits, at a gate or for what others offer, or whose continue did not
// hold: nothing goes on beyond that.
func (s *running) held() bool {
	for _, e := range s.step.after {
		r := s.x.of(e.step.ID())
		if r != nil && r.closed != "" && e.step.job == s.step.job {
			s.r.Outcome, s.r.Reason, s.r.closed = Unmet, "behind "+r.closed+", which did not let the job continue", r.closed
			return true
		}
		if r != nil && (r.Held || r.stays) {
			s.r.Outcome, s.r.Reason, s.r.Held, s.r.stays = Pending, "behind "+e.step.ID()+", which waits", r.Held, r.stays
			return true
		}
	}
	return false
}

// serialize makes the node one of those that may take the step now.
func (s *running) serialize(ctx context.Context) bool {
	if s.step.Options.Serialize == nil {
		return true
	}
	if s.x.options.Gates == nil {
		s.waitOrFail(&PendingError{Reason: "waiting for its turn: " + noStore})
		return false
	}
	end, err := s.x.options.Gates.Serialize(ctx, s.step.gated())
	if err != nil {
		s.waitOrFail(err)
		return false
	}
	s.endSerial = end
	return true
}

// serialized lets the next node take the step. A step that a signal stopped keeps its place, and goes on with it.
func (s *running) serialized(ctx context.Context) {
	if s.endSerial == nil || s.r.Outcome == Pending {
		return
	}
	s.r.assignFault(s.step, s.x.options.Host)
	if err := s.endSerial(ctx, s.r.Outcome, s.r.Fault, s.publicReason()); err != nil {
		s.also(err)
	}
}

// notSerialized gives the place at a serialized step back that does not start after all.
func (s *running) notSerialized(ctx context.Context) {
	if s.endSerial == nil {
		return
	}
	if err := s.endSerial(ctx, Pending, "", ""); err != nil {
		s.also(err)
	}
	s.endSerial = nil
}

// share gives the result of a step that this node took for all the form that it has on the others. Where several nodes
// are chosen, who reads it waits for all of them here, too.
func (s *running) share() {
	target := s.step.Options.Target
	// Without etcd only its own journal lets a targeted step stand.
	took := s.elected || target != nil && s.x.options.Gates == nil
	if !took || s.r.Outcome != OK && s.r.Outcome != Changed {
		return
	}
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	if target.Limit > 1 {
		s.r.others = true
		s.x.foreign[s.step.ID()] = s.step
		return
	}
	own := s.x.values[s.step.ID()]
	own.ByNode = map[string]render.StepResult{s.x.program.catalog.Node.Name: own}
	s.x.values[s.step.ID()] = own
}

// publish gives the others the result of a step that this node was chosen for.
func (s *running) publish(ctx context.Context) {
	if !s.elected || s.r.Outcome == Pending || s.fleet.final() {
		return
	}
	r := s.r.Result
	r.Result = result(s.r.Outcome)
	if r.State == unknown {
		r.Result = unknown
	} else if r.State == "" {
		r.State = r.Result
	}
	if err := s.x.options.Gates.Publish(ctx, s.step.gated(), s.attempt, r, s.publicReason()); err != nil {
		s.also(err)
	}
}
