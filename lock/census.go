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

// survey finds out who of other groups belongs to this one, and counts who is away, which only who would be admitted
// asks.
func (t *Turn) survey(ctx context.Context, r *reading) error {
	if err := t.askUnlisted(ctx, r); err != nil {
		return err
	}
	if r.surveyed || givesUp(t.req.Rules.OnLost) {
		return nil
	}
	got, err := t.store.Client.Txn(ctx).Then(t.surveyOps()...).Commit()
	if err != nil {
		return err
	}
	return t.surveyOf(ctx, r, got.Responses)
}

// Of a group of more than namedAway nodes it is only counted how many are away, and that holds for countedFor: etcd
// walks through all of their keys to count them, and a lease takes longer to end.
const (
	namedAway  = 500
	countedFor = 3 * time.Second
)

func (t *Turn) surveyOps() []clientv3.Op {
	if givesUp(t.req.Rules.OnLost) { // then nobody counts who is away
		return nil
	}
	switch {
	case t.roster == nil: // it is read in the same request
		return t.censusOf([]string{state.GroupOf(t.req.Rules.Role)}, clientv3.WithCountOnly())
	case t.byName():
		return t.store.PresenceOps(t.roster.Nodes())
	case t.size > namedAway:
		return []clientv3.Op{clientv3.OpGet(t.store.AwayKey(t.req.rollout(), t.gate))}
	}
	return t.censusOps(clientv3.WithCountOnly())
}

// byName reports a small group that is not just a role, such as a few canaries: it is asked of its own nodes who is
// away.
func (t *Turn) byName() bool {
	return t.roster.Size <= state.PresencesAtOnce && !slices.Equal(t.roster.Roles, []string{t.req.Rules.Group})
}

// oneRole reports a group of which surveyOps ask the same with the roster and without it: the nodes of one role.
func (t *Turn) oneRole() bool {
	return t.roster != nil && t.size <= namedAway && !t.byName() &&
		slices.Equal(t.roster.Roles, []string{state.GroupOf(t.req.Rules.Role)})
}

// surveyOf files what surveyOps read. Where somebody is away, it names them.
func (t *Turn) surveyOf(ctx context.Context, r *reading, answers []*pb.ResponseOp) error {
	r.surveyed = true
	if t.byName() {
		known, alive := t.store.PresenceOf(t.roster.Nodes(), answers)
		r.view.Away = r.view.absent(known, alive)
		return nil
	}
	if t.size > namedAway {
		return t.awayOfMany(ctx, r, answers[0].GetResponseRange().Kvs)
	}
	if awayIn(answers) == 0 {
		return nil
	}
	var err error
	r.view.Away, err = t.census(ctx, r.view)
	return err
}

// awayIn is how many more nodes were seen than live.
func awayIn(answers []*pb.ResponseOp) (away int) {
	for i, answer := range answers {
		away += int(answer.GetResponseRange().Count) * (1 - 2*(i%2))
	}
	return away
}

// awayOfMany takes the number of nodes that are away from who counted them last, or counts them. It names them only
// where a holder is among them: it counts already.
func (t *Turn) awayOfMany(ctx context.Context, r *reading, counted []*mvccpb.KeyValue) (err error) {
	dead := slices.Contains(slices.Collect(maps.Values(r.view.Dead)), true) || len(deadOnes(r.view.Guests)) > 0
	if len(counted) > 0 && !dead {
		if away, err := state.Read[state.Count](t.store, counted[0]); err == nil {
			r.view.More = int(away)
			return nil
		}
	}
	got, err := t.store.Client.Txn(ctx).Then(t.censusOps(clientv3.WithCountOnly())...).Commit()
	if err != nil {
		return err
	}
	away := awayIn(got.Responses)
	if away > 0 && dead {
		r.view.Away, err = t.census(ctx, r.view)
		return err
	}
	lease, err := t.store.Client.Grant(ctx, int64(countedFor.Seconds()))
	if err != nil {
		return err
	}
	r.view.More = away
	_, err = t.store.Client.Do(
		ctx,
		state.Put(t.store.AwayKey(t.req.rollout(), t.gate), away, clientv3.WithLease(lease.ID)),
	)
	return err
}

// censusOps read, for each role of the group, who was ever seen, and who lives.
func (t *Turn) censusOps(opts ...clientv3.OpOption) []clientv3.Op {
	roles := t.roster.Roles
	if own := state.GroupOf(t.req.Rules.Role); !slices.Contains(roles, own) { // it joined later
		roles = append(slices.Clone(roles), own)
	}
	return t.censusOf(roles, opts...)
}

func (t *Turn) censusOf(roles []string, opts ...clientv3.OpOption) (ops []clientv3.Op) {
	for _, role := range roles {
		ops = append(ops, clientv3.OpGet(t.store.SeenKey(role, ""), append(opts, clientv3.WithPrefix())...),
			clientv3.OpGet(t.store.LiveKey(role, ""), append(opts, clientv3.WithPrefix())...))
	}
	return ops
}

// census names who of the group's roles was ever seen, does not live now and holds no claim.
func (t *Turn) census(ctx context.Context, v View) ([]string, error) {
	got, err := t.store.Client.Txn(ctx).Then(t.censusOps(clientv3.WithKeysOnly())...).Commit()
	if err != nil {
		return nil, err
	}
	sets := []map[string]bool{{}, {}}
	for i, r := range got.Responses {
		maps.Copy(sets[i%2], lastParts(t.store, r.GetResponseRange().Kvs))
	}
	return v.absent(sets[0], sets[1]), nil
}

// absent are the nodes that were seen and do not live, less those that count anyhow: the node itself and who holds a
// claim.
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
