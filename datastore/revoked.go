package datastore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/pullet/pullet/authority"
	"github.com/pullet/pullet/state"
)

// completeList writes the list of certificates that count no more, where there is none.
func (k *keys) completeList(now time.Time) error {
	if _, err := os.Stat(k.file(crlFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return k.revoke([]string{}, now)
}

// recordRevoked records the certificates of the list that the record does not know: a backup was restored beside the
// list, and who was revoked since the backup stays out.
func (k *keeper) recordRevoked(ctx context.Context, now time.Time) error {
	list, err := os.ReadFile(k.file(crlFile))
	if err != nil {
		return err
	}
	numbers, err := authority.Revoked(list)
	if err != nil {
		return fmt.Errorf("%s: %w; move it away: who was revoked since the last backup counts again then",
			k.file(crlFile), err)
	}
	c, err := k.store.Identities.All(ctx)
	if err != nil {
		return err
	}
	lacking := map[string][]state.Serial{}
	for _, number := range numbers {
		if _, known := c.Revoked[number]; !known {
			name, one := holder(c.Identities, number, now)
			lacking[name] = append(lacking[name], one)
		}
	}
	for name, serials := range lacking {
		err = errors.Join(err, k.store.Identities.Strike(ctx, name, serials, false))
	}
	return err
}

// holder is who has a certificate. The record may not know one that was issued since it was made: it ends after the life
// of a certificate at the latest.
func holder(all map[string]state.Identity, number string, now time.Time) (string, state.Serial) {
	for name, i := range all {
		for _, one := range i.Serials {
			if one.Number == number {
				return name, one
			}
		}
	}
	return "unknown", state.Serial{Number: number, Until: now.Add(authority.DefaultLife).UTC()}
}
