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
	// Failed is called when a step failed, with the report so far. The node's slot is not for others before the fleet
	// knows of that.
	Failed(soFar *Report) error
	// Park is called when nothing in the run can go on but by what other nodes do, with what that is.
	Park(ctx context.Context, why string) error

	// Chosen says whether this node takes a targeted step, else who does.
	Chosen(ctx context.Context, s GatedStep) (yes bool, others string, err error)
	// Record is what the fleet knows of the step on this node, which was chosen for it.
	Record(ctx context.Context, s GatedStep) (Record, error)
	// Begin records that the chosen node starts an attempt of the step, if the record is what Record read.
	Begin(ctx context.Context, s GatedStep, attempt string) error
	// Publish gives the others the step's result. One that is final stays as it is. What a Secret one holds is
	// for those alone for whom it can be encrypted.
	Publish(ctx context.Context, s GatedStep, attempt string, r render.StepResult, reason string) error
	// Result waits for that of the node that was chosen.
	Result(ctx context.Context, s GatedStep) (render.StepResult, error)

	// Serialize waits until the node is one of those that may take the step now. Its end says how that went: Failed and
	// why, or Pending when it was not started after all.
	Serialize(ctx context.Context, s GatedStep) (end EndSerial, err error)
	// Quorum waits until this host may take its member of the fleet's datastore away for a moment, where the step may do
	// that. Its end gives that back; a host that boots behind the step keeps it until it is away.
	Quorum(ctx context.Context, s GatedStep) (end func(boots bool), err error)
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
	Boots      bool       // the host
	Manages    []Resource // that it brings to the host
}

func (s *boundStep) gated() GatedStep {
	_, boots := s.act.(Rebooter)
	return GatedStep{s.Step, s.job, s.repeatable(), boots, s.manages()}
}

// gating is a step among those of other nodes: whether this node takes it, and what it holds and gives them.
type gating struct {
	s         *running
	elected   bool             // this node was chosen for the step
	fleet     Record           // what the fleet knows of it then
	attempt   string           // the last one that was started, here or before
	stale     bool             // its result is too old for the others
	refused   error            // what it reads failed for all
	wanted    []*boundStep     // whose results of other nodes it turned out to read
	endSerial EndSerial        // gives its place at a serialized step back
	boots     bool             // the run ends for a boot of the host
	endQuorum func(boots bool) // lets another host take its member of the datastore away
}

// elsewhere asks whether another node takes the step for this one, and leaves the outcome then.
func (g *gating) elsewhere(ctx context.Context) bool {
	target := g.s.step.Options.Target
	if target == nil {
		return false
	}
	labels := g.s.x.program.catalog.Node.Labels
	if target.Hosts.Text != "" && !target.Hosts.Matches(g.s.x.program.catalog.Node.Name, labels) {
		g.skipElsewhere("it is for " + target.Hosts.Text)
		return true
	}
	if g.s.x.plan { // who will be chosen is not known before
		return false
	}
	if g.s.x.options.Gates == nil {
		if _, done := g.s.entry.done(); done {
			return false
		}
		g.skipElsewhere(noStore + ", so who takes it is not known")
		return true
	}
	chosen, others, err := g.s.x.options.Gates.Chosen(ctx, g.s.step.gated())
	if err != nil {
		g.s.waitOrFail(err)
		return true
	}
	if !chosen {
		g.skipElsewhere(others + " takes it")
		return true
	}
	if g.fleet, err = g.s.x.options.Gates.Record(ctx, g.s.step.gated()); err != nil {
		g.s.waitOrFail(err)
		return true
	}
	g.elected, g.stale, g.attempt = true, g.fleet.published() && !g.fleet.Fresh, g.fleet.Attempt
	return false
}

// noStore is why nothing is done at a gate in a run without gates.
const noStore = "etcd is unreachable"

// skipElsewhere leaves a step to others.
func (g *gating) skipElsewhere(why string) {
	g.s.r.Outcome, g.s.r.Reason, g.s.r.others = Skipped, why, true
	g.s.x.mu.Lock()
	defer g.s.x.mu.Unlock()
	g.s.x.foreign[g.s.step.ID()] = g.s.step
}

