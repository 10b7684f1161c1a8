package agent

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// Options are what one pull may be told.
type Options struct {
	Wait         time.Duration           // how long to wait in all
	AcceptRewind bool                    // accept a rewritten history of the repositories, for the whole fleet
	Run          bool                    // in the plan of a work tree: run what it needs for its answers
	PruneAll     bool                    // remove what jobs no longer declare also where it is more than the limit
	PruneRemoved bool                    // remove also what removed jobs left that did not say prune: true
	Retry        bool                    // try a version again whose files were put back here
	By           string                  // who asked, for the record
	Begins       func(apply.Begun)       // sees each step as it begins to change the host; may be nil
	Watch        func(*apply.StepReport) // sees each step as it ends; may be nil
	Waiting      func(*lock.Wait)        // sees each reason to wait; may be nil
	Phase        func(PhaseName)         // sees each phase as it begins; may be nil
	loop         bool                    // the agent's loop: the lease is short and renewed
}

// pull is one pull in progress: do is its order, and each of its parts does one thing in it.
type pull struct {
	*self
	agent *Agent
	Options
	*joined
	local *local
	out   *Outcome
	log   *logrus.Entry

	registration *registration // joins the fleet
	carrying     *carrying     // the host's part in the fleet's datastore
	agreement    *agreement    // finds the version to work on
	announcer    *announcer    // tells the fleet what the node offers
	compiler     *compiler     // makes the version's program
	orders       *orders       // of operators
	turns        *turns        // at slots and places
	reporter     *reporter     // tells the fleet what the node does
	reports      *reports      // on disk, and where logs go

	phases    phases
	waits     waits
	places    places
	overtaken bool          // the fleet moved on to another version in mid-run
	silent    bool          // etcd did not answer in the last run
	awaited   *lock.Wait    // the condition that the last run still waits for; nil: none
	applied   []*apply.Host // on which programs ran
	program   *compiled     // of the version that the pull works on; nil: it did not come so far
}

// Pull brings the node to the fleet's version, once: do below is how. What went wrong with the commit, the host or the
// fleet is in the Outcome; an error means that the pull could not be made at all.
func (a *Agent) Pull(ctx context.Context, o Options) (*Outcome, error) {
	p := a.pull(ctx, o)
	held, err := state.LockRun(a.config.Paths.State, p.out.Run)
	if err != nil {
		return p.out, err
	}
	defer p.unlock(held)
	ownProgram{p}.keepsFirst()
	p.phases.begin(PhaseJoin)
	defer func() {
		p.out.took(p.phases.end())
		measures{p}.keep(ctx, err)
	}()
	refreshed := p.reporter.refreshing(ctx, refreshEvery, p.waits.lasts)
	err = p.correctAnyhow(ctx, unlessForgotten(ctx, p, p.do(ctx)))
	p.phases.begin(PhasePublish)
	refreshed()
	p.out.awaits(p.reporter.followed(p.out.Wait)) // judged when it is printed: the others went on meanwhile
	p.carrying.tend(ctx, p.carrying.version != nil && p.local.upToDate(p.carrying.version))
	p.account(ctx, err)
	happenings{p}.tell(ctx)
	p.out.read(p.compiler.asked.sorted())
	ownProgram{p}.cameBack(err)
	p.nameBad()
	tracing{p}.send(ctx, err)
	if err == nil && p.out.asksForBoot(func(r *apply.Report) bool { return r.Reboot }) {
		err = p.agent.host("").Reboot(ctx)
	} else {
		p.handOver(ctx)
	}
	if p.store != nil {
		err = p.store.Explain(err)
	}
	return p.out, err
}

// nameBad warns of the fleet's records that could not be read: nothing else fails for them.
func (p *pull) nameBad() {
	if p.store == nil {
		return
	}
	for _, bad := range p.store.BadRecords() {
		p.out.warn(bad)
	}
}

