package lock

import (
	"bytes"
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Opens reports whether the node can read the content of a result, which may be encrypted.
type Opens func(ctx context.Context, r state.StepResult) (bool, error)

// Value is the content of a shared result.
func (s *Steps) Value(ctx context.Context, r state.StepResult, into any) error {
	return s.store.Results.Read(ctx, r, into)
}

// Stale reports that the fleet left the version of these steps.
func (s *Steps) Stale() bool { return s.req.Stale }

// Shared are the results of a step that are on record, of whichever nodes.
func (s *Steps) Shared(ctx context.Context, step Step) (out []state.StepResult, err error) {
	got, err := s.store.Client.Get(ctx, s.resultKey(step, "result")+"/", clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	for _, kv := range got.Kvs {
		if r, err := state.Read[state.StepResult](s.store, kv); err == nil {
			out = append(out, r)
		}
	}
	return out, nil
}

// Reseal writes the content of a result in another form, unless the result is another one meanwhile.
func (s *Steps) Reseal(ctx context.Context, step Step, r state.StepResult, value []byte) error {
	key := s.resultKey(step, "result", r.Node)
	got, err := s.store.Client.Get(ctx, key)
	if err != nil || len(got.Kvs) == 0 {
		return err
	}
	now, err := state.Read[state.StepResult](s.store, got.Kvs[0])
	if err != nil || now.Attempt != r.Attempt || now.Blob != r.Blob || !bytes.Equal(now.Value, r.Value) {
		return nil // who wrote it knows its readers
	}
	r.Value, r.Blob = nil, ""
	if r, err = s.store.Results.Share(ctx, r, value); err != nil {
		return err
	}
	_, err = s.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", got.Kvs[0].ModRevision)).
		Then(state.Put(key, r)).Commit()
	return err
}
