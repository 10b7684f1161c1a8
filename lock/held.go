package lock

import (
	"context"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pullet/pullet/state"
)

// Held is a claim with where it is.
type Held struct {
	Key   string
	Fence int64  // the revision at which it was made
	Group string // of its gate
	Name  string // of what it is a place in: "slot web"
	Dead  bool   // the mark that its holder left is gone
	state.Claim
}

// deadOnes are the claims whose holders are lost.
func deadOnes(all []Held) (out []Held) {
	for _, h := range all {
		if h.Dead {
			out = append(out, h)
		}
	}
	return out
}

// slotOf is a claim of a slot.
func slotOf(s *state.Store, kv *mvccpb.KeyValue, marked map[string]bool) Held {
	place := strings.TrimPrefix(string(kv.Key), s.Rollouts.SlotPrefix(""))
	group := place[:max(0, strings.LastIndexByte(place, '/'))]
	claim := s.Rollouts.ReadClaim(kv) // who holds one that cannot be read may well live
	return Held{
		Key:   string(kv.Key),
		Fence: kv.CreateRevision,
		Group: group,
		Name:  "slot " + group,
		Dead:  !marked[place] && claim.Unread == nil,
		Claim: claim,
	}
}

// readSlots files who holds slots, of whatever group: those of the node's own group by their place, the node's own in
// other groups, and of the others those that count in this group all the same.
func (l *reader) readSlots(r *reading, claims, marks []*mvccpb.KeyValue) {
	marked := map[string]bool{}
	for _, kv := range marks {
		marked[strings.TrimPrefix(string(kv.Key), l.store.Rollouts.MarkPrefix(""))] = true
	}
	r.view.Claims, r.view.Dead = map[int]state.Claim{}, map[int]bool{}
	for i, kv := range claims {
		h := slotOf(l.store, kv, marked)
		r.slots = append(r.slots, h)
		switch {
		case h.Group == l.pool.group:
			index := placeOf(l.store, kv, i)
			r.view.Claims[index], r.view.Dead[index], r.fences[index] = h.Claim, h.Dead, h.Fence
		case h.Node == l.req.node():
			r.others = append(r.others, h)
		default:
			l.readGuest(r, h)
		}
	}
}

// readGuest files a claim in another group that counts in this one, because its node belongs here by the rules of
// today, or did since it made the claim: rules, labels and roles change between versions, and a node that changes does
// so in every group that it was ever counted in.
func (l *reader) readGuest(r *reading, h Held) {
	m, listed := l.req.Inventory[h.Node]
	switch {
	case slices.Contains(h.Groups, l.pool.group), listed && l.req.countsIn(l.pool.group, h.Node, m):
		r.view.Guests = append(r.view.Guests, h)
	case !listed && h.Rollout != l.req.rollout(): // else it is where it belongs
		r.unlisted = append(r.unlisted, h)
	}
}

// askUnlisted finds out who of the holders belongs to this group by its own record. Only a node that would be admitted
// asks.
func (n *census) askUnlisted(ctx context.Context, r *reading) error {
	members, err := n.membersOf(ctx, r.unlisted)
	if err != nil {
		return err
	}
	for _, h := range r.unlisted {
		if m, known := members[h.Node]; known && n.req.countsIn(n.pool.group, h.Node, m) {
			r.view.Guests = append(r.view.Guests, h)
		}
	}
	r.unlisted = nil
	return nil
}

// membersOf are holders by their own records.
func (n *census) membersOf(ctx context.Context, holders []Held) (map[string]state.Member, error) {
	if len(holders) == 0 {
		return nil, nil
	}
	names := make([]string, len(holders))
	for i, h := range holders {
		names[i] = h.Node
	}
	return n.store.Rosters.MembersOf(ctx, names)
}

// uncounted are the slots of other nodes without a place in the total: they were claimed when there was none. They
// count there all the same, unless their node changes nothing.
func (v View) uncounted() (out []Held) {
	counted := map[string]bool{v.Node: true}
	for _, c := range v.Totals {
		counted[c.Node] = true
	}
	for _, h := range v.Slots {
		if h.Unread != nil || !counted[h.Node] && !h.Idle {
			out = append(out, h)
		}
		counted[h.Node] = true
	}
	return out
}
