package state

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/safetext"
)

// Digest is what the fleet keeps of a run: the rest is in the run's report on the node.
type Digest struct {
	Counts  map[string]int `json:"counts"`           // steps by outcome
	Failed  string         `json:"failed,omitempty"` // the first failure: step, place and reason
	Seconds float64        `json:"seconds"`
}

// The fleet's statuses are read all at once: what one may hold is bounded. A digest as JSON, and the reason of a status
// as it is.
const (
	maxDigest = 1 << 10
	maxReason = 1000
)

// Fit is the digest, with as much of the first failure as it may hold.
func (d Digest) Fit() *Digest {
	failed := d.Failed
	for most := maxDigest; ; most /= 2 {
		d.Failed = safetext.Cut(failed, most)
		// Encoding cannot fail: it is a plain struct.
		if data, _ := json.Marshal(d); len(data) <= maxDigest || most == 0 {
			return &d
		}
	}
}

// StateOf is a state of a node, with what is said of it.
type StateOf struct {
	State string
	Status
}

// ResultOps say what came of a run of a node: how its configuration is and how its validations are, and a digest of the
// run.
func (s *Statuses) ResultOps(node string, configured, validated StateOf, run *Digest) []clientv3.Op {
	configured.Digest = run
	return append(
		s.Ops(node, Configured, configured.State, configured.Status),
		s.Ops(node, Validated, validated.State, validated.Status)...)
}

// BeginRun says that a run began: the node's configured state is running. A node that failed stays so until a run of it
// ended otherwise: it would be missing in lists of failures each time it tries again. Nothing is written when another
// host has the name by now.
func (s *Statuses) BeginRun(ctx context.Context, p *Presence, st Status) error {
	_, err := s.store.Client.Txn(ctx).Then(s.BeginOp(p, st)).Commit()
	return err
}

// BeginOp is BeginRun beside something else that is written.
func (s *Statuses) BeginOp(p *Presence, st Status) clientv3.Op {
	return clientv3.OpTxn(s.mayBegin(p), s.Ops(p.Node.Name, Configured, Running, st), nil)
}

func (s *Statuses) mayBegin(p *Presence) []clientv3.Cmp {
	return []clientv3.Cmp{
		p.Lives(),
		clientv3.Compare(clientv3.CreateRevision(s.key(Configured, Failed, p.Node.Name)), "=", 0),
	}
}

// InRun is the reason of a node's configured state while it is running.
const InRun = "in the middle of a run"

// Tell writes what a node says of itself. It is ErrLeaseLost, and nothing is written, when the node was decommissioned
// or another host has its name by now.
func (s *Statuses) Tell(ctx context.Context, p *Presence, ops ...clientv3.Op) error {
	done, err := s.store.Client.Txn(ctx).If(p.Lives()).Then(ops...).Commit()
	if err == nil && !done.Succeeded {
		err = ErrLeaseLost
	}
	return err
}

// provisionOp says of a node that it is provisioned, because it pulls; unless something else said how far that is.
func (s *Statuses) provisionOp(node string, at time.Time) clientv3.Op {
	var unsaid []clientv3.Cmp
	for _, state := range states {
		unsaid = append(unsaid, clientv3.Compare(clientv3.CreateRevision(s.key(Provisioned, state, node)), "=", 0))
	}
	st := Status{Reason: "it pulls, and nothing else said how far it is", Time: at}
	return clientv3.OpTxn(unsaid, []clientv3.Op{Put(s.key(Provisioned, Success, node), st)}, nil)
}

// LostOp says of a node that does not answer that its slot was taken back: another node says so, beside what the node
// says of itself, and it holds until the node says something newer.
func (s *Statuses) LostOp(node string, st Status) clientv3.Op { return Put(s.lostKey(node), st) }

func (s *Statuses) lostKey(node string) string { return s.store.key("lost", node) }

// LinkLog says where the log of a run is, in all that the run says of its node.
func (s *Statuses) LinkLog(ctx context.Context, node, run, log string) error {
	var reads []clientv3.Op
	for _, category := range Categories() {
		for _, state := range states {
			reads = append(reads, clientv3.OpGet(s.key(category, state, node)))
		}
	}
	for {
		got, err := s.store.Client.Txn(ctx).Then(reads...).Commit()
		if err != nil {
			return err
		}
		var same []clientv3.Cmp
		var ops []clientv3.Op
		for _, r := range got.Responses {
			for _, kv := range r.GetResponseRange().Kvs {
				if st, err := Read[Status](s.store, kv); err == nil && st.Run == run {
					st.Log, st.Said = log, cmp.Or(st.Said, kv.ModRevision)
					same = append(same, clientv3.Compare(clientv3.ModRevision(string(kv.Key)), "=", kv.ModRevision))
					ops = append(ops, Put(string(kv.Key), st))
				}
			}
		}
		if len(ops) == 0 { // the node went on: what it says now is of another run
			return nil
		}
		done, err := s.store.Client.Txn(ctx).If(same...).Then(ops...).Commit()
		if err != nil || done.Succeeded {
			return err
		}
	}
}

func (s *Statuses) key(category, state, node string) string {
	return s.store.key("status", category, state, node)
}
