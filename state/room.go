package state

import (
	"context"
	"errors"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/safetext"
)

// What the record is made of where no key of a family says whose it is.
const (
	dnsFamily   = "skydns"
	otherFamily = "other keys"
)

// Whose says of a key to which family of records it belongs, and who alone may write it; "": several may. Keys that
// pullet cannot read are told by their place, since whoever may write a record may write below it.
func (s *Store) Whose(key string) (family, name string) {
	if strings.HasPrefix(key, dnsPath+"/") {
		return dnsFamily, ""
	}
	rest, ours := strings.CutPrefix(key, s.prefix)
	parts := strings.Split(rest, "/")
	of := shapes[parts[0]]
	if !ours || len(of) == 0 {
		return otherFamily, ""
	}
	at := slices.Index(of[0].words, "NODE")
	if by := of[0].by; by != itsNode && by != holder || at < 0 || at >= len(parts) {
		return parts[0], ""
	}
	if !safetext.Name(parts[at]) {
		return otherFamily, ""
	}
	return parts[0], parts[at]
}

// RemoveOwn removes all records that somebody alone may write, but for the lasting record of a node, and returns how
// many they were. It takes no room of the store.
func (s *Nodes) RemoveOwn(ctx context.Context, name string) (removed int64, err error) {
	fleet := strings.TrimSuffix(s.store.prefix, "/")
	for _, k := range kinds {
		if k.by != itsNode && k.by != holder {
			continue
		}
		for _, keys := range k.ranges(fleet, name) {
			if keys.From == s.Key(name) {
				continue
			}
			n, err := s.removeRange(ctx, keys)
			if removed += n; err != nil {
				return removed, err
			}
		}
	}
	return removed, nil
}

// removeTries are made where the store takes long: it goes on with the removal although nobody waits for the answer.
const removeTries = 10

func (s *Nodes) removeRange(ctx context.Context, keys Range) (int64, error) {
	for tries := 1; ; tries++ {
		done, err := s.store.Client.Delete(ctx, keys.From, clientv3.WithRange(keys.End))
		if err == nil {
			return done.Deleted, nil
		}
		if tries == removeTries || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return 0, err
		}
	}
}

// Retire forgets what belongs to versions that the fleet left long ago and that no node runs any more.
func (s *Versions) Retire(ctx context.Context) error {
	history, err := s.History(ctx)
	if err != nil {
		return err
	}
	return s.retire(ctx, history)
}
