package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// Times as the agent has them.
const (
	agentLease = 60 * time.Second
	pullLease  = 90 * time.Second
	recordTime = 10 * time.Second
	deadline   = time.Hour
)

// work pulls again and again: as the agent's loop does, or as cron does.
func (p *process) work() {
	for p.ctx.Err() == nil {
		began := time.Now()
		p.waited, p.out, p.failed = 0, nil, false
		err := p.pull(p.ctx)
		if p.leased != nil && !p.loop {
			p.leased()
		}
		pause := p.interval
		if p.loop && p.failed { // a cron job comes when it comes
			pause = backoff(pause, p.disk.Failures)
		}
		pause += p.upTo(10*time.Second) - time.Since(began)
		if p.out != nil {
			p.worked = p.out.ID
		}
		if !p.loop || err != nil {
			_ = p.sleep(p.ctx, max(0, pause))
			continue
		}
		idle, cancel := context.WithTimeout(p.ctx, max(0, pause))
		if p.store.AwaitWork(idle, p.worked, p.seen) != nil {
			<-idle.Done()
		}
		cancel()
		_ = p.sleep(p.ctx, p.upTo(20*time.Millisecond))
	}
}

// backoff is how an agent's pauses grow.
func backoff(pause time.Duration, failures int) time.Duration {
	for range failures - 1 {
		pause = min(2*pause, time.Hour)
	}
	return pause
}

// pull is one pull.
func (p *process) pull(ctx context.Context) error {
	if err := p.join(ctx); err != nil {
		return err
	}
	if err := p.awaitOrphan(ctx); err != nil {
		return err
	}
	v, err := p.agree(ctx)
	if err != nil {
		return err
	}
	r := p.fleet.find(v.ID)
	if err := p.relabel(ctx, r.role(p.name, p.role)); err != nil {
		return err
	}
	if p.upToDate(v) {
		return p.converge(ctx, v, r)
	}
	turn, err := p.gate(ctx, v, r)
	if turn == nil || err != nil {
		return err
	}
	return p.upgrade(ctx, v, r, turn)
}

// uuidOf is a node's UUID. One by chance would make each life of a seed another.
func uuidOf(node string) string { return uuid.NewSHA1(uuid.Nil, []byte(node)).String() }

// join registers the node.
func (p *process) join(ctx context.Context) error {
	ttl := agentLease
	if !p.loop {
		ttl = max(pullLease, 3*p.interval)
	}
	accepted := p.disk.Store.Accepted
	origin, err := p.store.Guard(ctx, p.name, p.disk.Store)
	if _, back := errors.AsType[*state.WentBackError](err); back {
		_, put := p.putBack(ctx, p.store.Doubted())
		err = errors.Join(err, put)
	}
	if err != nil {
		return err
	}
	node := state.Node{Name: p.name, UUID: uuidOf(p.name), Role: cmp.Or(p.disk.label, p.role), LastSeen: time.Now().UTC()}
	if p.disk.Running != nil {
		node.Running = p.disk.Running.ID
	}
	presence, err := p.store.Register(ctx, node, p.alive(), nil, ttl)
	if err == nil && origin.Accepted != accepted {
		var claimed int64
		claimed, err = p.putBack(ctx, presence.Lives())
		presence.Claims(claimed)
	}
	if err != nil {
		return err
	}
	p.presence, p.seen = presence, presence.Revision
	origin = presence.Seen(origin)
	if err := p.save(func(d *disk) {
		if d.Store = origin; origin.Accepted != accepted { // the record may have forgotten that this node is through
			d.Through = ""
		}
	}); err != nil {
		return err
	}
	p.fleet.record(event{host: p.host, node: p.name, what: "joined", fence: presence.Revision})
	if p.leased != nil {
		p.leased()
	}
	renewing, cancel := context.WithCancel(p.ctx)
	p.leased = cancel
	p.store.KeepAlive(renewing, presence, func() bool { return true }, func(doubtful bool) {
		if doubtful || p.held.Load() != nil || p.inStep.Load() != nil {
			p.compare(renewing, presence.Seen(origin))
		}
	})
	return nil
}

// putBack tells a record that may have forgotten it which slot the node holds.
func (p *process) putBack(ctx context.Context, while clientv3.Cmp) (claimed int64, err error) {
	if p.disk.Held == nil {
		return 0, nil
	}
	return lock.PutBack(ctx, p.store, p.disk.Held, while)
}

// compare looks whether the record went back in time, and tells it then which slot the node holds, also while a long
// step runs.
func (p *process) compare(ctx context.Context, seen state.Origin) {
	held := []*state.HeldPlace{p.held.Load(), p.inStep.Load()}
	_, err := p.store.Guard(ctx, p.name, seen)
	for _, one := range held {
		if _, back := errors.AsType[*state.WentBackError](err); back && one != nil {
			_, _ = lock.PutBack(ctx, p.store, one, p.store.Doubted()) // the next pull does it again
		}
	}
}

