package datastore

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/authority"
	"github.com/pullet/pullet/state"
)

// Options are what a datastore needs beside its own files.
type Options struct {
	Config
	Fleet string
	Node  string // this host
	Log   *logrus.Entry

	// Invited completes the answer for somebody who joins: the configuration and its files.
	Invited func(i state.Invitation, a *authority.Answer) error

	// Serving is called when clients and new hosts are answered, or when this host gets the record as a new member; nil:
	// nobody waits for that.
	Serving func()

	every time.Duration // between two looks at the members; default 5s
}

// keeper manages who may connect. One thing is done at a time.
type keeper struct {
	Options
	mu     sync.Mutex
	keys   *keys
	guard  *guard
	member *member
	store  *state.Store
	users  users
	cared  cared
	broken error                // nothing is open any more
	began  bool                 // as a leader
	seen   map[string]time.Time // users whom nobody invited, since when
	wake   chan struct{}        // the members changed: hosts are to know
}

const (
	lookEvery = 30 * time.Second       // the keeper looks although it saw no change
	restTime  = 200 * time.Millisecond // between two looks: what a host asks again and again is answered together
)

// Run serves the datastore until ctx ends, or etcd does. When other members removed this one, what it kept is put aside,
// and it ends without an error.
func Run(ctx context.Context, o Options) error {
	err := errRemoved
	if !(leaving{o.Config}).begun() {
		err = run(ctx, o)
	}
	if !errors.Is(err, errRemoved) {
		return err
	}
	aside, err := leaving{o.Config}.putAside(time.Now())
	if err == nil {
		o.Log.WithField("aside", aside).Warn("this host carries the datastore no more: another one took its place")
	}
	return err
}

func run(ctx context.Context, o Options) (err error) {
	k := &keeper{Options: o, guard: newGuard(), wake: make(chan struct{}, 1)}
	if k.keys, err = readKeys(o.Config, o.Fleet); err != nil {
		return err
	}
	if err := errors.Join(o.found(), k.keys.complete(time.Now())); err != nil {
		return err
	}
	if err := k.open(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.broken == nil {
			err = errors.Join(err, k.close())
		}
	}()
	if err := k.recordRevoked(ctx, time.Now()); err != nil {
		return err
	}
	if _, err := k.round(ctx); err != nil {
		return err
	}
	closed, err := k.serveDoors(ctx)
	if err != nil {
		return err
	}
	defer closed()
	defer k.startBackups(ctx)()
	o.Log.WithField("endpoint", o.Endpoint()).Info("the datastore serves")
	k.serves()
	var tended sync.WaitGroup
	defer tended.Wait()
	defer cancel()
	tended.Go(func() { k.tend(ctx) })
	return k.loop(ctx)
}

func (k *keeper) serves() {
	if k.Serving != nil {
		k.Serving()
	}
}

