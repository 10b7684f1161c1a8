package lock

import (
	"cmp"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// population says of nodes whether they were given up, were ever seen, and live.
type population struct{ gone, known, alive map[string]bool }

// populationOps read what populationOf takes.
func populationOps(s *state.Store) (ops []clientv3.Op) {
	for _, prefix := range []string{s.Nodes.DecommissionedKey(""), s.Nodes.Key(""), s.Presences.AliveKey("")} {
		ops = append(ops, clientv3.OpGet(prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly()))
	}
	return ops
}

// populationOf is what populationOps found.
func populationOf(s *state.Store, answers []*pb.ResponseOp) population {
	sets := make([]map[string]bool, len(answers))
	for i, answer := range answers {
		sets[i] = lastParts(s, answer.GetResponseRange().Kvs)
	}
	return population{gone: sets[0], known: sets[1], alive: sets[2]}
}

// lost reports a node that was seen once and does not answer.
func (p population) lost(node string) bool { return p.known[node] && !p.alive[node] }

// shownMissing is how many missing nodes a reason names.
const shownMissing = 5

// missing are the nodes of a roster that are waited for. Where lost nodes are given up, those that were seen once are
// not.
func (p population) missing(roster []string, done map[string]bool, onLost string) (out []state.Holder, more int) {
	for _, node := range roster {
		if done[node] || p.gone[node] || p.lost(node) && givesUp(onLost) {
			continue
		}
		out = append(out, state.Holder{Node: node, Alive: p.alive[node], Seen: p.known[node]})
		if len(out) > shownMissing {
			out, more = out[:shownMissing], more+1
		}
	}
	return out, more
}

// lastParts are the nodes, or else the groups, that end keys.
func lastParts(s *state.Store, kvs []*mvccpb.KeyValue) map[string]bool {
	out := map[string]bool{}
	for _, kv := range kvs {
		if k, err := s.Key(kv); err == nil {
			out[cmp.Or(k.Node, k.Group)] = true
		}
	}
	return out
}
