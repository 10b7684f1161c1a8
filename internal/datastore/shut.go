package datastore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/state"
)

// shutPath is where root of this host shuts somebody out.
const shutPath = "/shut"

// ShutOut is what came of somebody who was shut out on the host with the datastore.
type ShutOut struct {
	Removed int64         `json:"removed"` // records that the name alone may write
	GivenUp state.GivenUp `json:"givenUp"` // of a host
}

// shut shuts somebody out, also while the datastore takes no writes: users and records can be removed then, and what
// the name alone may write makes room for the record of it. Until that is written a file says it, so that a restart
// lets nobody in again.
func (k *keeper) shut(ctx context.Context, name, by string) (out ShutOut, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	c, err := k.store.Identities.All(ctx)
	if err != nil {
		return out, err
	}
	who, known := c.Identities[name]
	if !known {
		return out, fmt.Errorf("nobody in the fleet has the name %s: pullet fleet list", name)
	}
	note := notes{k.Config}
	err = note.add(name)
	if err == nil {
		_, err = note.mark(c)
	}
	if err == nil {
		err = k.lockOut(ctx, decide(c, nil, now), c, now)
	}
	if err == nil {
		out.Removed, err = roomOf(k).removeOwn(ctx, name)
	}
	if err == nil {
		k.cared.defragmented = time.Time{} // what was removed is not counted as free yet
		err = roomOf(k).keep(ctx, now)
	}
	if err == nil && who.Kind == authority.Node {
		out.GivenUp, err = k.store.Nodes.Decommission(ctx, name, by, true)
	}
	if err == nil {
		err = k.strike(ctx, name, c)
	}
	return out, roomOf(k).lacks(err, name, out.Removed)
}

// lacks says what was done where there is no room for the rest.
func (r room) lacks(err error, name string, removed int64) error {
	if err == nil || !r.space().full {
		return err
	}
	return fmt.Errorf("%s is shut out, and %d records of it are removed; the keeper records that when there is room "+
		"(%w): %s; what a host holds is freed by typing it again then", name, removed, err, r)
}

// lockOut ends the certificates and the users of those who lose them.
func (k *keeper) lockOut(ctx context.Context, t todo, c state.Credentials, now time.Time) error {
	numbers := slices.Collect(maps.Keys(c.Revoked))
	for _, name := range t.revoke {
		for _, one := range c.Identities[name].Serials {
			numbers = append(numbers, one.Number)
		}
	}
	errs := []error{k.revoke(without(numbers, t.revoked), now)}
	for _, name := range slices.Concat(t.revoke, t.drop) {
		errs = append(errs, k.users.drop(ctx, name))
	}
	return errors.Join(errs...)
}

// strike records that somebody is out, for good.
func (k *keeper) strike(ctx context.Context, name string, c state.Credentials) error {
	if err := k.store.Identities.Expel(ctx, name, c.Identities[name].Serials, c.Revision); err != nil {
		return err
	}
	k.Log.WithField("name", name).Info("revoked")
	return notes{k.Config}.remove(name)
}

// shutHandler answers root of this host.
func shutHandler(k *keeper) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		ctx := context.WithoutCancel(r.Context()) // who types this may leave: what was begun is finished
		done, err := k.shut(ctx, q.Get("name"), q.Get("by"))
		answer(w, done, err)
	}
}

// Shut has the keeper of this host shut somebody out. It works while the datastore is full, too. A host is given up
// with it, as pullet decommission --force does.
func Shut(ctx context.Context, c Config, name, by string) (out ShutOut, err error) {
	err = askInside(ctx, c, shutPath+"?"+url.Values{"name": {name}, "by": {by}}.Encode(), nil, &out)
	return out, err
}
