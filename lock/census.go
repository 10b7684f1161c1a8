package lock

import (
	"context"
	"maps"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// census counts the nodes of a group that are away.
type census struct {
	store  *state.Store
	req    *Request
	pool   *pool
	roster *groupRoster
}

// complete finds nodes of other groups that belong to this one, and counts the nodes that are away. Only a node that
// would be admitted asks.
func (n *census) complete(ctx context.Context, r *reading) error {
	if err := n.askUnlisted(ctx, r); err != nil {
		return err
	}
	if err := n.completeHome(ctx, r); err != nil {
		return err
	}
	if r.surveyed || givesUp(n.req.Rules.OnLost) {
		return nil
	}
	got, err := n.store.Client.Txn(ctx).Then(n.ops()...).Commit()
	if err != nil {
		return err
	}
	return n.read(ctx, r, got.Responses)
}

// Of a group of more than namedAway nodes, or of more than rolesAtOnce roles, it is only counted how many are away, and
// that holds for countedFor: etcd walks through all of their keys to count them, a transaction has room for few roles,
// and a lease takes longer to end.
const (
	namedAway   = 500
	rolesAtOnce = 20
	countedFor  = 3 * time.Second
)

// many reports a group whose nodes that are away are counted now and then, in requests of their own.
func (n *census) many() bool {
	return n.roster.size > namedAway || n.roster.frozen != nil && len(n.roster.frozen.Roles) > rolesAtOnce
}

func (n *census) ops() []clientv3.Op {
	if givesUp(n.req.Rules.OnLost) { // then nobody counts who is away
		return nil
	}
	switch {
	case n.roster.frozen == nil: // it is read in the same request
		return n.opsOf([]string{state.GroupOf(n.req.Rules.Role)}, clientv3.WithCountOnly())
	case n.byName():
		return n.store.Nodes.PresenceOps(n.roster.frozen.Nodes())
	case n.many():
		return []clientv3.Op{clientv3.OpGet(n.store.Rollouts.AwayKey(n.req.rollout(), n.pool.group))}
	}
	return n.roleOps(clientv3.WithCountOnly())
}

// byName reports a small group that is not just a role, such as a few canaries. Its nodes are asked for one by one.
func (n *census) byName() bool {
	frozen := n.roster.frozen
	return frozen.Size <= state.PresencesAtOnce && !slices.Equal(frozen.Roles, []string{n.req.Rules.Group})
}

// oneRole reports a group of the nodes of one role: there ops read the same with and without the roster.
func (n *census) oneRole() bool {
	return n.roster.frozen != nil && !n.many() && !n.byName() &&
		slices.Equal(n.roster.frozen.Roles, []string{state.GroupOf(n.req.Rules.Role)})
}

// read takes the answers to ops. It names the nodes that are away, if any.
func (n *census) read(ctx context.Context, r *reading, answers []*pb.ResponseOp) error {
	r.surveyed = true
	if n.byName() {
		known, alive := n.store.Nodes.PresenceOf(n.roster.frozen.Nodes(), answers)
		r.view.Away = r.view.absent(known, alive)
		return nil
	}
	if n.many() {
		return n.countMany(ctx, r, answers[0].GetResponseRange().Kvs)
	}
	if awayIn(answers) == 0 {
		return nil
	}
	var err error
	r.view.Away, err = n.names(ctx, r.view)
	return err
}

// awayIn is how many more nodes were seen than are alive.
func awayIn(answers []*pb.ResponseOp) (away int) {
	for i, answer := range answers {
		away += int(answer.GetResponseRange().Count) * (1 - 2*(i%2))
	}
	return away
}

// countMany uses the number that another node counted, or counts the nodes that are away. It names them only where a
// holder is among them, because a holder counts already.
func (n *census) countMany(ctx context.Context, r *reading, counted []*mvccpb.KeyValue) (err error) {
	dead := slices.Contains(slices.Collect(maps.Values(r.view.Dead)), true) || len(deadOnes(r.view.Guests)) > 0
	if len(counted) > 0 && !dead {
		if away, err := state.Read[state.Count](n.store, counted[0]); err == nil {
			r.view.More = int(away)
			return nil
		}
	}
	answers, _, err := n.store.ReadMany(ctx, n.roleOps(clientv3.WithCountOnly()))
	if err != nil {
		return err
	}
	away := awayIn(answers)
	if away > 0 && dead {
		r.view.Away, err = n.names(ctx, r.view)
		return err
	}
	lease, err := n.store.Client.Grant(ctx, int64(countedFor.Seconds()))
	if err != nil {
		return err
	}
	r.view.More = away
	_, err = n.store.Client.Do(
		ctx,
		state.Put(n.store.Rollouts.AwayKey(n.req.rollout(), n.pool.group), away, clientv3.WithLease(lease.ID)),
	)
	return err
}

// roles are those of the group's nodes.
func (n *census) roles() []string {
	roles := n.roster.frozen.Roles
	if own := state.GroupOf(n.req.Rules.Role); !slices.Contains(roles, own) { // it joined later
		roles = append(slices.Clone(roles), own)
	}
	return roles
}

// roleOps read, for each role of the group, which nodes were ever seen, and which are alive.
func (n *census) roleOps(opts ...clientv3.OpOption) []clientv3.Op { return n.opsOf(n.roles(), opts...) }

func (n *census) opsOf(roles []string, opts ...clientv3.OpOption) (ops []clientv3.Op) {
	for _, role := range roles {
		ops = append(ops, clientv3.OpGet(n.store.Nodes.SeenKey(role, ""), append(opts, clientv3.WithPrefix())...),
			clientv3.OpGet(n.store.Nodes.LiveKey(role, ""), append(opts, clientv3.WithPrefix())...))
	}
	return ops
}

// names returns the nodes of the group's roles that were seen, are not alive and hold no claim.
func (n *census) names(ctx context.Context, v View) ([]string, error) {
	return n.namesOf(ctx, n.roles(), v)
}

// namesOf is names for the group of a view, which has these roles.
func (n *census) namesOf(ctx context.Context, roles []string, v View) ([]string, error) {
	answers, _, err := n.store.ReadMany(ctx, n.opsOf(roles, clientv3.WithKeysOnly()))
	if err != nil {
		return nil, err
	}
	sets := []map[string]bool{{}, {}}
	for i, r := range answers {
		maps.Copy(sets[i%2], lastParts(n.store, r.GetResponseRange().Kvs))
	}
	return v.absent(sets[0], sets[1]), nil
}

// absent are the nodes that were seen and are not alive, except the node itself and holders of claims: they count
// already.
func (v View) absent(seen, live map[string]bool) []string {
	counts := map[string]bool{v.Node: true}
	for _, c := range v.Claims {
		counts[c.Node] = true
	}
	for _, g := range v.Guests {
		counts[g.Node] = true
	}
	var away []string
	for node := range seen {
		if seen[node] && !live[node] && !counts[node] {
			away = append(away, node)
		}
	}
	slices.Sort(away)
	return away
}
