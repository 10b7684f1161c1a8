package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// registration is how a pull joins the fleet, and what it knows of its record.
type registration struct {
	*self
	*joined
	connection *connection
	pulse      *pulse
	size       *fleetSize
	away       *outage
	local      *local
	compiler   *compiler
	places     *places
	reporter   *reporter
	out        *Outcome
	log        *logrus.Entry
	loop       bool        // see Options
	unproven   func() bool // see ownProgram

	compare func(context.Context) *state.WentBackError // see places.compare; nil where no other node shares the record
}

// join opens the fleet's record and registers the node. A store that does not answer is got around: the pull goes on
// with what the node knows.
func (r *registration) join(ctx context.Context) error {
	began := time.Now()
	if err := r.connection.refresh(); err != nil {
		return err
	}
	store, err := r.connection.open(ctx)
	var away *state.UnreachableError
	if errors.As(err, &away) {
		r.goOnWithout(err, began)
		return nil
	}
	if err != nil {
		return err
	}
	accepted := r.local.Store.Accepted
	r.places.runs.Store(r.local.Running)
	if !r.config.alone() {
		var back *state.WentBackError
		r.local.Store, err = store.Doubts.Guard(ctx, r.config.Node.Name, r.local.Store)
		if err = store.Explain(err); errors.As(err, &back) || errors.As(err, &away) {
			r.goOnWithout(err, began)
			r.places.warnUntold(
				errors.Join(
					r.places.putBack(ctx, store, back, r.local.slot()),
					r.places.doubts(ctx, store, back, r.untilNext()),
				),
			)
			return r.connection.drop()
		}
		if err != nil {
			return err
		}
	}
	self := r.node()
	node := state.Node{
		Name: self.Name, Labels: self.Labels, Role: self.Role(), LastSeen: time.Now().UTC(), Agent: r.build,
		RepoVars: !r.compiler.hasOwnVars(), Unproven: r.unproven(),
	}
	if r.local.Running != nil {
		node.Running = r.local.Running.ID
	}
	owner, err := r.owner()
	if err != nil {
		return err
	}
	presence, err := store.Presences.Register(ctx, node, owner, r.compiler.facts(), r.leaseTime())
	if err == nil {
		r.renew(ctx, store, presence) // before anything can fail: an agent that ends gives this lease up
	}
	if err == nil && r.local.Store.Accepted != accepted {
		err = r.acceptedWithout(ctx, store, presence)
	}
	if err == nil && r.loop {
		err = r.size.count(ctx, store)
	}
	if err = store.Explain(err); errors.As(err, &away) {
		r.goOnWithout(err, began)
		return r.connection.drop()
	}
	if err != nil {
		return err
	}
	r.away.ends()
	r.registered(store, presence)
	r.renewCertificate(ctx, store, presence.Found.Authority)
	r.reporter.before = presence.Found.Waits
	r.out.looked(presence.Revision)
	r.local.Pulls(node.LastSeen, r.outside.Host.Boot) // the next pull tells from it how long the gap was
	return r.local.save()
}

// cannotJoin tells the fleet that the node's own record cannot be read, and why. The secret that proves the name is in
// it, so the fleet believes it only of the host that had the name last, or where nobody has it.
func (r *registration) cannotJoin(ctx context.Context, why error) {
	if r.config.alone() {
		return
	}
	me, err := r.owner()
	var store *state.Store
	if err == nil {
		store, err = r.connection.open(ctx)
	}
	if err == nil {
		st := state.Status{Run: r.out.Run, Reason: firstLine(why), Time: time.Now().UTC()}
		err = store.Explain(state.TellUnproven(ctx, store, r.config.Node.Name, me, st))
	}
	if err != nil {
		r.log.WithError(err).Warn("that the pull could not be made is not recorded")
	}
}

// acceptedWithout tells a record that an operator accepted what it may have forgotten of this node: the slot that it
// holds, and that it is through. The node is registered before: a copy of this host's disk, which is refused, holds
// nothing.
func (r *registration) acceptedWithout(ctx context.Context, store *state.Store, presence *state.Presence) error {
	r.local.Through = ""
	held := r.local.slot()
	if held == nil {
		return nil
	}
	claimed, err := lock.PutBack(ctx, store, held, presence.Lives())
	presence.Claims(claimed)
	return err
}

// goOnWithout says that the pull goes on without the fleet's record. The loop says it once.
func (r *registration) goOnWithout(err error, since time.Time) {
	var back *state.WentBackError
	r.without(errors.As(err, &back))
	if r.compiler.quiet = r.loop && r.away.lasts(); r.loop && r.away.begins(err, since) {
		return
	}
	r.out.warn(fmt.Errorf("%w; until then no new version and no gated step, but drift is corrected", err))
}

// leaseTime is how long the node counts as alive after this pull: until the next one is surely overdue.
func (r *registration) leaseTime() time.Duration {
	if r.loop {
		return agentLease
	}
	return r.untilNext()
}

// untilNext is how long it takes until the next pull is surely overdue.
func (r *registration) untilNext() time.Duration {
	interval := max(r.config.Agent.Interval.Std(), min(r.local.Cadence(r.outside.Host.Boot), maxInterval))
	return max(pullLease, min(3*interval, interval+overdue))
}

// The times to live of leases: an agent renews its own, a single pull leaves it to run out.
const (
	agentLease  = 60 * time.Second
	pullLease   = 90 * time.Second
	maxInterval = 24 * time.Hour
	// no pull is waited for longer than that: a host that pulls once a day would be said to live for three
	overdue = 2 * time.Hour
)

// renew keeps the lease alive until the next pull replaces it, or the agent is closed: also while a pull that was told
// to stop finishes its step.
func (r *registration) renew(ctx context.Context, store *state.Store, presence *state.Presence) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.connection.renews(presence, cancel)
	seen, next := r.local.Store, r.untilNext()
	if !r.config.alone() {
		r.compare = func(ctx context.Context) *state.WentBackError {
			return r.places.compare(ctx, store, presence.Seen(seen), next)
		}
	}
	compare := r.compare
	store.Presences.KeepAlive(ctx, presence, r.pulse.atWork, func(doubtful bool) {
		if compare != nil &&
			// a restored etcd may know the lease of an earlier pull, and be ahead again of what this node saw
			(doubtful || len(r.places.all()) > 0) {
			compare(ctx)
		}
	})
}

// relabel remembers the labels that the inventory gives the node, and tells the fleet. They hold from the next
// registration on, which comes before the inventory is read.
func (r *registration) relabel(ctx context.Context, labels map[string]string) error {
	if r.presence == nil || maps.Equal(labels, r.presence.Node.Labels) {
		return nil
	}
	r.local.Labels = labels
	if err := r.local.save(); err != nil {
		return err
	}
	return r.store.Presences.Relabel(ctx, r.presence, labels)
}

// node is this node with the labels that the inventory gave it last.
func (r *registration) node() render.Node {
	n := r.config.Node.Node
	if r.local.Labels != nil {
		n.Labels = r.local.Labels
	}
	return n
}
