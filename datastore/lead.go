package datastore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/pullet/pullet/durable"
	"github.com/pullet/pullet/state"
)

// lead does what is done once for all members.
func (k *keeper) lead(ctx context.Context, c state.Credentials, now time.Time) error {
	names, err := k.users.list(ctx)
	if err != nil {
		return err
	}
	known := decide(c, k.strangers(c, names), now)
	err = errors.Join(k.do(ctx, known, c, now), k.publish(ctx, c.Identities))
	if err == nil && k.keys.authority.Rotating() && len(k.keys.former(c.Identities)) == 0 {
		err = k.finish(ctx, c, now)
	}
	return err
}

// strangers are the users without those whom nobody invited, as long as the round before did not see them: another
// member lets in somebody just now.
func (k *keeper) strangers(c state.Credentials, users []string) []string {
	before := k.seen
	k.seen = users
	return slices.DeleteFunc(slices.Clone(users), func(name string) bool {
		_, invited := c.Identities[name]
		return !invited && !slices.Contains(before, name)
	})
}

// begin does what a leader does first.
func (k *keeper) begin(ctx context.Context) error {
	if k.began {
		return nil
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
