package datastore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pullet/pullet/state"
)

// rotatePath is where root of this host asks for another authority.
const rotatePath = "/rotate"

// Rotated is how far a rotation is.
type Rotated struct {
	Begun    bool     `json:"begun"`    // now
	Finished bool     `json:"finished"` // now
	Waiting  []string `json:"waiting"`  // who has a certificate of a former authority
}

// rotate makes a new authority, which signs from now on, beside the one before. With finish it ends the rotation
// although somebody has no certificate of the new one.
func (k *keeper) rotate(ctx context.Context, finish bool) (Rotated, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	c, err := k.store.Identities.All(ctx)
	if err != nil {
		return Rotated{}, err
	}
	switch rotating := k.keys.authority.Rotating(); {
	case finish && !rotating:
		return Rotated{}, errors.New("no rotation is under way: pullet fleet rotate begins one")
	case finish:
		return Rotated{Finished: true, Waiting: k.keys.former(c.Identities)}, k.finish(ctx, c, now)
	case rotating:
		return Rotated{Waiting: k.keys.former(c.Identities)}, nil
	}
	next, err := k.keys.authority.Rotate(now)
	if err == nil {
		err = alone(ctx, k.store)
	}
	if err == nil {
		err = k.keys.change(next)
	}
	if err == nil {
		err = k.reopen(ctx) // the member reads what it believes when it starts
	}
	if err == nil {
		err = k.publish(ctx, c.Identities)
	}
	return Rotated{Begun: true, Waiting: k.keys.former(c.Identities)}, err
}

// alone says that there are other members. They would not believe what a new authority signs, which only this host has.
func alone(ctx context.Context, store *state.Store) error {
	all, err := store.Client.MemberList(ctx)
	if err == nil && len(all.Members) > 1 {
		err = fmt.Errorf("the datastore has %d members, and its authority is exchanged while it has one: set count: 1 "+
			"below config.dataStore in pullet.yaml, wait for pullet datastore status to show one member, rotate on that "+
			"host, and set the count back", len(all.Members))
	}
	return err
}

// finish has the new authority alone count.
func (k *keeper) finish(ctx context.Context, c state.Credentials, now time.Time) error {
	err := k.keys.change(k.keys.authority.Finish())
	if err == nil {
		err = k.keys.write(now)
	}
	if err == nil {
		err = k.reopen(ctx)
	}
	if err == nil {
		err = k.publish(ctx, c.Identities)
	}
	if err == nil {
		k.Log.WithField("authority", k.keys.authority.Fingerprint()).Info("the former authority counts no more")
	}
	return err
}

// confirm records which certificate somebody uses.
func (k *keeper) confirm(ctx context.Context, name string, c state.Credentials) error {
	i := c.Identities[name]
	i.Uses = c.Requests[name].Uses
	return k.store.Identities.Record(ctx, name, i, c.Revision)
}

// serveRotate answers root of this host.
func (k *keeper) serveRotate(w http.ResponseWriter, r *http.Request) {
	done, err := k.rotate(r.Context(), r.URL.Query().Has("finish"))
	answer(w, done, err)
}

// Rotate asks the datastore of this host for another authority, or to finish that.
func Rotate(ctx context.Context, c Config, finish bool) (out Rotated, err error) {
	path := rotatePath
	if finish {
		path += "?finish"
	}
	err = askInside(ctx, c, path, nil, &out)
	return out, err
}
