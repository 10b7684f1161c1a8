package event

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Reactor is a host's part in the election of the reactor, and its work when it is elected. It is not safe for
// concurrent use.
type Reactor struct {
	Store *state.Store
	Node  string
	Log   *logrus.Entry
	NewID func() string
	// Hesitate is how long it waits before it takes over from a reactor that is gone: of many hosts each another time.
	Hesitate time.Duration
	// Observes says whether somebody wants to hear what happens to hosts, rollouts and services: the reactor finds it in
	// the fleet's record. It is asked at each step: a version may bring a reaction or a sink for it. nil: nobody does.
	Observes func() bool
	// Rules are what the repository says at the version that the fleet is at, by what this host has. The error is
	// ErrBehind where it has another version.
	Rules func(ctx context.Context) (Rules, error)
	// Beside goes on beside the work while this process is the reactor, which it became at a revision, until ctx ends.
	// Without follow it does what there is to do once. nil: there is nothing.
	Beside func(ctx context.Context, since int64, follow bool)

	clock    clock         // of the fleet
	observed time.Time     // when it looked at the fleet last
	patience time.Duration // when it cannot work for so long it lets another one; 0: a minute
	rarely   time.Duration // it does not look where somebody did so lately, as each pull of each host would
}

// Rules are the reactions of a version, and who its hosts are.
type Rules struct {
	Version   string
	Reactions []*Reaction
	Find      func(host string) (node string, known bool)
	// Unseen is why Find, or the Hosts of a reaction, could not look at the fleet; nil: they could. What was decided then
	// is not written. nil is a fleet that can always be looked at.
	Unseen func() error
}

// ErrBehind says that this host does not have the fleet's version yet: it cannot say which reactions there are.
var ErrBehind = errors.New("this host does not have the version of the fleet yet")

// The times of the election and of the work.
const (
	leaseTime = 10 * time.Second // of a reactor that does not answer; then another one takes over
	askAgain  = 30 * time.Second // a watch is never trusted alone
	tidyEvery = time.Hour
	// besideTime is how long a pull of a host without an agent may take for what is to be done beside.
	besideTime = 10 * time.Second
	// observeEvery is how often the reactor looks at the fleet. It reads all of its record.
	observeEvery = 15 * time.Second
)

// Run is the reactor whenever it is elected, until ctx ends. What goes wrong is logged, and it tries again.
func (r *Reactor) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := r.Store.Events.AwaitVacancy(ctx, r.Hesitate)
		if err == nil {
			err = r.term(ctx, r.workBeside)
		}
		if err != nil && ctx.Err() == nil {
			r.Log.WithError(r.Store.Explain(err)).Debug("reactor")
			state.Pause(ctx, leaseTime/2)
		}
	}
}

// Once works off what there is, unless another host is the reactor. It is for hosts without an agent, at each pull.
func (r *Reactor) Once(ctx context.Context) error {
	other, err := r.Store.Events.Reactor(ctx)
	if other != "" || err != nil {
		return err
	}
	r.rarely = time.Minute
	return r.term(ctx, func(ctx context.Context, since int64) error {
		_, _, err := r.workOff(ctx, since)
		if err == nil && r.Beside != nil {
			limited, cancel := context.WithTimeout(ctx, besideTime)
			defer cancel()
			r.Beside(limited, since, false)
		}
		return err
	})
}

// term does something while this process is the reactor, and nothing where another one is.
func (r *Reactor) term(ctx context.Context, work func(ctx context.Context, since int64) error) error {
	lease, err := r.Store.Client.Grant(ctx, int64(leaseTime.Seconds()))
	if err != nil {
		return err
	}
	defer r.giveUp(ctx, lease.ID)
	since, _, err := r.Store.Events.Lead(ctx, r.Node, lease.ID)
	if err != nil || since == 0 {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var alive sync.WaitGroup
	alive.Go(func() {
		defer cancel()
		r.renew(ctx, lease.ID)
	})
	defer alive.Wait()
	defer cancel()
	return work(ctx, since)
}

// renew renews a lease until that fails or ctx ends.
func (r *Reactor) renew(ctx context.Context, lease clientv3.LeaseID) {
	for last := time.Now(); state.Pause(ctx, leaseTime/4); {
		asked := time.Now()
		limited, cancel := context.WithTimeout(ctx, leaseTime/4)
		_, err := r.Store.Client.KeepAliveOnce(limited, lease)
		cancel()
		if err == nil {
			last = asked
		}
		if time.Since(last) > leaseTime*3/4 {
			return
		}
	}
}

// giveUp has the next reactor begin at once.
func (r *Reactor) giveUp(ctx context.Context, lease clientv3.LeaseID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTime/2)
	defer cancel()
	_, _ = r.Store.Client.Revoke(ctx, lease) // it ends by itself
}

// workBeside works, and does what is to be done beside.
func (r *Reactor) workBeside(ctx context.Context, since int64) error {
	if r.Beside == nil {
		return r.work(ctx, since)
	}
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { r.Beside(ctx, since, true) })
	defer beside.Wait()
	defer cancel()
	return r.work(ctx, since)
}

