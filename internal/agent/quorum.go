package agent

import (
	"context"
	"slices"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// datastoreUnit is the unit that serves the member of this host, as steps manage it.
const datastoreUnit = "unit pullet-etcd.service"

const (
	turnAskEvery  = 2 * time.Second  // for the turn to take the member of this host away
	turnAskTime   = 10 * time.Second // one question may take: the keeper does nothing else meanwhile
	turnKeepEvery = 20 * time.Second // that the turn is kept while the step runs
)

// Quorum waits until this host may take its member of the fleet's datastore away, where the step may do that: a member
// is not taken away while another one is.
func (g *gates) Quorum(ctx context.Context, s apply.GatedStep) (func(boots bool), error) {
	if !takesMemberAway(s) || !g.member.Carries() {
		return func(bool) {}, nil
	}
	g.says.rests(s.Step.ID())
	err := g.waits.within(ctx, func(limited context.Context) error { return memberTurn{g}.begin(ctx, limited) })
	if err != nil {
		return nil, g.pending(err)
	}
	g.goesOn(ctx)
	return func(boots bool) { memberTurn{g}.giveBack(ctx, boots) }, nil
}

// takesMemberAway reports a step that may end the member of this host for a moment.
func takesMemberAway(s apply.GatedStep) bool {
	manages := func(r apply.Resource) bool { return r.ID == datastoreUnit }
	return s.Options.KeepQuorum || s.Boots || slices.ContainsFunc(s.Manages, manages)
}

// absence counts the steps that have the turn to take the member away: the host has it once for all of them.
type absence struct {
	door  door // also while the host waits for the turn
	steps int
	stops context.CancelFunc // keeping the turn
}

// memberTurn is the turn of this host to take its member away.
type memberTurn struct{ *gates }

// begin waits for the turn until limited ends, unless another step of the run has it already.
func (g memberTurn) begin(ctx, limited context.Context) error {
	g.absence.door.Lock()
	defer g.absence.door.Unlock()
	if g.absence.steps == 0 {
		if err := g.await(ctx, limited); err != nil {
			return err
		}
		kept, stops := context.WithCancel(context.WithoutCancel(ctx))
		g.absence.stops = stops
		go g.keep(kept)
	}
	g.absence.steps++
	return nil
}

// giveBack gives the turn back behind the last step. A host that boots keeps it until the boot ends the agent, or does
// not come: the others see when its member is away, and when it is back.
func (g memberTurn) giveBack(ctx context.Context, boots bool) {
	g.absence.door.Lock()
	defer g.absence.door.Unlock()
	if boots {
		time.AfterFunc(bootTime, g.absence.stops)
		return
	}
	if g.absence.steps--; g.absence.steps > 0 {
		return
	}
	g.absence.stops()
	ctx, cancel := afterwards(ctx)
	defer cancel()
	if err := datastore.GiveTurn(ctx, g.member); err != nil {
		g.log.WithError(err).Info("the turn to take the member of the datastore away ends within a minute")
	}
}

// await asks the keeper of this host until it has the turn. The last question may take longer than limited, since the
// keeper waits for members that do not answer: who has no time left to wait learns for whom.
func (g memberTurn) await(ctx, limited context.Context) error {
	since := time.Now()
	for {
		asking, cancel := context.WithTimeout(ctx, turnAskTime)
		turn, err := datastore.TakeTurn(asking, g.member)
		cancel()
		if err == nil && turn.Waits == "" {
			return nil
		}
		wait := turnWait(turn, err, since)
		g.tell(wait)
		select {
		case <-time.After(turnAskEvery):
		case <-limited.Done():
			return wait
		}
	}
}

// turnWait says for whom the host waits.
func turnWait(t datastore.Turn, err error, since time.Time) *lock.Wait {
	w := &lock.Wait{
		Kind: state.WaitMembers, Gate: "the members of the datastore", Reason: t.Waits, Remedy: state.NoAction(),
		Since: since,
	}
	switch {
	case err != nil:
		w.Reason, w.Remedy = err.Error(), state.Act("look at pullet-etcd on this host: pullet datastore status")
	case t.Cure != "":
		w.Remedy = state.Act(t.Cure)
	}
	return w
}

// keep keeps the turn as long as the step runs. A member that is away just then does not answer.
func (g memberTurn) keep(ctx context.Context) {
	for tick := time.Tick(turnKeepEvery); ; {
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
		if err := datastore.KeepTurn(ctx, g.member); err != nil && ctx.Err() == nil {
			g.log.WithError(err).Info("the turn to take the member of the datastore away could not be kept")
		}
	}
}
