package lock

import (
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pullet/pullet/state"
)

// pool is a number of places that nodes claim: the slots of a group, or those of a serialized step.
type pool struct {
	kind        state.WaitKind // of who waits for a place
	name, scope string         // "slot web", "role web"
	step        string         // that a claim is for; "" where it is for a run
	run         string         // of a reaction, which has these places for itself; "": they are for others, too
	group       string         // of its gate
	queue       string         // prefixes of keys
	claims      string
	marks       string
	limit       func(roster int) int
	slots       bool // of a group: all the rules of a rollout hold
	switched    bool // the operator's switches hold
	follows     bool // nobody is admitted for another version than the fleet's
}

func slotPool(s *state.Store, q *Request) *pool {
	g := q.Rules.Group
	return &pool{
		kind: state.WaitSlot, name: "slot " + g, scope: "role " + g, group: g, queue: s.Rollouts.QueuePrefix(q.rollout(), g),
		claims: s.Rollouts.SlotPrefix(g), marks: s.Rollouts.MarkPrefix(g), limit: q.Rules.Limit, slots: true, switched: true,
		follows: !q.Apart,
	}
}

// claimsOf returns the claims by place, and fills in their fences unless nil. A claim whose place cannot be read gets a
// place of its own.
func claimsOf(s *state.Store, kvs []*mvccpb.KeyValue, fences map[int]int64) map[int]state.Claim {
	out := map[int]state.Claim{}
	for i, kv := range kvs {
		place := placeOf(s, kv, i)
		if out[place] = s.Rollouts.ReadClaim(kv); fences != nil {
			fences[place] = kv.CreateRevision
		}
	}
	return out
}

// placeOf is the place of a claim. One that cannot be read gets a negative place of its own.
func placeOf(s *state.Store, kv *mvccpb.KeyValue, i int) int {
	k, err := s.Key(kv)
	if err != nil {
		return -1 - i
	}
	return k.Place
}

// deadOf are the claims without a mark. The holder of a claim that cannot be read may be alive.
func deadOf(s *state.Store, claims map[int]state.Claim, marks []*mvccpb.KeyValue) map[int]bool {
	marked := map[int]bool{}
	for _, kv := range marks {
		if k, err := s.Key(kv); err == nil {
			marked[k.Place] = true
		}
	}
	dead := map[int]bool{}
	for i, c := range claims {
		dead[i] = !marked[i] && c.Unread == nil
	}
	return dead
}