// awaitOrphan waits for the command of a process that was killed.
func (p *process) awaitOrphan(ctx context.Context) error {
	for until := time.Now().Add(max(p.wait, time.Second)); ; {
		runs := p.orphaned()
		switch {
		case !time.Now().Before(runs):
			return nil
		case !time.Now().Before(until):
			return errors.New("a command outlived its pull")
		}
		if err := p.sleep(ctx, min(time.Until(runs), time.Until(until))); err != nil {
			return err
		}
	}
}

// relabel takes the role that the version gives the node.
func (p *process) relabel(ctx context.Context, role string) error {
	if p.presence.Node.Role == role {
		return nil
	}
	if err := p.store.Relabel(ctx, p.presence, map[string]string{"role": role}); err != nil {
		return err
	}
	return p.save(func(d *disk) { d.label = role })
}

// agree finds the fleet's version, and proposes a newer one.
func (p *process) agree(ctx context.Context) (*state.Version, error) {
	for {
		current, rev, err := p.store.Current(ctx)
		if err != nil {
			return nil, err
		}
		p.current, p.agreed = current, rev
		head := p.fleet.head()
		stays, err := p.stays(ctx, current, head)
		if err != nil {
			return nil, err
		}
		if stays {
			p.seen = max(p.seen, rev)
			return current, nil
		}
		next := state.Version{ID: head.id, By: p.name, Canary: head.waitsForCanaries(), At: time.Now().UTC()}
		if current != nil {
			next.Previous, next.Bad = current.ID, current.Bad
		}
		if _, err := p.store.Propose(ctx, next, current, rev); err != nil {
			return nil, err
		}
	}
}

func (p *process) stays(ctx context.Context, current *state.Version, head *release) (bool, error) {
	switch {
	case current == nil:
		return false, nil
	case !newer(head.id, current.ID) || current.Held || slices.Contains(current.Bad, head.id):
		return true, nil
	case !current.Canary:
		return false, nil
	}
	through, err := p.store.CanariesDone(ctx, current, canaries)
	return !through, err
}

func (p *process) upToDate(v *state.Version) bool {
	return v.Same(p.disk.Running) && p.disk.Validated && !p.halfway()
}

func (p *process) halfway() bool {
	return p.disk.Failed != "" || p.disk.Upgrading != "" || p.disk.run != "" && (p.disk.Running == nil || p.disk.run != p.disk.Running.ID)
}

// request is the node's wish for a version.
func (p *process) request(v *state.Version, r *release) lock.Request {
	return lock.Request{
		Presence: p.presence, Version: v, VersionRev: p.agreed, Run: p.name, Order: p.disk.Order(v.Rollout()), Lasting: !p.loop,
		Brief: p.wait < lock.Patience, Parked: p.disk.Parked == v.Rollout(),
		Rules: r.rules(p.name, p.role), Inventory: p.fleet.inventory(), Waiting: p.waiting(v),
	}
}

// waiting tells everybody why the node waits.
func (p *process) waiting(v *state.Version) func(*lock.Wait) {
	return func(w *lock.Wait) {
		if w.Gate == "" || w.Reason == "" || w.Clear == "" {
			p.fleet.breaks("%s waits and does not say for what: %+v", p.name, w)
		}
		if p.upToDate(v) {
			return
		}
		ctx, cancel := afterwards(p.ctx)
		defer cancel()
		_ = p.store.SetStatus(ctx, p.name, state.Rollout, state.Pending, state.Status{Version: v.ID, Gate: w.Gate, Reason: w.Reason, Remedy: w.Remedy}) // told again
	}
}

func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), recordTime)
}

// waits waits as long as the pull may in all.
func (p *process) waits(ctx context.Context, wait func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, max(0, p.wait-p.waited))
	defer cancel()
	began := time.Now()
	defer func() { p.waited += time.Since(began) }()
	return wait(limited)
}

// gate takes a slot. Neither a turn nor an error: the node waits.
func (p *process) gate(ctx context.Context, v *state.Version, r *release) (*lock.Turn, error) {
	turn := lock.NewTurn(p.store, p.request(v, r))
	if p.disk.Parked == v.Rollout() {
		if left, err := turn.Left(ctx); !left || err != nil {
			return turn, err
		}
	}
	wait, err := turn.Try(ctx)
	p.out = v
	if wait != nil {
		if p.disk.Order(v.Rollout()) == 0 {
			if err := p.save(func(d *disk) { d.Queued, d.Place = v.Rollout(), p.presence.Revision }); err != nil {
				return nil, err
			}
		}
		if p.halfway() {
			if _, err := lock.LeaveSteps(ctx, p.store, p.name, func(string) bool { return false }); err != nil {
				return nil, err
			}
		}
		if err = p.waits(ctx, turn.Acquire); errors.Is(err, context.DeadlineExceeded) {
			err = wait
		}
	}
	switch {
	case err == nil:
		return turn, nil
	case errors.As(err, &wait), errors.Is(err, lock.ErrSuperseded):
		return nil, nil
	}
	return nil, err
}

