package state

import (
	"context"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// ReactionRun is what the reactor gives hosts to do: the jobs of a reaction, for an event. Each of them runs the jobs
// once.
type ReactionRun struct {
	ID       string    `json:"id"`       // sorts by the time at which it was given
	Reaction string    `json:"reaction"` // its name in the repository, where its jobs are
	Event    Reacted   `json:"event"`
	Hosts    []string  `json:"hosts"`              // frozen, sorted
	OnChange bool      `json:"onChange,omitempty"` // it runs beside a rollout
	Version  string    `json:"version"`            // of the fleet when it was given
	Chain    []Cause   `json:"chain,omitempty"`    // runs that caused it, itself the last one
	By       string    `json:"by"`                 // the host that was the reactor
	At       time.Time `json:"at"`                 // by the clock of that host, for people
	Clock    time.Time `json:"clock,omitzero"`     // by the fleet's clock; zero: from before it
	Why      string    `json:"why,omitempty"`      // why no host has to do anything
}

// Reacted are the occurrences of an event that a run answers.
type Reacted struct {
	Event                // the last of them
	Occurrences int      `json:"occurrences"`
	IDs         []string `json:"ids,omitempty"`     // of events, as far as there is room
	About       []string `json:"about,omitempty"`   // the nodes that they are about
	Unknown     []string `json:"unknown,omitempty"` // hosts that they are about and that are no nodes
}

// ReactionResult is what a host says of a run.
type ReactionResult struct {
	Node    string    `json:"node"`
	State   string    `json:"state"`             // waiting, running, ok, failed, left
	Run     string    `json:"run,omitempty"`     // the report of the host
	Reason  string    `json:"reason,omitempty"`  // for what it waits, why it failed or was left
	Remedy  string    `json:"remedy,omitempty"`  // what helps
	Changed int       `json:"changed,omitempty"` // steps that changed something
	Version string    `json:"version,omitempty"` // whose jobs it ran
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
}

// The states of a run of a reaction on a host beside Running and Failed.
const (
	ReactionWaits = "waiting"
	ReactionDone  = "ok"
	ReactionLeft  = "left" // the host does not run it: it was halted before, or the host came too late
)

// Over reports an end: the host does no more about the run.
func (r ReactionResult) Over() bool {
	return r.State == ReactionDone || r.State == Failed || r.State == ReactionLeft
}

// ReactionTime is how long after it was given a host may begin with a run, by the clock of etcd: what an event asked
// for yesterday is rarely right today.
const ReactionTime = 4 * time.Hour

func (s *Reactions) givenKey(id string) string { return s.store.key("reaction_given", id) }
func (s *Reactions) givenPrefix() string       { return s.store.key("reaction_given") + "/" }
func (s *Reactions) pendingKey(id string) string {
	return s.PendingPrefix() + id
}
func (s *Reactions) resultPrefix(id string) string { return s.store.key("reaction_result", id) + "/" }
func (s *Reactions) endedPrefix() string           { return s.store.key("reaction_ended") + "/" }
func (s *Reactions) endedOf(id string) string      { return s.endedPrefix() + id + "/" }

// giveOps give runs to their hosts, and wake these. All are pending on one lease.
func (s *Reactions) giveOps(
	ctx context.Context, runs []ReactionRun,
) (ops []clientv3.Op, lease clientv3.LeaseID, err error) {
	var hosts []string
	for _, r := range runs {
		ops, hosts = append(ops, Put(s.givenKey(r.ID), r)), append(hosts, r.Hosts...)
	}
	if len(hosts) == 0 {
		return ops, clientv3.NoLease, nil
	}
	granted, err := s.store.Client.Grant(ctx, int64(ReactionTime.Seconds()))
	if err != nil {
		return nil, clientv3.NoLease, err
	}
	for _, r := range runs {
		if len(r.Hosts) > 0 {
			ops = append(ops, clientv3.OpPut(s.pendingKey(r.ID), "", clientv3.WithLease(granted.ID)))
		}
	}
	return append(ops, s.store.Bells.wakeHostsOp(hosts)), granted.ID, nil
}

// PendingReaction is a run as one of its hosts sees it.
type PendingReaction struct {
	ReactionRun
	Own    ReactionResult
	Halted string // why no further host begins with it; "": it is not halted
	Open   bool   // a host may begin with it
	Opened bool   // its hosts begin with nothing else before: see lock/arbiter
}

// For are those of some runs that a host has to do something about, the oldest first. Nothing is asked where there are
// none.
func (s *Reactions) For(ctx context.Context, node string, ids []string) ([]PendingReaction, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	const each = 4
	var ops []clientv3.Op
	for _, id := range ids {
		ops = append(ops, clientv3.OpGet(s.givenKey(id)), clientv3.OpGet(s.resultPrefix(id)+node),
			clientv3.OpGet(s.store.Rollouts.GateKey(id, ""), clientv3.WithPrefix()),
			clientv3.OpGet(s.pendingKey(id)))
	}
	answers, _, err := s.store.ReadMany(ctx, ops)
	if err != nil {
		return nil, err
	}
	var out []PendingReaction
	for one := range slices.Chunk(answers, each) {
		if r, ok := s.pendingOf(node, one); ok {
			out = append(out, r)
		}
	}
	return out, nil
}

// pendingOf files the answers about one run. It is false where the host has nothing to do with it.
func (s *Reactions) pendingOf(node string, answers []*pb.ResponseOp) (out PendingReaction, mine bool) {
	kvs := func(i int) []*mvccpb.KeyValue { return answers[i].GetResponseRange().Kvs }
	for _, kv := range kvs(0) {
		run, err := Read[ReactionRun](s.store, kv)
		out.ReactionRun, mine = run, err == nil && slices.Contains(run.Hosts, node)
	}
	for _, kv := range kvs(1) {
		var err error
		if out.Own, err = Read[ReactionResult](s.store, kv); err != nil { // it may have run: it is not begun twice
			out.Own = ReactionResult{Node: node, State: ReactionLeft, Reason: err.Error()}
		}
	}
	out.Halted = s.haltOf(kvs(2))
	for _, kv := range kvs(3) {
		out.Open, out.Opened = true, s.IsOpen(kv)
	}
	return out, mine && !out.Own.Over()
}

// Tell records what a host says of a run that it is not through with.
func (s *Reactions) Tell(ctx context.Context, id string, r ReactionResult) error {
	_, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.endedOf(id)+r.Node), "=", 0)).
		Then(Put(s.resultPrefix(id)+r.Node, r)).Commit()
	return err
}

