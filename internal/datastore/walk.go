package datastore

import (
	"context"
	"encoding/binary"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/proto"
)

// walkedAtOnce is how many records of the file are looked at together.
const walkedAtOnce = 10_000

// found is a record in the file, with its place there and its size in bytes.
type found struct {
	place []byte
	key   string
	bytes int
}

// walk visits all that is in the member's file now, in the order in which it was written, until the first error. In the
// order of keys etcd would count all of them for each part, and somebody may have written millions.
func (m *member) walk(visit func(key string, bytes int) error) error {
	etcd := m.server.Server
	// What etcd did not write to the file yet it shows first, and leaves out what is there: all up to here is in the
	// file.
	end := binary.BigEndian.AppendUint64(nil, uint64(etcd.KV().Rev()+1))
	etcd.Backend().ForceCommit()
	for from := []byte{0}; ; {
		some := m.read(from, end)
		for _, one := range some {
			if err := visit(one.key, one.bytes); err != nil {
				return err
			}
		}
		if len(some) < walkedAtOnce {
			return nil
		}
		from = append(some[len(some)-1].place, 0)
	}
}

// read reads a part of the file.
func (m *member) read(from, end []byte) (out []found) {
	tx := m.server.Server.Backend().ConcurrentReadTx()
	tx.RLock()
	defer tx.RUnlock()
	places, values := tx.UnsafeRange(schema.Key, from, end, walkedAtOnce)
	for i, place := range places {
		var kv mvccpb.KeyValue
		if proto.Unmarshal(values[i], &kv) != nil {
			kv.Key = nil // it counts all the same; etcd does not start with such a record
		}
		out = append(out, found{slices.Clone(place), string(kv.Key), len(place) + len(values[i])}) // all else is etcd's
	}
	return out
}

// removedAtOnce is how many records one transaction removes: etcd allows 128.
const removedAtOnce = 100

// removeOwn removes all records that somebody alone may write, but for the lasting record of a host, and returns how
// many they were. Each part is small, so that others are answered in between.
func (r room) removeOwn(ctx context.Context, name string) (removed int64, err error) {
	var ops []clientv3.Op
	commit := func() error {
		done, err := r.store.Client.Txn(ctx).Then(ops...).Commit()
		if err != nil {
			return err
		}
		for _, one := range done.Responses {
			removed += one.GetResponseDeleteRange().Deleted
		}
		ops = ops[:0]
		return nil
	}
	err = r.walk(func(key string, _ int) error {
		if _, whose := r.store.Whose(key); whose != name || key == r.store.Nodes.Key(name) {
			return nil
		}
		if ops = append(ops, clientv3.OpDelete(key)); len(ops) < removedAtOnce {
			return nil
		}
		return commit()
	})
	if err == nil && len(ops) > 0 {
		err = commit()
	}
	return removed, err
}
