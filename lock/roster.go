package lock

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// groupRoster is the roster of the node's group, or of its step.
type groupRoster struct {
	store  *state.Store
	req    *Request
	frozen *state.Roster // nil: it is not frozen, or the pool is not a group's
	size   int           // nodes in it
}

// freeze reads the roster of the group, or makes it. none says that a look just found none.
func (o *groupRoster) freeze(ctx context.Context, none bool) error {
	group, roster := o.req.Rules.Group, o.store.Rosters.For
	if none {
		roster = o.store.Rosters.NewFor
	}
	key := o.store.Rosters.Key(o.req.rollout(), group)
	frozen, err := roster(ctx, key, o.req.node(), o.req.Inventory, o.req.ofGroup(group))
	if err == nil { // one that could not be written is not frozen
		o.frozen, o.size = frozen, frozen.Size
	}
	return err
}

// ofGroup are the members of a group.
func (q *Request) ofGroup(group string) state.Choose {
	return state.Belongs(func(node string, m state.Member) (bool, string) {
		return q.Rules.GroupOf(node, m) == group, ""
	}).
		Always()
}

// read takes the roster that was read, if it is frozen.
func (o *groupRoster) read(answer *pb.ResponseOp) (err error) {
	o.frozen, err = o.store.Rosters.Of(answer)
	if o.frozen != nil {
		o.size = o.frozen.Size
	}
	return err
}

// roster is the barrier's roster, as far as the node needs it. It is frozen when the first node comes.
func (s *Steps) roster(ctx context.Context, step Step) (*state.Roster, error) {
	return s.store.Rosters.For(ctx, s.key(step, "roster"), s.req.node(), s.req.Inventory, s.chooses(step))
}

// chooses leaves disabled nodes out of a roster, unless they hold a claim of the rollout: they are in the middle of it.
// A stale run makes no roster: a restored record may not know who is in the middle of its version.
func (s *Steps) chooses(step Step) state.Choose {
	return func(ctx context.Context) (state.Belongs, error) {
		if s.req.follows() {
			if _, err := superseded(ctx, s.store, s.req); err != nil {
				return nil, err
			}
		}
		switches, err := s.store.Switches.List(ctx)
		if err != nil {
			return nil, err
		}
		admitted, err := s.admitted(ctx)
		return func(node string, m state.Member) (bool, string) {
			yes, left := step.Members(node, m)
			if yes && !admitted[node] && state.OffScope(switches, node, m.Role, s.req.Version.ID) != "" {
				return false, "disabled"
			}
			return yes, left
		}, err
	}
}

// admitted are the nodes that hold a slot for this rollout, and the node itself.
func (s *Steps) admitted(ctx context.Context) (map[string]bool, error) {
	got, err := s.store.Client.Get(ctx, s.store.Rollouts.SlotPrefix(""), clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	out := map[string]bool{s.req.node(): true}
	for _, kv := range got.Kvs {
		if c := s.store.Rollouts.ReadClaim(kv); c.Rollout == s.req.rollout() {
			out[c.Node] = true
		}
	}
	return out, nil
}