// loop does what there is to do until ctx ends, or etcd does.
func (k *keeper) loop(ctx context.Context) error {
	for {
		revision, err := k.round(ctx)
		if err != nil && ctx.Err() == nil {
			k.Log.WithError(err).Warn("users and certificates: tried again in a moment")
		}
		member, store, err := k.serving()
		if err != nil {
			return err
		}
		changed := make(chan struct{})
		go func() {
			defer close(changed)
			store.Identities.Await(ctx, revision, lookEvery)
			select {
			case <-time.After(restTime):
			case <-ctx.Done():
			}
		}()
		select {
		case <-changed:
		case <-k.wake:
		case <-member.leaderChanged():
		case <-member.removed():
			if now, _, err := k.serving(); err != nil || now == member {
				return cmp.Or(err, errRemoved) // one that was stopped and did not start anew looks removed, too
			}
		case failed := <-member.failed():
			if now, _, err := k.serving(); err != nil {
				return err
			} else if now == member {
				return member.why(failed)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// serving is what serves now: reopen puts others in their place.
func (k *keeper) serving() (*member, *state.Store, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.member, k.store, k.broken
}

// open starts the member and opens the record as the keeper.
func (k *keeper) open(ctx context.Context) error {
	if err := k.keys.believe(); err != nil {
		return err
	}
	member, err := startMember(ctx, k.Config, k.Node, k.guard.options())
	if err != nil {
		return err
	}
	k.member, k.began = member, false
	if err = k.awaitVote(ctx); err == nil {
		err = k.connect(ctx)
	}
	if err != nil {
		k.member.stop()
		return err
	}
	return nil
}

// awaitVote waits until this member is no learner any more: before, etcd answers nobody here.
func (k *keeper) awaitVote(ctx context.Context) error {
	if !k.member.learns() {
		return nil
	}
	k.Log.Info("this host gets the record, and waits until it is a member")
	k.serves()
	for k.member.learns() {
		select {
		case <-time.After(restTime):
		case <-k.member.removed():
			return errRemoved
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (k *keeper) connect(ctx context.Context) error {
	store, err := k.member.connect(ctx, k.Fleet)
	if err == nil {
		k.store, k.users = store, users{store.Client, k.Fleet}
	}
	return err
}

func (k *keeper) close() error {
	err := k.store.Close()
	k.member.stop()
	return err
}

// reopen starts the member anew: it reads what it believes when it starts.
func (k *keeper) reopen(ctx context.Context) error {
	k.broken = k.close()
	if k.broken == nil {
		k.broken = k.open(ctx)
	}
	return k.broken
}

// round does what there is to do: what each keeper does for its own member, and what the one does whose member leads. It
// returns the revision that it knows.
func (k *keeper) round(ctx context.Context) (int64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, leads := time.Now(), k.member.leads()
	if leads {
		if err := k.begin(ctx); err != nil {
			return 0, err
		}
	}
	c, err := k.store.Identities.All(ctx)
	if err != nil {
		return 0, err
	}
	if err := (notes{k.Config}).mark(c); err != nil {
		return 0, err
	}
	// First: what is recorded needs room.
	err = errors.Join(roomOf(k).keep(ctx, now), k.renew(ctx, now))
	if !leads {
		k.began = false
		noted, failed := notes{k.Config}.read() // of people who typed it on this host
		return c.Revision, errors.Join(err, failed, k.do(ctx, todo{revoke: noted}, c, now))
	}
	return c.Revision, errors.Join(err, k.lead(ctx, c, now))
}

// do does it, who loses first.
func (k *keeper) do(ctx context.Context, t todo, c state.Credentials, now time.Time) error {
	errs := []error{k.lockOut(ctx, t, c, now)}
	for _, name := range t.revoke {
		errs = append(errs, k.strike(ctx, name, c))
	}
	for _, name := range t.grant {
		errs = append(errs, k.users.grant(ctx, name, c.Identities[name].Kind))
	}
	for _, name := range t.uses {
		errs = append(errs, k.confirm(ctx, name, c))
	}
	for _, name := range t.issue {
		errs = append(errs, k.issue(ctx, name, c, now))
	}
	return errors.Join(append(errs, k.store.Identities.Forget(ctx, t.invitations, t.revoked))...)
}

// revoke shuts out who has these certificates, from new connections and from those that are open.
func (k *keeper) revoke(numbers []string, now time.Time) error {
	err := k.keys.revoke(numbers, now)
	k.guard.revoke(numbers)
	return err
}

// issue gives somebody the next certificate. A request that cannot be read is answered by none.
func (k *keeper) issue(ctx context.Context, name string, c state.Credentials, now time.Time) error {
	have := c.Identities[name]
	next, err := k.keys.certificate(name, have, c.Requests[name].CSR, now)
	if refusal, bad := errors.AsType[*authority.Refusal](err); bad {
		k.Log.WithField("name", name).WithError(refusal).Warn("no certificate")
		return k.store.Identities.Record(ctx, name, have, c.Revision)
	}
	if err != nil {
		return err
	}
	if err := k.store.Identities.Record(ctx, name, next, c.Revision); err != nil {
		return err
	}
	k.Log.WithField("name", name).Info("certificate renewed")
	return nil
}

// renew renews the credentials of the datastore itself. etcd reads the server's at each connection; the keeper connects
// with its own anew.
func (k *keeper) renew(ctx context.Context, now time.Time) error {
	due, err := k.keys.due(now)
	if err != nil || !due {
		return err
	}
	if err := k.keys.write(now); err != nil {
		return err
	}
	before := k.store
	if err := k.connect(ctx); err != nil {
		return err
	}
	return before.Close()
}

// publish tells hosts what to believe, and people whose certificates are near their end.
func (k *keeper) publish(ctx context.Context, all map[string]state.Identity) error {
	credentials, err := os.ReadFile(k.file(serverFile))
	if err != nil {
		return err
	}
	server, err := authority.SignedBy(credentials)
	if err != nil {
		return err
	}
	endpoints, err := k.endpoints(ctx)
	if err != nil {
		return err
	}
	return k.store.Identities.Publish(ctx, state.Authority{
		Bundle: string(k.keys.authority.Bundle()), Links: string(k.keys.authority.Links()), Server: server, Door: k.Door,
		Ending: ending(all, time.Now()), Endpoints: endpoints,
	})
}

func without(all, some []string) []string {
	return slices.DeleteFunc(all, func(one string) bool { return slices.Contains(some, one) })
}