// reading does something that may read results of steps that other nodes took: those are waited for, and it is done
// again.
func (g *gating) reading(ctx context.Context, do func() error) error {
	for {
		g.s.x.mu.Lock()
		g.wanted = nil
		g.s.x.mu.Unlock()
		err := do()
		g.s.x.mu.Lock()
		wanted, refused := g.wanted, g.refused
		g.s.x.mu.Unlock()
		if refused != nil {
			return refused
		}
		if len(wanted) == 0 {
			return unannounced(ctx, g.s.x.options.Host.Fleet, err)
		}
		for _, t := range wanted {
			if err := g.fetch(ctx, t); err != nil {
				return err
			}
		}
	}
}

// lackingError is the wait for a service that nobody has announced yet, or for a node that never came.
type lackingError struct{ *PendingError }

func (e *lackingError) Unwrap() error { return e.PendingError }

// unannounced makes a wait of a failure that has its cause in a service that too few hosts have announced yet.
func unannounced(ctx context.Context, fleet Fleet, err error) error {
	bad, ok := errors.AsType[*render.Error](err)
	if fleet == nil || !ok {
		return err
	}
	name, why := bad.Awaits(func(name string) (int, error) {
		list, away := fleet.Services(ctx, name)
		return len(list), away
	})
	if name == "" {
		return err
	}
	return &lackingError{&PendingError{Reason: fmt.Sprintf("waiting for service %s: %s: %v", name, why, bad)}}
}

// unseen makes a wait of a failure that has its cause in a node of the inventory that never came.
func unseen(ctx context.Context, inventory render.Inventory, fleet FleetReader, err error) error {
	bad, ok := errors.AsType[*render.Error](err)
	if !ok || fleet == nil || len(bad.Servers) == 0 {
		return err
	}
	view, away := fleet.View(ctx)
	if name := inventory.Unseen(view, bad.Servers); away == nil && name != "" {
		why := "waiting for node " + name + ": nodes/ lists it and it never came: " + bad.Error()
		return &lackingError{&PendingError{Reason: why}}
	}
	return err
}

// fetch waits for the result of a step that another node took.
func (g *gating) fetch(ctx context.Context, t *boundStep) (err error) {
	if g.s.x.options.Gates == nil {
		return &PendingError{Reason: "waiting for the result of " + t.ID() + ": " + noStore}
	}
	var result render.StepResult
	g.aside("the result of "+t.ID(), func() { result, err = g.s.x.options.Gates.Result(ctx, t.gated()) })
	if err != nil {
		return err
	}
	g.s.x.mu.Lock()
	defer g.s.x.mu.Unlock()
	g.s.x.values[t.ID()] = result
	g.s.x.hidden[t.ID()] = g.s.x.hidden[t.ID()] || result.Secret
	delete(g.s.x.foreign, t.ID())
	return nil
}

// aside waits while other steps run. Where only other nodes can end the wait, why says what it is for.
func (g *gating) aside(why string, wait func()) {
	g.s.mates.alone()
	if g.s.schedule == nil { // a reaction, behind all other steps
		wait()
		return
	}
	g.s.schedule.aside(g.s.place, why, wait)
}

// arrive tells the barrier of the step how it ended here, and waits there until all have.
func (g *gating) arrive(ctx context.Context) {
	o := g.s.step.Options
	if g.s.x.options.Gates == nil || g.s.x.plan || !o.Sync && !o.FailAfterAllTargetsRan || g.s.r.Outcome == Pending {
		return
	}
	how := map[Outcome]string{Skipped: "skipped", Failed: "failed", Unmet: "failed"}[g.s.r.Outcome]
	if how == "" {
		how = "done"
	}
	open, err := g.s.x.options.Gates.Arrive(ctx, g.s.step.gated(), how, g.s.faultNow())
	if err != nil {
		if how != "failed" {
			g.s.waitOrFail(err)
		} else {
			g.s.also(err)
		}
		return
	}
	if open || !o.Sync || how == "failed" {
		return
	}
	g.aside("the barrier of "+g.s.step.ID(), func() { err = g.s.x.options.Gates.Await(ctx, g.s.step.gated()) })
	if err != nil {
		here := string(g.s.r.Outcome)
		g.s.waitOrFail(err)
		g.s.r.Reason = here + " here; " + g.s.r.Reason
	}
}

