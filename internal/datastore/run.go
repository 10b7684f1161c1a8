package datastore

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/internal/authority"
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

	// Serving is called when clients and new hosts are answered. A member of several calls it when it starts: when it
	// answers depends on the others, and what comes behind it on this host is not to wait for them. nil: nobody waits.
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
	broken error // nothing is open any more

	believes []byte               // the authorities that the member believes, as it started
	began    bool                 // as a leader
	seen     map[string]time.Time // users whom nobody invited, since when
	wake     chan struct{}        // the members changed: hosts are to know
	tended   chan struct{}        // something is to be done among the members
	lives    *lives
	unlike   []string // the members whose record differs from this one's
}

const (
	lookEvery = 30 * time.Second       // the keeper looks although it saw no change
	restTime  = 200 * time.Millisecond // between two looks: what a host asks again and again is answered together
)

// Run serves the datastore until ctx ends, or etcd does. When other members removed this one, one of them went on
// alone, or most of them have another record, what it kept is put aside, and it ends without an error.
func Run(ctx context.Context, o Options) error {
	err := errRemoved
	if !(leaving{o.Config}).begun() {
		err = run(ctx, o)
	}
	why := "another one took its place"
	if ended, isEnded := errors.AsType[*endedError](err); isEnded {
		why = ended.why
	} else if !errors.Is(err, errRemoved) {
		return err
	}
	aside, err := leaving{o.Config}.putAside(time.Now())
	if err == nil {
		o.Log.WithField("aside", aside).Warn("this host carries the datastore no more: " + why)
	}
	return err
}

func run(ctx context.Context, o Options) (err error) {
	k := &keeper{Options: o, guard: newGuard(), lives: &lives{Options: o}}
	k.wake, k.tended = make(chan struct{}, 1), make(chan struct{}, 1)
	if k.keys, err = readKeys(o.Config, o.Fleet); err != nil {
		return err
	}
	if err := errors.Join(o.found(), k.keys.complete(time.Now())); err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if err := k.lives.watch(ctx, end); err != nil {
		return err
	}
	defer func() {
		if cause := context.Cause(ctx); putsAside(cause) {
			err = cause
		}
	}()
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
	if err := k.first(ctx); err != nil {
		return err
	}
	closed, err := doors{k}.open(ctx)
	if err != nil {
		return err
	}
	defer closed()
	defer scheduled{k}.start(ctx)()
	o.Log.WithField("endpoint", o.Endpoint()).Info("the datastore serves")
	k.serves()
	var tended sync.WaitGroup
	defer tended.Wait()
	defer cancel()
	tended.Go(func() { k.tend(ctx) })
	tended.Go(func() { comparing{k}.compare(ctx, end) })
	err = k.loop(ctx)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil { // it started anew just then
		return nil
	}
	return err
}

// first does what comes before others are answered. Together with other members it is tried again: they may change
// their leader just then.
func (k *keeper) first(ctx context.Context) error {
	for {
		err := k.recordRevoked(ctx, time.Now())
		if err == nil {
			_, err = k.round(ctx)
		}
		if err == nil || !k.among() {
			return err
		}
		k.Log.WithError(err).Warn("the datastore starts: tried again in a moment")
		select {
		case <-time.After(restTime):
		case <-k.member.removed():
			return errRemoved
		case <-ctx.Done():
			return ctx.Err()
		}
	}
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