// pull is a pull, or what looks like one without writing, that nothing was done for yet.
func (a *Agent) pull(ctx context.Context, o Options) *pull {
	out := &Outcome{Run: runID()}
	log, member := a.logger.WithField("run", out.Run), &joined{}
	own := &local{fleet: member, dir: a.config.Paths.State}
	p := &pull{self: a.self, agent: a, Options: o, out: out, log: log, local: own, joined: member}
	p.waits.allowed, p.places.node, p.places.log = o.Wait, a.config.Node.Name, log
	p.waits.pulse, p.phases.watch = a.pulse, o.Phase
	p.phases.beats = func(name PhaseName) { a.pulse.work(a.within(name, o.Wait)) }
	p.compiler = &compiler{
		self: a.self, joined: member, versions: a.versions, out: out, offers: map[string]offered{},
		ownVars: sync.OnceValues(a.readOwnVars), keys: newKeyring(&a.config), facts: sync.OnceValue(a.outside.Host.Facts),
	}
	p.reporter = &reporter{
		joined: member, ctx: ctx, local: own, node: a.config.Node.Name, run: out.Run, out: out, log: log, shows: o.Waiting,
		notes:  func(w *lock.Wait) { p.waits.notes(w); measures{p}.awaits(w) },
		begins: o.Begins, ends: o.Watch,
		away: func(err error, asked time.Time) bool { return o.loop && a.away.begins(err, asked) },
	}
	p.reports = &reports{config: &a.config, joined: member, out: out, log: log}
	p.waits.over = func() { // which may be the one that is shown
		p.reporter.lastShown.Store(nil)
		a.monitoring.waited.Store(!p.waits.lasts())
	}
	p.announcer = &announcer{
		self:     a.self,
		joined:   member,
		host:     a.host,
		versions: a.versions,
		local:    own,
		compiler: p.compiler,
		out:      out,
		early:    map[string]bool{},
	}
	p.registration = &registration{
		self: a.self, joined: member, connection: a.connection, pulse: a.pulse, size: a.size, away: a.away,
		local:    own,
		compiler: p.compiler,
		places:   &p.places,
		reporter: p.reporter,
		out:      out,
		log:      log,
		loop:     o.loop,
		unproven: ownProgram{p}.unproven,
	}
	p.agreement = &agreement{
		self: a.self, joined: member, local: own, compiler: p.compiler, announcer: p.announcer, reporter: p.reporter,
		out: out, log: log, by: o.By, rewind: o.AcceptRewind,
	}
	p.carrying = &carrying{self: a.self, joined: member, host: a.host, out: out, log: log}
	p.turns = &turns{
		self: a.self, joined: member, local: own, registration: p.registration, reporter: p.reporter, places: &p.places,
		run: out.Run, wait: o.Wait, loop: o.loop,
	}
	p.orders = &orders{
		self: a.self, joined: member, away: a.away, host: a.host,
		local:        own,
		registration: p.registration,
		reporter:     p.reporter,
		turns:        p.turns,
		waits:        &p.waits,
		out:          out,
		log:          log,
		loop:         o.loop,
	}
	return p
}

