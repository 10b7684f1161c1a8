package lock

import (
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// reading is what a look at the store found, at one revision.
type reading struct {
	view     View
	revision int64
	fences   map[int]int64 // create revisions of the claims
	moved    []clientv3.Cmp
	current  int64                 // revision of the fleet's version
	alive    int64                 // revision of the node's registration; 0: its lease ended
	surveyed bool                  // it was counted who is away
	open     []string              // runs of reactions that keep their hosts from versions
	ahead    string                // the key of the ticket before the node's own
	older    int                   // tickets that come first
	slots    []Held                // all slots of the fleet
	others   []Held                // own claims in other groups
	unlisted []Held                // older claims whose nodes no inventory lists: their records say where they belong
	gates    map[string]state.Gate // of all groups
	gateRev  int64                 // of the pool's own
	now      state.Incarnation     // of etcd, which answered
	was      state.Incarnation     // on record
	wasRev   int64                 // 0: none is, or it cannot be read

	switchKey string // of the switch that keeps the node where it is

	wait *Wait     // what Try made of it
	at   time.Time // and when
}

// answers are the responses to a request, in its order.
type answers struct{ left []*pb.ResponseOp }

func (a *answers) next() *pb.ResponseOp {
	one := a.left[0]
	a.left = a.left[1:]
	return one
}

func (a *answers) kvs() []*mvccpb.KeyValue { return a.next().GetResponseRange().Kvs }

// stops sets a switch that stops all nodes, unless another one is set.
func (r *reading) stops(s *state.Store, what, key string, set []*mvccpb.KeyValue) {
	if len(set) > 0 && r.view.Switch == nil {
		r.view.Switch, r.switchKey = newSwitched(what, s.Switches.Read(set[0])), key
	}
}

// unmoved adds a key that must not change before the claim.
func (r *reading) unmoved(key string, kvs []*mvccpb.KeyValue) {
	r.moved = append(r.moved, clientv3.Compare(clientv3.ModRevision(key), "=", revisionOf(kvs)))
}

func revisionOf(kvs []*mvccpb.KeyValue) int64 {
	if len(kvs) == 0 {
		return 0
	}
	return kvs[0].ModRevision
}

// markAlive marks a claim whose holder is not lost.
func (r *reading) markAlive(h Held) {
	for i, fence := range r.fences {
		if fence == h.Fence {
			r.view.Dead[i] = false
		}
	}
	lists := [][]Held{r.view.Guests, r.view.Slots}
	if r.view.Home != nil {
		lists = append(lists, r.view.Home.Guests)
	}
	for _, list := range lists {
		for i := range list {
			list[i].Dead = list[i].Dead && list[i].Key != h.Key
		}
	}
}