// EndOps record the end of a run on a host.
func (s *Reactions) EndOps(id string, r ReactionResult) []clientv3.Op {
	return []clientv3.Op{
		Put(s.resultPrefix(id)+r.Node, r), clientv3.OpPut(s.endedOf(id)+r.Node, r.State),
	}
}

// Fail halts a run after the failure of a host, when more hosts failed than it survives.
func (s *Reactions) Fail(ctx context.Context, id string, r ReactionResult, survives int) error {
	return s.changeGate(ctx, id, func(gate *Gate) bool {
		if gate.Counts(r.Node) {
			return false
		}
		gate.Failed = append(gate.Failed, r.Node)
		if len(gate.Failed) > survives && gate.State != Halted {
			gate.Halt(r.Node, r.Reason)
		}
		return true
	})
}

// Ended takes a run from the table when all of its hosts are through with it.
func (s *Reactions) Ended(ctx context.Context, r ReactionRun) error {
	got, err := s.store.Client.Get(ctx, s.endedOf(r.ID), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || got.Count < int64(len(r.Hosts)) {
		return err
	}
	_, err = s.store.Client.Txn(ctx).Then(clientv3.OpDelete(s.pendingKey(r.ID)), s.store.Bells.RingOp()).Commit()
	return err
}

// fileRuns files the runs that are not over: which hosts are busy with which reaction.
func (s *Reactions) fileRuns(ctx context.Context, in *Inbox, pending []*mvccpb.KeyValue) error {
	in.Busy = map[string]map[string]bool{}
	var ops []clientv3.Op
	for _, kv := range pending {
		if k, err := s.store.Key(kv); err == nil {
			ops = append(ops, clientv3.OpGet(s.givenKey(k.Word)),
				clientv3.OpGet(s.endedOf(k.Word), clientv3.WithPrefix(), clientv3.WithKeysOnly()))
		}
	}
	answers, _, err := s.store.ReadMany(ctx, ops)
	if err != nil {
		return err
	}
	for one := range slices.Chunk(answers, 2) {
		for _, kv := range one[0].GetResponseRange().Kvs {
			if run, err := Read[ReactionRun](s.store, kv); err == nil {
				in.Runs++
				in.busy(run, s.lastNodes(one[1].GetResponseRange().Kvs))
			}
		}
	}
	return nil
}

func (in *Inbox) busy(run ReactionRun, ended map[string]bool) {
	for _, host := range run.Hosts {
		if ended[host] {
			continue
		}
		if in.Busy[run.Reaction] == nil {
			in.Busy[run.Reaction] = map[string]bool{}
		}
		in.Busy[run.Reaction][host] = true
	}
}

// lastNodes are the nodes that some keys name.
func (s *Reactions) lastNodes(kvs []*mvccpb.KeyValue) map[string]bool {
	out := map[string]bool{}
	for _, kv := range kvs {
		if k, err := s.store.Key(kv); err == nil {
			out[k.Node] = true
		}
	}
	return out
}

// ReactionStatus is a run with what came of it so far.
type ReactionStatus struct {
	ReactionRun
	Open    bool             `json:"open"`    // hosts may begin with it
	Results []ReactionResult `json:"results"` // by node
	Halted  string           `json:"halted,omitempty"`
}

// Over reports that no host does anything about the run any more.
func (r ReactionStatus) Over() bool {
	over := 0
	for _, one := range r.Results {
		if one.Over() {
			over++
		}
	}
	return over >= len(r.Hosts) || !r.Open && !slices.ContainsFunc(r.Results, func(one ReactionResult) bool {
		return one.State == Running
	})
}