// held reports a step that comes after one that waits, at a gate or for what others offer, or whose continue did not
// hold: nothing goes on beyond that.
func (g *gating) held() bool {
	for _, e := range g.s.step.after {
		r := g.s.x.of(e.step.ID())
		if r != nil && r.closed != "" && (e.step.job == g.s.step.job || e.why == behindJob) {
			g.s.r.Outcome, g.s.r.closed = Unmet, r.closed
			g.s.r.Reason = "behind " + r.closed + ", which did not let the job continue"
			return true
		}
		if r != nil && (r.Held || r.stays) {
			g.s.r.Outcome, g.s.r.Reason = Pending, "behind "+e.step.ID()+", which waits"
			g.s.r.Held, g.s.r.stays = r.Held, r.stays
			return true
		}
	}
	return false
}

// serialize makes the node one of those that may take the step now.
func (g *gating) serialize(ctx context.Context) bool {
	if g.s.step.Options.Serialize == nil {
		return true
	}
	if g.s.x.options.Gates == nil {
		g.s.waitOrFail(&PendingError{Reason: "waiting for its turn: " + noStore})
		return false
	}
	end, err := g.s.x.options.Gates.Serialize(ctx, g.s.step.gated())
	if err != nil {
		g.s.waitOrFail(err)
		return false
	}
	g.endSerial = end
	return true
}

// serialized lets the next node take the step. A step that a signal stopped keeps its place, and goes on with it.
func (g *gating) serialized(ctx context.Context) {
	if g.endSerial == nil || g.s.r.Outcome == Pending {
		return
	}
	g.s.r.assignFault(g.s.step, g.s.x.options.Host)
	if err := g.endSerial(ctx, g.s.r.Outcome, g.s.r.Fault, g.s.publicReason()); err != nil {
		g.s.also(err)
	}
}

// notStarted gives back what a step got at gates that does not start after all.
func (g *gating) notStarted(ctx context.Context) {
	g.quorumKept()
	if g.endSerial == nil {
		return
	}
	if err := g.endSerial(ctx, Pending, "", ""); err != nil {
		g.s.also(err)
	}
	g.endSerial = nil
}

// share gives the result of a step that this node took for all the form that it has on the others. Where several nodes
// are chosen, who reads it waits for all of them here, too.
func (g *gating) share() {
	target := g.s.step.Options.Target
	// Without etcd only its own journal lets a targeted step stand.
	took := g.elected || target != nil && g.s.x.options.Gates == nil
	if !took || g.s.r.Outcome != OK && g.s.r.Outcome != Changed {
		return
	}
	g.s.x.mu.Lock()
	defer g.s.x.mu.Unlock()
	if target.Limit > 1 {
		g.s.r.others = true
		g.s.x.foreign[g.s.step.ID()] = g.s.step
		return
	}
	own := g.s.x.values[g.s.step.ID()]
	shared := own
	if g.fleet.final() && !g.fleet.Result.Withheld {
		shared = g.fleet.Result // as all others read it: only the run that made it has changed something
	}
	own.ByNode = map[string]render.StepResult{g.s.x.program.catalog.Node.Name: shared}
	g.s.x.values[g.s.step.ID()] = own
}

// publish gives the others the result of a step that this node was chosen for.
func (g *gating) publish(ctx context.Context) {
	if !g.elected || g.s.r.Outcome == Pending || g.fleet.final() {
		return
	}
	r := g.s.r.Result
	r.Secret = holdsSecret(g.s.x.program.catalog, g.s.step, g.s.r)
	r.Result = result(g.s.r.Outcome)
	if r.State == unknown {
		r.Result = unknown
	} else if r.State == "" {
		r.State = r.Result
	}
	if err := g.s.x.options.Gates.Publish(ctx, g.s.step.gated(), g.attempt, r, g.s.publicReason()); err != nil {
		g.s.also(err)
	}
}