// converge corrects drift of the version that runs: here there is none.
func (p *process) converge(ctx context.Context, v *state.Version, r *release) error {
	p.out = v
	x := p.execution(v, r, nil)
	x.run(ctx)
	if err := x.through(ctx); err != nil {
		return err
	}
	return p.publish(ctx, v, x)
}

// through tells a rollout that came back to the version which runs here that this node is through.
func (x *execution) through(ctx context.Context) error {
	rollout := x.version.Rollout()
	if x.disk.Through == rollout || x.failed != "" || x.pending != "" || x.stopped != nil {
		return nil
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	if err := lock.NewTurn(x.store, x.request(x.version, x.release)).Succeed(ctx); err != nil {
		return err
	}
	return x.save(func(d *disk) { d.Through = rollout })
}

// upgrade brings the node to a version under its turn.
func (p *process) upgrade(ctx context.Context, v *state.Version, r *release, turn *lock.Turn) error {
	p.out = v
	p.held.Store(turn.Slot())
	if err := p.save(func(d *disk) { d.Upgrading, d.Held = v.ID, turn.Slot() }); err != nil {
		return err
	}
	if turn.Holds() {
		p.fleet.record(event{host: p.host, node: p.name, what: "claimed", fence: turn.Fence()})
	}
	x := p.execution(v, r, turn)
	x.run(ctx)
	if err := x.settle(ctx); err != nil {
		return err
	}
	return p.publish(ctx, v, x)
}

// settle records how an upgrade ended, in the fleet first.
func (x *execution) settle(ctx context.Context) error {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	switch {
	case x.failed != "":
		return x.settleFailed(ctx)
	case x.pending != "" || x.stopped != nil:
		return x.settlePending(ctx)
	}
	if err := x.turn.Succeed(ctx); err != nil {
		return err
	}
	x.held.Store(nil)
	return x.save(func(d *disk) {
		d.Running, d.Validated, d.Through, d.run = x.version, true, x.version.Rollout(), ""
		d.Held, d.Parked, d.Upgrading, d.Failed, d.Failures = nil, "", "", "", 0
	})
}

func (x *execution) settleFailed(ctx context.Context) error {
	how := lock.Halting
	switch {
	case x.late:
		how = lock.Late
	case x.version.Same(x.disk.Running):
		how = lock.Broken
	case x.faulty:
		how = lock.Host
	}
	x.process.failed = true
	began := x.fleet.c.now()
	err := x.turn.Fail(ctx, x.failed, how)
	if err == nil && !x.fleet.told(x.store, x.name, began) {
		x.fleet.breaks("%s failed (%s), and the fleet does not know", x.name, x.failed)
	}
	return errors.Join(err, x.save(func(d *disk) {
		d.Fails(x.version.ID, time.Now())
		d.Held = x.turn.Slot()
	}))
}

func (x *execution) settlePending(ctx context.Context) error {
	st := state.Status{Version: x.version.ID, Reason: x.pending, Gate: "a step", Remedy: state.NoAction()}
	if x.stopped != nil {
		st.Reason = x.stopped.Error()
		return errors.Join(x.store.SetStatus(ctx, x.name, state.Rollout, state.Pending, st), x.save(func(d *disk) { d.Held = x.turn.Slot() }))
	}
	x.held.Store(nil)
	return errors.Join(x.turn.Park(ctx, st), x.save(func(d *disk) { d.Parked, d.Held = x.version.Rollout(), nil }))
}

// publish tells the fleet what came of a run.
func (p *process) publish(ctx context.Context, v *state.Version, x *execution) error {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	validated := x.failed == ""
	if v.Same(p.disk.Running) && p.disk.Validated != validated && x.pending == "" {
		if err := p.save(func(d *disk) { d.Validated = validated }); err != nil {
			return err
		}
	}
	st := state.Status{Version: v.ID, Reason: fmt.Sprint(x.failed, x.pending)}
	ops := p.store.StatusOps(p.name, state.Configured, state.Success, st)
	if v.Same(p.disk.Running) && x.turn == nil && p.presence.Node.Running != v.ID {
		ops = append(append(ops, p.store.RunningOps(p.presence, v.ID)...), p.store.RingOp())
	}
	_, err := p.store.Client.Txn(ctx).Then(ops...).Commit()
	return err
}
