package datastore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/state"
)

// lead does what is done once for all members.
func (k *keeper) lead(ctx context.Context, c state.Credentials, now time.Time) error {
	names, err := k.users.list(ctx)
	if err != nil {
		return err
	}
	known := decide(c, k.strangers(c, names, now), now)
	return errors.Join(k.do(ctx, known, c, now), k.publish(ctx, c.Identities))
}

// admitTime is how long a member takes at most to let in somebody: it is a user before it is on record.
const admitTime = 2 * closeTime

// strangers are the users without those whom nobody invited, as long as another member may be letting them in.
func (k *keeper) strangers(c state.Credentials, users []string, now time.Time) []string {
	before := k.seen
	k.seen = map[string]time.Time{}
	return slices.DeleteFunc(slices.Clone(users), func(name string) bool {
		if _, invited := c.Identities[name]; invited {
			return false
		}
		since, seen := before[name]
		if !seen {
			since = now
		}
		k.seen[name] = since
		return k.among() && now.Sub(since) < admitTime
	})
}

// begin does what a leader does first.
func (k *keeper) begin(ctx context.Context) error {
	if k.began {
		return nil
	}
	if err := k.ours(ctx); err != nil {
		return fmt.Errorf("the record in %s: %w", k.file(memberDir), err)
	}
	err := k.users.begin(ctx)
	if err == nil {
		err = k.recordFirst(ctx)
	}
	if err == nil {
		err = recordRecovery(ctx, k.Config, k.store.Datastores)
	}
	if err != nil {
		return fmt.Errorf("the users of etcd: %w", err)
	}
	k.began = true
	return nil
}

// ours says that the record is of another fleet: who is a user there would be nobody here, and lose that. Another one
// may have the same name, and another authority.
func (k *keeper) ours(ctx context.Context) error {
	c, err := k.store.Identities.All(ctx)
	if err != nil {
		return err
	}
	names, err := k.users.list(ctx)
	if err != nil {
		return err
	}
	own := k.keys.authority
	switch {
	case c.Authority.Bundle == "" && len(c.Identities) == 0 && len(names) > 0:
		return fmt.Errorf("it knows nobody of the fleet %s, and others: it is of another fleet", k.Fleet)
	case c.Authority.Bundle == "":
		return nil
	}
	if authority.Follow([]byte(c.Authority.Bundle), own.Bundle(), own.Links()) != nil {
		return fmt.Errorf("it is of another authority than %s here: %s", k.file(authorityFile), own.Fingerprint())
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
			err = k.store.Identities.First(ctx, name, i)
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
