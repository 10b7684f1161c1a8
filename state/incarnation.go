package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Incarnation is one life of the etcd that holds the fleet's record. The record keeps the one in which it was written,
// and nobody is admitted in another: a restored etcd has forgotten who is in the middle of an upgrade. From inside, an
// etcd that runs on a copy of its files looks like one that restarted. So a new raft term only starts the grace time,
// in which nodes that know better report; see Guard.
type Incarnation struct {
	// etcd's cluster id: it stays when members restart, are replaced or defragmented
	Cluster uint64 `json:"cluster"`
	Term    uint64 `json:"term"` // raft term: it grows when a single member restarts and when the leader changes
	// by how many entries the raft log is longer than the revision; nil: etcd did not tell
	Lead *int64 `json:"lead,omitempty"`
}

// leadSlack is by how much two looks at the lead may differ in one incarnation: etcd reads the revision first, and the
// log behind it. So a lead is never shown too low, and only a log that began anew is shorter than the revision.
const leadSlack = 20

// IncarnationKey holds the incarnation in which the fleet's record was written.
func (s *Doubts) IncarnationKey() string { return s.store.key("store_incarnation") }

// ServesHosts reports a store that several hosts may use. One behind a socket of this host, embedded or not, restarts
// with the processes of its only host.
func (s *Store) ServesHosts() bool {
	elsewhere := func(endpoint string) bool { return !strings.HasPrefix(endpoint, "unix:") }
	return s.embedded == nil && (len(s.endpoints) == 0 || slices.ContainsFunc(s.endpoints, elsewhere))
}

// IncarnationOf is the incarnation that answered. Its lead is not known.
func IncarnationOf(h *pb.ResponseHeader) Incarnation {
	return Incarnation{Cluster: h.ClusterId, Term: h.RaftTerm}
}

// Continues reports that an answer is of the incarnation on record.
func (i Incarnation) Continues(was Incarnation) bool {
	return i.Cluster == was.Cluster && i.Term == was.Term
}

// Replaced is why the record was restored or replaced since an incarnation, whatever anybody saw; "" is not for sure.
// The lead only falls when etcd is restored from a snapshot: its log begins anew then, and its revision does not.
func (i Incarnation) Replaced(was Incarnation) string {
	switch {
	case was.Cluster == 0: // the record could not be read
		return ""
	case i.Cluster != was.Cluster:
		return fmt.Sprintf(
			"the fleet's record in etcd was restored or replaced: etcd's cluster id was %x and is %x",
			was.Cluster,
			i.Cluster,
		)
	case i.Lead != nil && was.Lead != nil && (*i.Lead < *was.Lead-leadSlack || *i.Lead < 0 && *was.Lead >= 0):
		return "the fleet's record in etcd was restored from a snapshot: etcd's raft log began anew"
	}
	return ""
}

// Incarnation asks etcd which one it is, with its lead where it says so.
func (s *Doubts) Incarnation(ctx context.Context) (Incarnation, error) {
	if s.store.maintenance != nil {
		if status, err := s.store.maintenance.Status(ctx, &pb.StatusRequest{}); err == nil {
			lead := int64(status.RaftIndex) - status.Header.Revision
			return Incarnation{Cluster: status.Header.ClusterId, Term: status.Header.RaftTerm, Lead: &lead}, nil
		}
	}
	got, err := s.store.Client.Get(ctx, s.IncarnationKey(), clientv3.WithCountOnly()) // it may refuse to tell its status
	if err != nil {
		return Incarnation{}, err
	}
	return IncarnationOf(got.Header), nil
}

// Recognise records the incarnation that etcd is in now over the one that was read at a revision, 0 for none. Where the
// record was surely replaced it records the doubt, which an operator lifts; else nobody is admitted during the grace
// time. Nothing happens where the incarnation is the recorded one, or another node was faster.
func (s *Doubts) Recognise(ctx context.Context, node string, was Incarnation, seen int64) error {
	is, err := s.Incarnation(ctx)
	if err != nil {
		return err
	}
	why := is.Replaced(was)
	if seen != 0 && why == "" && is.Continues(was) {
		return nil
	}
	ops, err := graceOps(ctx, s.store, is)
	if err != nil {
		return err
	}
	if ops = append(ops, s.store.Bells.RingOp()); seen != 0 && why != "" {
		ops = append(ops, s.doubtOp(node, why, time.Time{}))
	}
	_, err = s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(s.IncarnationKey()), "=", seen)).
		Then(ops...).
		Commit()
	return err
}

// doubt records a doubt in the fleet's record, unless there is one, and begins the grace time with it: before an
// operator accepts the record, whoever is at work has the time to report. The incarnation is recorded, too: who looks
// later begins no second grace time.
func doubt(ctx context.Context, s *Store, node, why string, accepted time.Time) error {
	have, err := s.Client.Get(ctx, s.Doubts.Key(), clientv3.WithCountOnly())
	if err != nil || have.Count > 0 {
		return err
	}
	is, err := s.Doubts.Incarnation(ctx)
	if err != nil {
		return err
	}
	ops, err := graceOps(ctx, s, is)
	if err == nil {
		_, err = s.Client.Txn(ctx).Then(append(ops, s.Doubts.doubtOp(node, why, accepted), s.Bells.RingOp())...).Commit()
	}
	return err
}

// doubtOp records a doubt in the fleet's record, unless there is one. Its time is later than the acceptance that the
// node saw last.
func (s *Doubts) doubtOp(node, why string, accepted time.Time) clientv3.Op {
	none := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(s.Key()), "=", 0)}
	return clientv3.OpTxn(
		none,
		[]clientv3.Op{Put(s.Key(), Switch{Reason: why, By: node, At: after(time.Now().UTC(), accepted)})},
		nil,
	)
}

// firstOps record the incarnation in which a fleet's record begins, with its first node or its first version, unless
// the caller knows that it has begun. One that was there before incarnations were recorded is not begun now.
func (s *Doubts) firstOps(ctx context.Context, begun bool) ([]clientv3.Op, error) {
	if begun || !s.store.ServesHosts() {
		return nil, nil
	}
	is, err := s.Incarnation(ctx)
	if err != nil {
		return nil, err
	}
	begins := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(s.IncarnationKey()), "=", 0),
		clientv3.Compare(clientv3.CreateRevision(s.store.Versions.CurrentKey()), "=", 0),
	}
	return []clientv3.Op{clientv3.OpTxn(begins, []clientv3.Op{Put(s.IncarnationKey(), is)}, nil)}, nil
}

func (i *Incarnation) check(Key) error {
	if i.Cluster == 0 || i.Term == 0 {
		return errors.New("it names no cluster or no term")
	}
	return nil
}