// work works off what there is again and again. It returns when this process is not the reactor any more, or cannot be.
func (r *Reactor) work(ctx context.Context, since int64) error {
	worked, tidied := time.Now(), time.Time{}
	for ctx.Err() == nil {
		seen, look, err := r.workOff(ctx, since)
		switch {
		case errors.Is(err, errNotReactor):
			return err
		case err == nil:
			worked = time.Now()
		case time.Since(worked) > cmp.Or(r.patience, time.Minute):
			if !errors.Is(err, ErrBehind) { // that is so during each rollout
				r.Log.WithError(r.Store.Explain(err)).Warn("events wait: this host was the reactor and could not read them")
			}
			return err
		default:
			r.Log.WithError(r.Store.Explain(err)).Debug("the reactor tries again")
			state.Pause(ctx, time.Second)
			continue
		}
		if time.Since(tidied) > tidyEvery && r.tidy(ctx, since) == nil {
			tidied = time.Now()
		}
		poll := askAgain
		if !look.IsZero() {
			poll = min(askAgain, max(10*time.Millisecond, time.Until(look)))
		}
		r.Store.Events.AwaitEvents(ctx, seen, poll)
	}
	return ctx.Err()
}

// tidy removes what is older than it is kept.
func (r *Reactor) tidy(ctx context.Context, since int64) error {
	now, err := r.readClock(ctx, since)
	if err != nil {
		return err
	}
	return errors.Join(r.Store.Reactions.Forget(ctx, now), r.Store.EventLog.Forget(ctx, now))
}

// errNotReactor says that another process is the reactor by now.
var errNotReactor = errors.New("another host is the reactor by now")

// workOff takes steps until there is nothing new. It returns the revision up to which it looked, and when it is to look
// again although nothing happens.
func (r *Reactor) workOff(ctx context.Context, since int64) (seen int64, look time.Time, err error) {
	for {
		now, err := r.readClock(ctx, since) // before the inbox: it may write the cursor
		if err != nil {
			return 0, look, err
		}
		in, err := r.Store.Events.Inbox(ctx)
		if err != nil {
			return 0, look, err
		}
		looks := r.observes() && time.Since(r.observed) >= observeEvery
		if len(in.Events)+len(in.Groups) == 0 && !looks {
			return in.Revision, r.nextLook(time.Time{}), nil
		}
		entry, look, err := r.step(ctx, in, now, looks)
		if err != nil {
			return 0, look, err
		}
		if entry.Empty() {
			return in.Revision, r.nextLook(look), nil
		}
		for _, run := range entry.Runs {
			r.Log.WithFields(logrus.Fields{"reaction": run.Reaction, "event": run.Event.Name, "run": run.ID}).
				Infof("starting; hosts: %d", len(run.Hosts))
		}
		written, err := r.Store.Events.Enter(ctx, since, in, entry)
		if err != nil {
			return 0, look, err
		}
		if !written {
			return 0, look, errNotReactor
		}
	}
}

// step decides a step, at a time by the fleet's clock. It returns by the clock of this host when the reactor looks
// again.
func (r *Reactor) step(
	ctx context.Context, in *state.Inbox, now time.Time, looks bool,
) (entry state.Entry, look time.Time, err error) {
	rules, err := r.Rules(ctx)
	if err != nil {
		return entry, look, err
	}
	desk, err := r.desk(ctx, in, rules, now, looks)
	if err != nil {
		return entry, look, err
	}
	if entry, look = desk.Step(ctx); !look.IsZero() {
		look = look.Add(desk.Ahead)
	}
	if err = ctx.Err(); err == nil && rules.Unseen != nil {
		err = rules.Unseen()
	}
	return entry, look, err
}

// desk returns what a step is decided from, at a time by the fleet's clock. If it looks at the fleet, the changes there
// are among it.
func (r *Reactor) desk(ctx context.Context, in *state.Inbox, rules Rules, now time.Time, looks bool) (*Desk, error) {
	d := &Desk{
		In: in, Reactions: rules.Reactions, Find: rules.Find, Version: rules.Version, Node: r.Node, Now: now,
		Ahead: time.Since(now), NewID: r.NewID,
	}
	if !looks {
		return d, nil
	}
	r.observed = time.Now()
	was, fleet, err := r.Store.Events.Observe(ctx, now, r.rarely)
	if fleet == nil || err != nil {
		return d, err
	}
	next, changes := Observe(was, fleet, now)
	if d.Changes = changes; was == nil || !was.Same(next) || len(changes) > 0 || r.rarely > 0 {
		d.Next = &next
	}
	return d, nil
}

func (r *Reactor) observes() bool { return r.Observes != nil && r.Observes() }

// nextLook is when the reactor looks again: at the fleet, too, where that is asked for.
func (r *Reactor) nextLook(at time.Time) time.Time {
	if due := r.observed.Add(observeEvery); r.observes() && (at.IsZero() || due.Before(at)) {
		return due
	}
	return at
}
