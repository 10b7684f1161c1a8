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
	open        bool
	in          map[string]string // node -> how it arrived
	missing     []state.Holder
	more        int
	failed      []string
	faulty      []string // by faults of their hosts
	survives    int      // host faults, of a roster of this size
	lastFailure int64    // the revision of the last failure
	left        []string // out of the roster
	revision    int64
}

// openIfComplete reads all arrivals and opens the barrier if all nodes came and few enough failed. Otherwise it returns
// who is missing. It halts the node's group if all nodes came and too many failed.
func (b *barrier) openIfComplete(ctx context.Context) (*Wait, bool, error) {
	t, err := b.tally(ctx)
	if err != nil || t.open {
		return nil, t.open, err
	}
	if len(t.missing) > 0 {
		if err := fillConditions(ctx, b.steps.store, b.steps.req, t.missing); err != nil {
			return nil, false, err
		}
		names := []string{}
		for _, h := range t.missing {
			names = append(names, h.Node+" ("+Condition(h)+")")
		}
		if t.more > 0 {
			names = append(names, fmt.Sprintf("%d more", t.more))
		}
		reason := "not arrived yet: " + strings.Join(names, ", ")
		if len(t.left) > 0 {
			reason += "; left out: " + strings.Join(t.left[:min(5, len(t.left))], ", ")
		}
		return b.wait(reason, RemedyFor(t.missing...), t.missing), false, nil
	}
	if len(t.failed) > b.steps.req.Rules.MaxFailures {
		reason := fmt.Sprintf("step %s failed on %s", b.step.ID, strings.Join(t.failed, ", "))
		remedy := state.Act("fix it there, or push a commit that does; the barrier opens when they succeed")
		wait := b.wait(reason, remedy, nil)
		because := state.Gate{Node: t.failed[0], Reason: reason, Failed: t.failed[:1]}
		return wait, false, b.steps.halt(ctx, because, t.lastFailure)
	}
	if len(t.faulty) > t.survives {
		why := tooManyHosts(len(t.faulty), t.survives)
		reason := fmt.Sprintf("step %s failed on %s: %s", b.step.ID, strings.Join(t.faulty, ", "), why)
		wait := b.wait(reason, state.Act("repair these hosts; the barrier opens when they succeed"), nil)
		because := state.Gate{Node: t.faulty[0], Reason: reason, Hosts: t.faulty[:1]}
		return wait, false, b.steps.halt(ctx, because, t.lastFailure)
	}
	err = b.openUnlessMoved(ctx, t)
	return nil, err == nil, err
}

// openUnlessMoved opens the barrier. ErrMoved says that somebody arrived since the tally.
func (b *barrier) openUnlessMoved(ctx context.Context, t tally) error {
	moved := clientv3.Compare(clientv3.ModRevision(b.key("in")+"/"), "<", t.revision+1)
	done, err := b.steps.store.Client.Txn(ctx).If(moved.WithPrefix()).
		Then(clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(b.key("open")), "=", 0)},
			[]clientv3.Op{state.Put(b.key("open"), b.openedBy())}, nil)).Commit()
	if err == nil && !done.Succeeded {
		err = ErrMoved
	}
	return err
}

// tally reads who arrived and who is missing. Lost nodes are given up where the rules say so.
func (b *barrier) tally(ctx context.Context) (tally, error) {
	roster, err := b.steps.store.Rosters.Freeze(ctx, b.key("roster"), b.steps.req.Inventory, b.steps.chooses(b.step))
	if err != nil {
		return tally{}, err
	}
	ops := []clientv3.Op{
		clientv3.OpGet(b.key("open"), clientv3.WithCountOnly()),
		clientv3.OpGet(b.key("in")+"/", clientv3.WithPrefix()),
	}
	got, err := b.steps.store.Client.Txn(ctx).Then(append(ops, populationOps(b.steps.store)...)...).Commit()
	if err != nil {
		return tally{}, err
	}
	t := tally{
		left:     roster.Left,
		survives: b.steps.req.Rules.hostFailures(roster.Size),
		open:     got.Responses[0].GetResponseRange().Count > 0,
		in:       map[string]string{},
		revision: got.Header.Revision,
	}
	arrived := map[string]bool{}
	for _, kv := range got.Responses[1].GetResponseRange().Kvs {
		k, err := b.steps.store.Key(kv)
		if err != nil {
			continue
		}
		how := arrivalOf(b.steps.store, kv)
		if t.in[k.Node], arrived[k.Node] = how, true; how == Failed || how == Faulty {
			t.lastFailure = max(t.lastFailure, kv.ModRevision)
		}
	}
	if b.steps.req.Apart { // a host may be through without this step: it runs the jobs of a newer version
		through, err := b.steps.store.Reactions.Through(ctx, b.steps.req.Version.ID)
		if err != nil {
			return tally{}, err
		}
		maps.Copy(arrived, through)
	}
	nodes := populationOf(b.steps.store, got.Responses[2:])
	t.missing, t.more = nodes.missing(roster.Nodes(), arrived, b.steps.req.Rules.OnLost)
	for _, node := range slices.Sorted(maps.Keys(t.in)) {
		switch {
		case nodes.gone[node]:
		case t.in[node] == Failed:
			t.failed = append(t.failed, node)
		case t.in[node] == Faulty:
			t.faulty = append(t.faulty, node)
		}
	}
	if b.steps.req.Rules.OnLost == Fail {
		for _, node := range roster.Nodes() {
			if !arrived[node] && !nodes.gone[node] && nodes.lost(node) {
				t.failed = append(t.failed, node)
			}
		}
	}
	return t, nil
}

// arrivalOf is how a node came to a barrier. An arrival that cannot be read counts as failed.
func arrivalOf(s *state.Store, kv *mvccpb.KeyValue) string {
	how, err := state.Read[state.Word](s, kv)
	if how != Done && how != Skipped && how != Faulty || err != nil {
		return Failed
	}
	return string(how)
}
