package state

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Peer is what a node registered of itself.
type Peer struct {
	Node
	Facts Facts
}

// Peers are the records and facts of some nodes, decommissioned ones included. Nodes that never registered are left
// out.
func (s *Nodes) Peers(ctx context.Context, nodes []string) (map[string]Peer, error) {
	var ops []clientv3.Op
	for _, node := range nodes {
		ops = append(ops, clientv3.OpGet(s.Key(node)), clientv3.OpGet(s.store.key("facts", node)))
	}
	answers, _, err := s.store.ReadMany(ctx, ops)
	if err != nil {
		return nil, err
	}
	out := map[string]Peer{}
	for i, node := range nodes {
		records, facts := answers[2*i].GetResponseRange().Kvs, answers[2*i+1].GetResponseRange().Kvs
		if len(records) == 0 {
			continue
		}
		var p Peer
		p.Node, _ = Read[Node](s.store, records[0]) // one that cannot be read says nothing, and keeps its name
		p.Name = node
		if len(facts) > 0 {
			p.Facts, _ = Read[Facts](s.store, facts[0])
		}
		out[node] = p
	}
	return out, nil
}
