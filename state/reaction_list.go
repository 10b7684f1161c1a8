package state

import (
	"context"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Since are the runs that were given since a time, the oldest first: their ids begin with theirs.
func (s *Reactions) Since(ctx context.Context, t time.Time) ([]ReactionStatus, error) {
	from := s.givenKey(t.UTC().Format("20060102T150405Z"))
	return s.list(ctx, clientv3.OpGet(from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(s.givenPrefix()))))
}

// List returns the runs that were given lately, the oldest first.
func (s *Reactions) List(ctx context.Context) ([]ReactionStatus, error) {
	return s.list(ctx, clientv3.OpGet(s.givenPrefix(), clientv3.WithPrefix()))
}

func (s *Reactions) list(ctx context.Context, given clientv3.Op) ([]ReactionStatus, error) {
	got, err := s.store.Client.Txn(ctx).
		Then(given, clientv3.OpGet(s.PendingPrefix(), clientv3.WithPrefix(), clientv3.WithKeysOnly())).Commit()
	if err != nil {
		return nil, err
	}
	open := map[string]bool{}
	for _, kv := range got.Responses[1].GetResponseRange().Kvs {
		open[strings.TrimPrefix(string(kv.Key), s.PendingPrefix())] = true
	}
	var out []ReactionStatus
	var ops []clientv3.Op
	for _, kv := range got.Responses[0].GetResponseRange().Kvs {
		if run, err := Read[ReactionRun](s.store, kv); err == nil {
			out = append(out, ReactionStatus{ReactionRun: run, Open: open[run.ID]})
			ops = append(ops, clientv3.OpGet(s.resultPrefix(run.ID), clientv3.WithPrefix()),
				clientv3.OpGet(s.store.Rollouts.GateKey(run.ID, ""), clientv3.WithPrefix()))
		}
	}
	answers, _, err := s.store.ReadMany(ctx, ops)
	for i := range out {
		if err == nil {
			s.fileResults(&out[i], answers[2*i].GetResponseRange().Kvs, answers[2*i+1].GetResponseRange().Kvs)
		}
	}
	return out, err
}

func (s *Reactions) fileResults(run *ReactionStatus, results, gates []*mvccpb.KeyValue) {
	for _, kv := range results {
		k, err := s.store.Key(kv)
		if err != nil {
			continue
		}
		r, err := Read[ReactionResult](s.store, kv)
		if err != nil {
			r = ReactionResult{Node: k.Node, State: ReactionLeft, Reason: err.Error()}
		}
		run.Results = append(run.Results, r)
	}
	run.Halted = s.haltOf(gates)
}

// haltOf is why a run is halted: whatever halts a part of it halts all of it.
func (s *Reactions) haltOf(gates []*mvccpb.KeyValue) string {
	for _, kv := range gates {
		switch _, gate := s.store.Rollouts.ReadGate(kv); {
		case gate.State != Halted:
		case gate.Node != "":
			return "it failed on " + gate.Node + ": " + gate.Reason
		default:
			return gate.Reason
		}
	}
	return ""
}
