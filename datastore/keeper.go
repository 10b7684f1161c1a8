package datastore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/authority"
	"github.com/pullet/pullet/durable"
	"github.com/pullet/pullet/state"
)

// Options are what a datastore needs beside its own files.
type Options struct {
	Config
	Fleet string
	Log   *logrus.Entry

	// Invited completes the answer for somebody who joins: the configuration and its files.
	Invited func(i state.Invitation, a *authority.Answer) error

	// Serving is called when clients and new hosts are answered; nil: nobody waits for that.
	Serving func()
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
}

const (
	lookEvery = 30 * time.Second       // the keeper looks although it saw no change
	restTime  = 200 * time.Millisecond // between two looks: what a host asks again and again is answered together
)

// Run serves the datastore until ctx ends, or etcd does.
func Run(ctx context.Context, o Options) (err error) {
	k := &keeper{Options: o, guard: newGuard()}
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
	if _, err := k.round(ctx); err != nil {
		return err
	}
	closed, err := k.serveDoors(ctx)
	if err != nil {
		return err
	}
	defer closed()
	o.Log.WithField("endpoint", o.Endpoint()).Info("the datastore serves")
	if o.Serving != nil {
		o.Serving()
	}
	return k.loop(ctx)
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
		case err := <-member.failed():
			if now, _, _ := k.serving(); now == member {
				return fmt.Errorf("etcd ended: %w", err)
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
	member, err := startMember(ctx, k.Config, k.guard.options())
	if err != nil {
		return err
	}
	k.member = member
	if err := k.connect(ctx); err != nil {
		k.member.stop()
		return err
	}
	err = k.users.begin(ctx)
	if err == nil {
		err = k.recordFirst(ctx)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("the users of etcd: %w", err), k.close())
	}
	return nil
}

// recordFirst records who got a certificate before there was a record.
func (k *keeper) recordFirst(ctx context.Context) error {
	var first map[string]state.Identity
	if _, err := os.Stat(k.file(firstFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err := durable.ReadJSON(k.file(firstFile), &first)
	for name, i := range first {
		if err == nil {
			err = k.users.grant(ctx, name, i.Kind)
		}
		if err == nil {
			err = k.store.Identities.Record(ctx, name, i)
		}
	}
	if err == nil {
		err = os.Remove(k.file(firstFile))
	}
	if err != nil {
		return err
	}
	return durable.SyncDir(k.Dir) // recorded again, it would let in who was revoked since
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

// round does what there is to do. It returns the revision that it knows.
func (k *keeper) round(ctx context.Context) (int64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	c, err := k.store.Identities.All(ctx)
	if err != nil {
		return 0, err
	}
	if err := (notes{k.Config}).mark(c); err != nil {
		return 0, err
	}
	names, err := k.users.list(ctx)
	if err != nil {
		return 0, err
	}
	full := roomOf(k).keep(ctx, now) // first: what is recorded needs room
	err = errors.Join(full, k.renew(ctx, now), k.do(ctx, decide(c, names, now), c, now), k.publish(ctx, c.Identities))
	if err == nil && k.keys.authority.Rotating() && len(k.keys.former(c.Identities)) == 0 {
		err = k.finish(ctx, c, now)
	}
	return c.Revision, err
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
		errs = append(errs, k.confirm(ctx, name, c.Identities[name], c.Requests[name].Uses))
	}
	for _, name := range t.issue {
		errs = append(errs, k.issue(ctx, name, c.Identities[name], c.Requests[name], now))
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
func (k *keeper) issue(ctx context.Context, name string, have state.Identity, r state.Request, now time.Time) error {
	next, err := k.keys.certificate(name, have, r.CSR, now)
	if refusal, bad := errors.AsType[*authority.Refusal](err); bad {
		k.Log.WithField("name", name).WithError(refusal).Warn("no certificate")
		return k.store.Identities.Record(ctx, name, have)
	}
	if err != nil {
		return err
	}
	k.Log.WithField("name", name).Info("certificate renewed")
	return k.store.Identities.Record(ctx, name, next)
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
	return k.store.Identities.Publish(ctx, state.Authority{
		Bundle: string(k.keys.authority.Bundle()), Links: string(k.keys.authority.Links()), Server: server, Door: k.Door,
		Ending: ending(all, time.Now()),
	})
}

func without(all, some []string) []string {
	return slices.DeleteFunc(all, func(one string) bool { return slices.Contains(some, one) })
}
