package lock

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// freeze reads the roster of the group, or makes it: at once where the node looked just now and there was none.
func (t *Turn) freeze(ctx context.Context, none bool) error {
	group, roster := t.req.Rules.Group, t.store.RosterFor
	if none {
		roster = t.store.NewRosterFor
	}
	frozen, err := roster(
		ctx,
		t.store.RosterKey(t.req.rollout(), group),
		t.req.node(),
		t.req.Inventory,
		t.req.ofGroup(group),
	)
	if err == nil { // one that could not be written is not frozen
		t.roster, t.size, t.head = frozen, frozen.Size, true
	}
	return err
}

// ofGroup are the members of a group.
func (q *Request) ofGroup(group string) state.Choose {
	return state.Belongs(func(node string, m state.Member) (bool, string) { return q.Rules.GroupOf(node, m) == group, "" }).
		Always()
}

// takeRoster files the roster that was read, if it is frozen yet.
func (t *Turn) takeRoster(answer *pb.ResponseOp) (err error) {
	t.roster, err = t.store.RosterOf(answer)
	if t.roster != nil {
		t.size = t.roster.Size
	}
	return err
}

// rosterless reports that the roster is to be frozen now: by the first in the queue, so that not all make it who come
// at once.
func (t *Turn) rosterless(r *reading) bool {
	_, holds := r.view.own(r.view.Claims)
	return t.slots && t.roster == nil && (holds || r.view.Ahead == nil)
}

// roster is the barrier's, frozen when somebody first comes, as far as the node needs it.
func (s *Steps) roster(ctx context.Context, step Step) (*state.Roster, error) {
	return s.store.RosterFor(ctx, s.key(step, "roster"), s.req.node(), s.req.Inventory, s.chooses(step))
}

// chooses leaves nodes that are switched off out of a roster, unless they hold a claim of the rollout: they are in the
// middle of it. Who was admitted before a switch is read behind it. A run that the fleet has left makes no roster: a
// record that was restored may not know who is in the middle of its version.
func (s *Steps) chooses(step Step) state.Choose {
	return func(ctx context.Context) (state.Belongs, error) {
		if !s.req.Stale {
			if _, err := superseded(ctx, s.store, s.req); err != nil {
				return nil, err
			}
		}
		switches, err := s.store.Switches(ctx)
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
	got, err := s.store.Client.Get(ctx, s.store.SlotPrefix(""), clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	out := map[string]bool{s.req.node(): true}
	for _, kv := range got.Kvs {
		if c := s.store.ReadClaim(kv); c.Rollout == s.req.rollout() {
			out[c.Node] = true
		}
	}
	return out, nil
}