// do is the one pull, from start to end.
func (p *pull) do(ctx context.Context) error {
	// the files may have changed since the agent began
	if err := cmp.Or(p.config.CheckFiles(), p.config.Node.checkMachine(p.outside.Host.ID())); err != nil {
		return err
	}
	p.out.warn(p.config.openSecrets(warned)...)
	if err := p.local.open(p.config.Node.Name); err != nil {
		p.registration.cannotJoin(ctx, err)
		return err
	}
	if err := p.local.belongsTo(p.config.Node.Name); err != nil {
		return err
	}
	// before it waits for anything: what it holds may be given away while it counts as lost
	if err := p.registration.join(ctx); err != nil {
		return err
	}
	defer p.carrying.meanwhile(ctx)()
	if err := p.local.openJournal(); err != nil {
		return err
	}
	if err := p.awaitOrphans(ctx); err != nil {
		return err
	}
	p.phases.begin(PhaseFetch)
	heads, err := p.outside.Repositories.Pull(ctx)
	if err != nil {
		return cmp.Or(p.agreement.nothingFetched(err), errors.Join(p.local.saveTroubles(), p.reporter.tellIdle(ctx)))
	}
	p.out.fetched(heads)
	p.phases.begin(PhaseAgree)
	version, err := p.agreement.agree(ctx, heads)
	if err := errors.Join(err, p.local.saveTroubles()); err != nil {
		return err
	}
	if version == nil {
		return p.reporter.tellIdle(ctx)
	}
	p.phases.begin(PhaseCompile)
	program, err := p.announcer.prepare(ctx, version)
	if err != nil {
		err = p.cannotCompile(ctx, version, err)
		if frozen, unread := p.orders.frozen(ctx, nil); !frozen && unread == nil { // what runs here may be repaired
			reactions{p}.work(ctx, version)
		}
		return err
	}
	p.carrying.compiled(version, program.catalog)
	p.agent.answering.knows(version, program, p.agent.size.nodes)
	p.program = program
	if err := p.registration.relabel(ctx, program.catalog.Node.Labels); err != nil {
		return err
	}
	var begins *state.Version // now, unless it is frozen
	if p.local.upToDate(version) {
		begins = version
	}
	if frozen, err := p.orders.frozen(ctx, begins); frozen || err != nil {
		p.out.worksOn(version)
		return errors.Join(err, p.reporter.tellConfigured(ctx, version))
	}
	if p.store == nil || p.local.upToDate(version) {
		if err := p.converge(ctx, version, program); err != nil || !p.needsTurn() {
			p.orders.commands(ctx, program.catalog)
			reactions{p}.work(ctx, version)
			return err
		}
	}
	p.orders.commands(ctx, program.catalog)
	if (reactions{p}).work(ctx, version) { // a reboot in the midst of it, say: the version comes behind it
		return nil
	}
	if left, err := p.leftAlone(ctx, version, program); left || err != nil {
		return err
	}
	turn, err := p.gate(ctx, version, program)
	if turn == nil || err != nil {
		return err
	}
	if err := p.upgrade(ctx, version, program, turn); err != nil || !p.local.upToDate(version) {
		return err
	}
	reactions{p}.work(ctx, version)
	return nil
}

// handOver does what runs left for the end: what would end this process. What could not be done is no failure of the
// run.
func (p *pull) handOver(ctx context.Context) {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	for _, h := range p.applied {
		p.out.warn(h.DoLater(ctx)...)
	}
}

func (p *pull) unlock(held *state.RunLock) {
	if err := errors.Join(p.local.close(), held.Release()); err != nil {
		p.log.WithError(err).Warn("run lock")
	}
}

// needsTurn reports that something is left for which this node has to have its turn although the version is the same: a
// boot, or a change that follows a new result of the fleet.
func (p *pull) needsTurn() bool {
	return p.store != nil && p.out.Report != nil && p.out.Report.NeedsTurn
}

// converge corrects drift of the version that the node runs. It takes no slot.
func (p *pull) converge(ctx context.Context, v *state.Version, program *compiled) error {
	p.out.worksOn(v)
	if err := p.turns.leaveSlot(ctx, v, program); err != nil {
		return err
	}
	report, err := p.run(ctx, v, program, nil)
	if err != nil {
		return err
	}
	p.goesOnWithout()
	p.noteAwaited(v, report)
	if err := p.turns.through(ctx, v, program, report); err != nil {
		return err
	}
	return p.publish(ctx, v, report, nil)
}

// upgrade brings the node to a version under its slot.
func (p *pull) upgrade(ctx context.Context, v *state.Version, program *compiled, turn *lock.Turn) error {
	p.out.upgrades(v)
	p.log.WithFields(logrus.Fields{"version": v.String(), "from": p.local.Running.String()}).Info("upgrading")
	p.places.slot.Store(turn.Slot())
	p.local.Upgrading, p.local.Held = v.ID, turn.Slot()
	if err := p.local.save(); err != nil {
		return err
	}
	report, err := p.run(ctx, v, program, turn)
	if err != nil {
		_, unsettled := p.recordEnd(ctx, v, turn, &apply.Report{Stopped: err.Error()})
		return errors.Join(err, unsettled)
	}
	p.noteAwaited(v, report)
	told, err := p.recordEnd(ctx, v, turn, report)
	if err := errors.Join(err, p.noteRollback(ctx, v, program, report)); err != nil {
		return err
	}
	p.goesOnWithout()
	return p.publish(ctx, v, report, told)
}

// goesOnWithout asks etcd nothing more in this pull, where it did not answer in its last run.
func (p *pull) goesOnWithout() {
	if p.silent {
		p.drop()
	}
}
