package state

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// scannedAtOnce is how many records are read in one request by a look at all of them.
const scannedAtOnce = 1000

// Scan looks at every record of the fleet, and returns those that cannot be read, by their keys, up to so many.
func (s *Store) Scan(ctx context.Context, most int) ([]*BadRecordError, error) {
	var bad []*BadRecordError
	from, end := s.prefix, clientv3.GetPrefixRangeEnd(s.prefix)
	for len(bad) < most {
		got, err := s.Client.Get(
			ctx, from, clientv3.WithRange(end), clientv3.WithLimit(scannedAtOnce), clientv3.WithKeysOnly())
		if err != nil {
			return bad, err
		}
		some, err := s.unreadable(ctx, got.Kvs)
		if err != nil {
			return bad, err
		}
		bad = append(bad, some...)
		if !got.More {
			break
		}
		from = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
	}
	return bad[:min(most, len(bad))], nil
}

// unreadable are the records among some keys that cannot be read, by their keys. Values on which nothing depends, such
// as chunks of executables, are not asked for: they are large.
func (s *Store) unreadable(ctx context.Context, keys []*mvccpb.KeyValue) (bad []*BadRecordError, err error) {
	note := func(err error) {
		if one, ok := errors.AsType[*BadRecordError](err); ok {
			bad = append(bad, one)
		}
	}
	var ops []clientv3.Op
	for _, kv := range keys {
		k, err := parseKey(s.prefix, string(kv.Key))
		if err == nil && k.kind.examine != nil {
			ops = append(ops, clientv3.OpGet(string(kv.Key)))
		}
		note(err)
	}
	got, _, err := s.ReadMany(ctx, ops)
	for _, r := range got {
		for _, kv := range r.GetResponseRange().Kvs {
			if k, err := parseKey(s.prefix, string(kv.Key)); err == nil {
				note(k.kind.examine(k, kv.Value))
			}
		}
	}
	slices.SortFunc(bad, func(a, b *BadRecordError) int { return strings.Compare(a.raw, b.raw) })
	return bad, err
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
