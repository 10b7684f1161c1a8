package lock

import (
	"context"
	"math"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// A canary takes turns with the other canaries, but it is a host of its role: its claim counts in the role's group, and
// it is admitted only where that group has room for it, in every version. A node of the role that holds a place since
// an older version, and waits for others before it begins with this one, does not count against the canary: it may wait
// for it.

// home is the group of the node's role, where the node is a canary; "" where it is not.
func (q *Request) home() string {
	if q.Rules.Canaries == "" || q.Rules.Group != q.Rules.Canaries {
		return ""
	}
	return q.Rules.RoleGroup(q.Rules.Role)
}

// countsIn reports whether a node counts in a group by the rules of today.
func (q *Request) countsIn(group, node string, m state.Member) bool {
	return q.Rules.GroupOf(node, m) == group || q.Rules.Canaries != "" && q.Rules.RoleGroup(m.Role) == group
}

// across are the groups in which a claim may be made that counts in the node's own group, or in that of its role.
func (q *Request) across() []string {
	switch home := q.home(); {
	case home != "":
		return []string{home}
	case q.Rules.Canaries != "":
		return []string{q.Rules.Canaries}
	}
	return nil
}

// groups are those that a claim of the node names beside its own: those that it left, and that of its role.
func (q *Request) groups(left []string) []string {
	if home := q.home(); home != "" && !slices.Contains(left, home) {
		return append(slices.Clone(left), home)
	}
	return left
}

// completeHome adds to a canary's view the group of its role: who counts there, who is away, and the gate.
func (n *census) completeHome(ctx context.Context, r *reading) error {
	group := n.req.home()
	if group == "" || r.view.Home != nil {
		return nil
	}
	home := &View{
		Node: n.req.node(), Kind: n.pool.kind, Name: "slot " + group, Group: group, Scope: "role " + group,
		Rollout: n.req.rollout(), OnLost: n.req.Rules.OnLost, Gate: r.gates[group],
	}
	var err error
	if home.Guests, err = n.countedIn(ctx, r, group); err != nil {
		return err
	}
	got, err := n.store.Client.Txn(ctx).
		Then(n.store.Rosters.Op(n.store.Rosters.Key(n.req.rollout(), group), n.req.node())).
		Commit()
	if err != nil {
		return err
	}
	roster, err := n.store.Rosters.Of(got.Responses[0])
	if err != nil {
		return err
	}
	roles := n.rolesOf(group, roster)
	answers, _, err := n.store.ReadMany(ctx, n.opsOf(roles, clientv3.WithCountOnly()))
	if err != nil {
		return err
	}
	size := n.sizeOf(group)
	if roster != nil {
		size = roster.Size
	}
	home.MaxHostFaults = n.req.Rules.hostFailures(size)
	if home.Limit = n.req.Rules.RoleLimit(max(1, size)); home.Limit == 0 { // it holds the hosts that are no canaries
		home.Limit = math.MaxInt
	}
	if awayIn(answers) > 0 && !givesUp(home.OnLost) {
		if home.Away, err = n.namesOf(ctx, roles, *home); err != nil {
			return err
		}
	}
	r.view.Home = home
	return nil
}

// sizeOf is how many nodes of the inventory take turns in a group.
func (n *census) sizeOf(group string) (size int) {
	for node, m := range n.req.Inventory {
		if n.req.Rules.GroupOf(node, m) == group {
			size++
		}
	}
	return size
}

// countedIn are the claims of other nodes that count in a group, whatever group they were made in. A claim of an older
// rollout counts unless its node waits.
func (n *census) countedIn(ctx context.Context, r *reading, group string) (out []Held, err error) {
	var unlisted []Held
	for _, h := range r.slots {
		m, listed := n.req.Inventory[h.Node]
		switch {
		case h.Node == n.req.node(), h.Idle && h.Rollout != n.req.rollout():
		case h.Group == group, slices.Contains(h.Groups, group), listed && n.req.countsIn(group, h.Node, m):
			out = append(out, h)
		case !listed:
			unlisted = append(unlisted, h)
		}
	}
	members, err := n.membersOf(ctx, unlisted)
	for _, h := range unlisted {
		if m, known := members[h.Node]; known && n.req.countsIn(group, h.Node, m) {
			out = append(out, h)
		}
	}
	return out, err
}

// rolesOf are the roles of a group, as far as they are known: the node's own, those of the inventory, and those of the
// frozen roster.
func (n *census) rolesOf(group string, roster *state.Roster) []string {
	roles := []string{state.GroupOf(n.req.Rules.Role)}
	for _, m := range n.req.Inventory {
		if n.req.Rules.RoleGroup(m.Role) == group {
			roles = append(roles, state.GroupOf(m.Role))
		}
	}
	if roster != nil {
		roles = append(roles, roster.Roles...)
	}
	slices.Sort(roles)
	return slices.Compact(roles)
}

// waitForHome is waitForHolders for the group of a canary's role.
func (v View) waitForHome() Decision {
	home := *v.Home
	home.Conditions = v.Conditions
	d := v.waitForHolders(home.busyWait())
	if givesUp(v.OnLost) {
		d.ReclaimElsewhere = deadOnes(home.Guests)
	}
	return d
}

// canaryFirst reports that a node which waited in its claim for others lets a canary of its role finish, which was
// admitted meanwhile.
func (v View) canaryFirst(own int) bool {
	if !v.Canaries || !v.Claims[own].Idle {
		return false
	}
	busy, canaries := 0, 0
	for _, c := range v.Claims {
		if c.Node != v.Node && !c.Idle {
			busy++
		}
	}
	for _, g := range v.Guests {
		if !g.Idle {
			busy, canaries = busy+1, canaries+1
		}
	}
	return canaries > 0 && busy >= v.Limit
}
