package state

import (
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Blockers are what may keep nodes from going on by themselves.
type Blockers struct {
	Switches map[string]Switch // all that operators set, by scope, with "pause"
	Nodes    map[string]NodeBlockers
}

// NodeBlockers are those of one node.
type NodeBlockers struct {
	Known  bool // it was registered, and is not decommissioned
	Alive  bool
	Gone   bool // an operator gave it up
	Role   string
	Runs   string // the version that it runs
	Failed string // the version that failed there
	Parked string // the version in whose mid-run it waits
}

// Blockers reads what may keep nodes from going on.
func (s *Views) Blockers(ctx context.Context, nodes []string) (*Blockers, error) {
	switches, err := s.store.Switches.List(ctx)
	if err != nil {
		return nil, err
	}
	p := &Blockers{Switches: switches, Nodes: map[string]NodeBlockers{}}
	var ops []clientv3.Op
	for _, node := range nodes {
		ops = append(ops, s.blockerOps(node)...)
	}
	answers, _, err := s.store.ReadMany(ctx, ops)
	if err != nil {
		return nil, err
	}
	for i, node := range nodes {
		kvs := func(k int) []*mvccpb.KeyValue { return answers[blockerKeys*i+k].GetResponseRange().Kvs }
		p.Nodes[node] = s.blockersOf(kvs(0), kvs(1), slices.Concat(kvs(2), kvs(3)))
	}
	return p, nil
}

func (s *Views) blockerOps(node string) []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpGet(s.store.Nodes.Key(node)), clientv3.OpGet(s.store.Presences.AliveKey(node), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.store.Statuses.key(Rollout, Failed, node)),
		clientv3.OpGet(s.store.Statuses.key(Rollout, Pending, node)),
	}
}

// blockerKeys is how many keys blockerOps read of a node.
const blockerKeys = 4

// blockersOf is what the records of a node say. One that cannot be read is there all the same: the node counts.
func (s *Views) blockersOf(record, alive, rollout []*mvccpb.KeyValue) NodeBlockers {
	p := NodeBlockers{Known: len(record) > 0, Alive: len(alive) > 0}
	for _, kv := range record {
		if n, err := Read[Node](s.store, kv); err == nil {
			p.Known, p.Gone, p.Role, p.Runs = !n.Decommissioned, n.Decommissioned, n.Role, n.Running
		}
	}
	for _, kv := range rollout {
		st, err := Read[Status](s.store, kv)
		switch k, _ := s.store.Key(kv); {
		case err != nil:
		case k.State == Failed:
			p.Failed = st.Version
		case st.Parked:
			p.Parked = st.Version
		}
	}
	return p
}

// PresencesAtOnce is of how many nodes PresenceOps asks at most, beside other operations in a transaction.
const PresencesAtOnce = 40

// PresenceOps read which of some nodes are known and which live, for PresenceOf.
func (s *Nodes) PresenceOps(nodes []string) (ops []clientv3.Op) {
	for _, node := range nodes {
		ops = append(
			ops, clientv3.OpGet(s.Key(node)), clientv3.OpGet(s.store.Presences.AliveKey(node), clientv3.WithKeysOnly()),
		)
	}
	return ops
}

// PresenceOf is what PresenceOps found.
func (s *Nodes) PresenceOf(nodes []string, answers []*pb.ResponseOp) (known, alive map[string]bool) {
	known, alive = map[string]bool{}, map[string]bool{}
	for i, node := range nodes {
		p := s.store.Views.blockersOf(answers[2*i].GetResponseRange().Kvs, answers[2*i+1].GetResponseRange().Kvs, nil)
		known[node], alive[node] = p.Known, p.Alive
	}
	return known, alive
}

// BlockersOf is what may keep a node of the overview from going on.
func (o *Overview) BlockersOf(node string) NodeBlockers {
	n, known := o.Nodes[node]
	p := NodeBlockers{Known: known, Alive: o.Alive[node], Gone: o.Gone[node], Role: n.Role}
	switch st := o.Statuses[node][Rollout]; {
	case st.State == Failed:
		p.Failed = st.Version
	case st.State == Pending && st.Parked:
		p.Parked = st.Version
	}
	return p
}
