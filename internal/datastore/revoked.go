package datastore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/state"
)

// completeList writes the list of certificates that count no more, where there is none. Etcd lets nobody in with one
// that it cannot read.
func (k *keys) completeList(now time.Time) error {
	_, err := k.listed()
	if errors.Is(err, fs.ErrNotExist) {
		return k.revoke([]string{}, now)
	}
	return err
}

// listed are the numbers of the certificates in the list.
func (k *keys) listed() ([]string, error) {
	list, err := os.ReadFile(k.file(crlFile))
	if err != nil {
		return nil, err
	}
	numbers, err := authority.Revoked(list)
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; move it away: the record says who was revoked, but for what happened "+
			"since a backup that was restored", k.file(crlFile), err)
	}
	return numbers, nil
}

// recordRevoked records the certificates of the list that the record does not know: a backup was restored beside the
// list, and who was revoked since the backup stays out.
func (k *keeper) recordRevoked(ctx context.Context, now time.Time) error {
	numbers, err := k.keys.listed()
	if err != nil {
		return err
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
		err = errors.Join(err, k.store.Identities.Strike(ctx, name, serials))
	}
	return err
}

// holder is who has a certificate. The record may not know one that was issued since it was made: it ends after the
// life of a certificate at the latest.
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
