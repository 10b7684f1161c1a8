package datastore

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/state"
)

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
	k.believes = k.keys.authority.Bundle()
	if k.among() {
		k.serves()
	}
	member, err := startMember(ctx, k.Config, k.Node, k.guard.options())
	if err != nil {
		return err
	}
	k.member, k.began = member, false
	k.guard.follows(member.server.Server.StoppingNotify())
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
	k.guard.pause()
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

// round does what there is to do: what each keeper does for its own member, and what the one does whose member leads.
// It returns the revision that it knows.
func (k *keeper) round(ctx context.Context) (int64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, leads := time.Now(), k.member.leads()
	rotated, _, err := k.store.Datastores.Rotation(ctx)
	if err == nil { // before it tells hosts what to believe: another member may have done so already
		err = rotation{k}.apply(ctx, rotated, now)
	}
	if err != nil {
		return 0, err
	}
	if leads {
		if err := k.begin(ctx); err != nil {
			return 0, err
		}
	}
	c, err := k.store.Identities.All(ctx)
	if err != nil {
		return 0, err
	}
	noted, err := notes{k.Config}.mark(c) // of people who typed it on this host
	if err != nil {
		return 0, err
	}
	// First: what is recorded needs room.
	err = errors.Join(roomOf(k).keep(ctx, now), k.renew(ctx, now))
	if !leads {
		k.began = false
		return c.Revision, errors.Join(err, k.do(ctx, todo{revoke: noted}, c, now))
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
	if k.keys.answered(have, c.Requests[name].CSR, now) {
		return k.store.Identities.Record(ctx, name, have, c.Revision)
	}
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

// confirm records which certificate somebody uses.
func (k *keeper) confirm(ctx context.Context, name string, c state.Credentials) error {
	i := c.Identities[name]
	i.Uses = c.Requests[name].Uses
	return k.store.Identities.Record(ctx, name, i, c.Revision)
}

// renew renews the credentials of the datastore itself. etcd reads the server's at each connection; the keeper connects
// with its own anew.
func (k *keeper) renew(ctx context.Context, now time.Time) error {
	due, err := k.keys.due(now)
	if err != nil || !due {
		return err
	}
	return k.present(ctx, now)
}

// present makes new credentials of the datastore itself, and connects with them.
func (k *keeper) present(ctx context.Context, now time.Time) error {
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
