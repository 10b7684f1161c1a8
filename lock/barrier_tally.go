package lock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// tally is how a roster stands at a barrier.
type tally struct {
	open     bool
	in       map[string]string // node -> how it arrived
	missing  []state.Holder
	more     int
	failed   []string
	faulty   []string // by faults of their hosts
	survives int      // host faults, of a roster of this size
	news     int64    // the revision of the last failure
	left     []string // out of the roster
	revision int64
}

// settle looks at all arrivals, and opens the barrier if everybody came and few enough failed. Else it says who is
// waited for, and halts the node's group when everybody came and too many failed.
func (s *Steps) settle(ctx context.Context, step Step) (*Wait, bool, error) {
	t, err := s.tally(ctx, step)
	if err != nil || t.open {
		return nil, t.open, err
	}
	if len(t.missing) > 0 {
		if err := trouble(ctx, s.store, s.req, t.missing); err != nil {
			return nil, false, err
		}
		names := []string{}
		for _, h := range t.missing {
			names = append(names, h.Node+" ("+life(h)+")")
		}
		if t.more > 0 {
			names = append(names, fmt.Sprintf("%d more", t.more))
		}
		reason := "not arrived yet: " + strings.Join(names, ", ")
		if len(t.left) > 0 {
			reason += "; left out: " + strings.Join(t.left[:min(5, len(t.left))], ", ")
		}
		return s.waits(step, reason, remedyFor(t.missing), t.missing), false, nil
	}
	if len(t.failed) > s.req.Rules.MaxFailures {
		reason := fmt.Sprintf("step %s failed on %s", step.ID, strings.Join(t.failed, ", "))
		return s.waits(step, reason, state.Act("mend it there, or push a commit that does; it opens when they succeed"), nil), false, s.halt(ctx, state.Gate{Node: t.failed[0], Reason: reason, Failed: t.failed[:1]}, t.news)
	}
	if len(t.faulty) > t.survives {
		reason := fmt.Sprintf("step %s failed on %s: %s", step.ID, strings.Join(t.faulty, ", "), tooManyHosts(len(t.faulty), t.survives))
		return s.waits(step, reason, state.Act("repair these hosts; it opens when they succeed"), nil), false, s.halt(ctx, state.Gate{Node: t.faulty[0], Reason: reason, Hosts: t.faulty[:1]}, t.news)
	}
	moved := clientv3.Compare(clientv3.ModRevision(s.key(step, "in")+"/"), "<", t.revision+1)
	done, err := s.store.Client.Txn(ctx).If(moved.WithPrefix()).
		Then(clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(s.key(step, "open")), "=", 0)},
			[]clientv3.Op{state.Put(s.key(step, "open"), s.opened())}, nil)).Commit()
	if err == nil && !done.Succeeded {
		err = ErrMoved
	}
	return nil, err == nil, err
}

// tally reads who arrived and who is missing. Lost nodes are given up where the rules say so.
func (s *Steps) tally(ctx context.Context, step Step) (tally, error) {
	roster, err := s.store.FreezeRoster(ctx, s.key(step, "roster"), s.req.Inventory, s.chooses(step))
	if err != nil {
		return tally{}, err
	}
	keysOnly := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithKeysOnly()}
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.key(step, "open"), clientv3.WithCountOnly()),
		clientv3.OpGet(s.key(step, "in")+"/", clientv3.WithPrefix()),
		clientv3.OpGet(s.store.DecommissionedKey(""), keysOnly...),
		clientv3.OpGet(s.store.NodeKey(""), keysOnly...),
		clientv3.OpGet(s.store.AliveKey(""), keysOnly...),
	).Commit()
	if err != nil {
		return tally{}, err
	}
	t := tally{
		left:     roster.Left,
		survives: s.req.Rules.hostFailures(roster.Size),
		open:     got.Responses[0].GetResponseRange().Count > 0,
		in:       map[string]string{},
		revision: got.Header.Revision,
	}
	arrived := map[string]bool{}
	for _, kv := range got.Responses[1].GetResponseRange().Kvs {
		k, err := s.store.Key(kv)
		if err != nil {
			continue
		}
		if t.in[k.Node], arrived[k.Node] = came(s.store, kv), true; t.in[k.Node] == Failed || t.in[k.Node] == Faulty {
			t.news = max(t.news, kv.ModRevision)
		}
	}
	sets := make([]map[string]bool, 3)
	for i := range sets {
		sets[i] = lastParts(s.store, got.Responses[2+i].GetResponseRange().Kvs)
	}
	gone, known, alive := sets[0], sets[1], sets[2]
	t.missing, t.more = missing(roster.Nodes(), arrived, gone, known, alive, s.req.Rules.OnLost)
	for _, node := range slices.Sorted(maps.Keys(t.in)) {
		switch {
		case gone[node]:
		case t.in[node] == Failed:
			t.failed = append(t.failed, node)
		case t.in[node] == Faulty:
			t.faulty = append(t.faulty, node)
		}
	}
	if s.req.Rules.OnLost == Fail {
		for _, node := range roster.Nodes() {
			if !arrived[node] && !gone[node] && known[node] && !alive[node] {
				t.failed = append(t.failed, node)
			}
		}
	}
	return t, nil
}

// came is how a node came to a barrier. Where that cannot be read, it failed.
func came(s *state.Store, kv *mvccpb.KeyValue) string {
	how, err := state.Read[state.Word](s, kv)
	if how != Done && how != Skipped && how != Faulty || err != nil {
		return Failed
	}
	return string(how)
}

// halt halts the node's group because of what failed on another node, unless an operator resumed it since.
func (s *Steps) halt(ctx context.Context, because state.Gate, news int64) error {
	return again(ctx, s.req.node(), func() error { return s.haltOnce(ctx, because, news) })
}

// haltOnce is one attempt for each state of the gate.
func (s *Steps) haltOnce(ctx context.Context, because state.Gate, news int64) error {
	group := s.req.Rules.Group
	gate, rev, err := s.store.Gate(ctx, s.req.rollout(), group)
	if err != nil || gate.State == state.Halted || gate.Resumed != "" && news < rev {
		return err
	}
	gate.Halt(because.Node, because.Reason)
	gate.Unknown = because.Unknown
	if !counted(gate, because.Node) {
		gate.Failed, gate.Hosts = append(gate.Failed, because.Failed...), append(gate.Hosts, because.Hosts...)
	}
	done, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(s.store.GateKey(s.req.rollout(), group)), "=", rev)).
		Then(s.store.GateOp(s.req.rollout(), group, gate), s.store.RingOp()).Commit()
	if err == nil && !done.Succeeded {
		err = ErrMoved
	}
	return err
}
