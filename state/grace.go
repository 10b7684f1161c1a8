package state

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Grace is how long nobody is admitted after a restart of etcd or a change of its leader: a node in the middle of an
// upgrade renews its lease every 20 seconds, and compares then what etcd knows with its own disk.
const Grace = 45 * time.Second

// GraceKey is there during the grace time. It goes with its lease.
func (s *Doubts) GraceKey() string { return s.store.key("store_grace") }

// graceOps begin the grace time of an incarnation, unless it runs, and record the incarnation. A store of one host has
// neither.
func graceOps(ctx context.Context, s *Store, is Incarnation) ([]clientv3.Op, error) {
	if !s.ServesHosts() {
		return nil, nil
	}
	lease, err := s.Client.Grant(ctx, int64(Grace.Seconds()))
	if err != nil {
		return nil, err
	}
	none := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(s.Doubts.GraceKey()), "=", 0)}
	return []clientv3.Op{
		clientv3.OpTxn(
			none,
			[]clientv3.Op{Put(s.Doubts.GraceKey(), time.Now().UTC().Add(Grace), clientv3.WithLease(lease.ID))},
			nil,
		),
		Put(s.Doubts.IncarnationKey(), is),
	}, nil
}

// AwaitReports waits until hosts at work had the time to say that they know better than the fleet's record: until the
// grace time is over, by etcd's clock. Where etcd restarted or was restored and nobody looked since, the grace time
// begins now, in the name of who asks. told is told once until when it lasts; it may be nil.
func AwaitReports(ctx context.Context, s *Store, by string, told func(until time.Time)) error {
	for {
		got, err := s.Client.Txn(ctx).Then(clientv3.OpGet(s.Doubts.IncarnationKey()), clientv3.OpGet(s.Doubts.GraceKey())).
			Commit()
		if err != nil || !s.ServesHosts() {
			return err
		}
		looked, err := sameIncarnation(ctx, s, by, got.Responses[0].GetResponseRange().Kvs)
		if err != nil {
			return err
		}
		grace := got.Responses[1].GetResponseRange().Kvs
		if looked && len(grace) == 0 {
			return nil
		}
		if len(grace) > 0 && told != nil {
			until, _ := Read[Moment](s, grace[0]) // for people
			told(until.Time)
			told = nil
		}
		if looked && !s.Bells.Await(ctx, s.Doubts.GraceKey(), got.Header.Revision, Grace/10) {
			return ctx.Err()
		}
	}
}

// sameIncarnation compares etcd's incarnation with that on record, and reports that it is the same. Else it is
// recognised.
func sameIncarnation(ctx context.Context, s *Store, by string, record []*mvccpb.KeyValue) (same bool, err error) {
	var was Incarnation // one that cannot be read is none
	var seen int64
	for _, kv := range record {
		was, _ = Read[Incarnation](s, kv)
		seen = kv.ModRevision
	}
	is, err := s.Doubts.Incarnation(ctx)
	if err != nil || seen != 0 && is.Continues(was) && is.Replaced(was) == "" {
		return err == nil, err
	}
	return false, s.Doubts.Recognise(ctx, by, was, seen)
}
