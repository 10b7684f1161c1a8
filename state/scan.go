package state

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// scannedAtOnce is how many records are read in one request by a look at all of them.
const scannedAtOnce = 1000

// Scan looks at every record of the fleet, and returns those that cannot be read, by their keys, up to so many.
func (s *Store) Scan(ctx context.Context, most int) ([]*BadRecordError, error) {
	var bad []*BadRecordError
	from, end := s.prefix, clientv3.GetPrefixRangeEnd(s.prefix)
	for len(bad) < most {
		got, err := s.Client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(scannedAtOnce))
		if err != nil {
			return bad, err
		}
		for _, kv := range got.Kvs {
			k, err := parseKey(s.prefix, string(kv.Key))
			if err == nil && k.kind.examine != nil {
				err = k.kind.examine(k, kv.Value)
			}
			if one, ok := errors.AsType[*BadRecordError](err); ok && len(bad) < most {
				bad = append(bad, one)
			}
			from = string(kv.Key) + "\x00"
		}
		if !got.More {
			break
		}
	}
	return bad, nil
}

// ErrNotBad says that there is no record at a key which cannot be read.
var ErrNotBad = errors.New("no record that cannot be read has this key")

// Remove removes a record that cannot be read, by its key as BadRecordError shows it, if it is still the same. Who
// waits is woken.
func (s *Store) Remove(ctx context.Context, key string) (*BadRecordError, error) {
	bad, err := s.Scan(ctx, maxNoted)
	if err != nil {
		return nil, err
	}
	for _, one := range bad {
		if one.Key != key && one.Key != "'"+key+"'" {
			continue
		}
		got, err := s.Client.Get(ctx, one.raw)
		if err != nil || len(got.Kvs) == 0 {
			return one, err
		}
		k, err := parseKey(s.prefix, one.raw)
		if err == nil && k.kind.examine(k, got.Kvs[0].Value) == nil { // somebody repaired it just now
			return nil, ErrNotBad
		}
		done, err := s.Client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(one.raw), "=", got.Kvs[0].ModRevision)).
			Then(clientv3.OpDelete(one.raw), s.Bells.RingOp(), s.Bells.wakeOp()).Commit()
		if err == nil && !done.Succeeded {
			err = &MovedError{What: one.Key}
		}
		return one, err
	}
	return nil, ErrNotBad
}
