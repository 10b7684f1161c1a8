package arbiter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// Op reads the pending runs, for OpenIn.
func Op(s *state.Store) clientv3.Op {
	return clientv3.OpGet(s.Reactions.PendingPrefix(), clientv3.WithPrefix())
}

// OpenIn returns the ids of the open runs among those that Op read.
func OpenIn(s *state.Store, kvs []*mvccpb.KeyValue) (ids []string) {
	for _, kv := range kvs {
		if s.Reactions.IsOpen(kv) {
			ids = append(ids, idOf(s, kv))
		}
	}
	return ids
}

func idOf(s *state.Store, kv *mvccpb.KeyValue) string {
	return strings.TrimPrefix(string(kv.Key), s.Reactions.PendingPrefix())
}

// NoneSince holds while no run was given or opened since a revision.
func NoneSince(s *state.Store, revision int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(s.Reactions.PendingPrefix()), "<", revision+1).WithPrefix()
}

// A busy fleet changes between a look at it and the opening of a run. The next pull tries again behind so many
// attempts, between which the pauses grow.
const (
	attempts   = 10
	firstPause = 20 * time.Millisecond
)

// Open opens a run of a reaction for all of its hosts, and returns what keeps it from that; nil if it is open now. To
// open an open run does nothing. Its hosts run the same version, so that they come to the same steps. A run that
// answers a change of the version may open in the middle of that version, which does not wait for it.
func Open(ctx context.Context, s *state.Store, run state.ReactionRun) (*Crossing, error) {
	own := Item{Run: run.ID, Parts: map[string]Part{}}
	for _, host := range run.Hosts {
		own.Parts[host] = Ahead
	}
	for attempt := 0; ; attempt++ {
		pending, claims, revision, err := look(ctx, s)
		if err != nil || slices.ContainsFunc(pending, func(r Item) bool { return r.Open && r.Run == run.ID }) {
			return nil, err
		}
		slots := s.Rollouts.SlotPrefix("")
		unmoved := []clientv3.Cmp{
			NoneSince(s, revision),
			clientv3.Compare(clientv3.CreateRevision(slots), "<", revision+1).WithPrefix(),
			clientv3.Compare(clientv3.CreateRevision(s.Reactions.PendingPrefix()+run.ID), ">", 0), // else it is over
		}
		others := pending
		if !run.OnChange {
			moves, kept, err := versions(ctx, s, run.Hosts, claims)
			if err != nil {
				return nil, err
			}
			others, unmoved = append(others, moves...), append(unmoved, kept...)
		}
		if crossed := ToOpen(own, others); crossed != nil {
			return crossed, nil
		}
		done, err := s.Client.Txn(ctx).If(unmoved...).
			Then(clientv3.OpPut(s.Reactions.PendingPrefix()+run.ID, string(state.OpenRun), clientv3.WithIgnoreLease())).Commit()
		if err != nil || done.Succeeded {
			return nil, err
		}
		if attempt == attempts || !state.Pause(ctx, firstPause<<min(attempt, 5)) {
			return &Crossing{Item{Name: "upgrades that begin at every moment"}, run.Hosts}, nil
		}
	}
}

// Before returns the one of some open runs that a host has to be through with before it begins with a version; nil if
// there is none. A run that answers a change of the version is not waited for: it goes on in the middle of it.
func Before(ctx context.Context, s *state.Store, host string, open []string) (*Crossing, error) {
	pending, err := s.Reactions.For(ctx, host, open)
	if err != nil {
		return nil, err
	}
	var items []Item
	for _, r := range pending {
		if !r.OnChange {
			own := state.ReactionStatus{
				ReactionRun: r.ReactionRun, Open: r.Open, Results: []state.ReactionResult{r.Own}, Halted: r.Halted,
			}
			items = append(items, itemOf(own, r.Opened))
		}
	}
	return ToBegin(host, items), nil
}

// Cancel ends a run: hosts that have not begun leave it, and so do those that wait for others in the middle of it. A
// host in a step ends its run. It returns the run as it is then, and what was done, for people.
func Cancel(
	ctx context.Context, s *state.Store, id, by, reason string,
) (run state.ReactionStatus, did string, err error) {
	run, err = s.Reactions.Run(ctx, id)
	if err != nil {
		return run, "", err
	}
	name := "run " + run.ID + " of the reaction " + run.Reaction
	if run.Over() {
		return run, name + " is over already", nil
	}
	run.Halted, run.Open = "canceled by "+by, false
	if reason != "" {
		run.Halted += ": " + reason
	}
	err = s.Reactions.Halt(ctx, id, "", run.Halted, clientv3.OpDelete(s.Reactions.PendingPrefix()+id))
	within := 0
	for _, r := range run.Results {
		if r.State == state.Running {
			within++
		}
	}
	did = name + " is canceled"
	if within > 0 {
		did += fmt.Sprintf("; hosts that are in the middle of it: %d (pullet reactions show %s)", within, run.ID)
	}
	return run, did, err
}

// look reads the pending runs, and all slots.
func look(ctx context.Context, s *state.Store) (pending []Item, claims []*mvccpb.KeyValue, revision int64, err error) {
	slots := clientv3.OpGet(s.Rollouts.SlotPrefix(""), clientv3.WithPrefix())
	got, err := s.Client.Txn(ctx).Then(Op(s), slots).Commit()
	if err != nil {
		return nil, nil, 0, err
	}
	for _, kv := range got.Responses[0].GetResponseRange().Kvs {
		run, err := s.Reactions.Run(ctx, idOf(s, kv))
		if _, missing := errors.AsType[*state.MissingRunError](err); missing {
			continue
		}
		if err != nil {
			return nil, nil, 0, err
		}
		pending = append(pending, itemOf(run, s.Reactions.IsOpen(kv)))
	}
	return pending, got.Responses[1].GetResponseRange().Kvs, got.Header.Revision, nil
}

// itemOf returns a run as an item. One that did not open keeps others only from the hosts that began with it.
func itemOf(r state.ReactionStatus, open bool) Item {
	i := Item{Name: "run " + r.ID + " of the reaction " + r.Reaction, Run: r.ID, Open: open, Parts: map[string]Part{}}
	if r.Open && r.Halted == "" {
		for _, host := range r.Hosts {
			i.Parts[host] = Ahead
		}
	}
	for _, one := range r.Results {
		switch {
		case one.Over():
			i.Parts[one.Node] = Over
		case one.State == state.Running:
			i.Parts[one.Node] = Within
		}
	}
	return i
}

// versions returns those to which some hosts are changing: they hold a slot, or wait for others in mid-run. A host that
// failed is in the middle of nothing: what repairs it may run. Where hosts run different versions, those that run
// another one than the first host are in the middle of a rollout, too. It also returns what must hold while none of the
// hosts begins with a version in a slot that it holds already.
func versions(
	ctx context.Context, s *state.Store, hosts []string, claims []*mvccpb.KeyValue,
) (out []Item, kept []clientv3.Cmp, err error) {
	blockers, err := s.Views.Blockers(ctx, hosts)
	if err != nil {
		return nil, nil, err
	}
	within := func(host, name string) {
		at := slices.IndexFunc(out, func(o Item) bool { return o.Name == name })
		if at < 0 {
			at, out = len(out), append(out, Item{Name: name, Parts: map[string]Part{}})
		}
		out[at].Parts[host] = Within
	}
	for _, host := range hosts {
		if v := blockers.Nodes[host].Parked; v != "" {
			within(host, "version "+state.Short(v))
		}
	}
	for _, kv := range claims {
		c := s.Rollouts.ReadClaim(kv)
		if !slices.Contains(hosts, c.Node) || c.Reaction != "" {
			continue
		}
		if blockers.Nodes[c.Node].Failed != c.Version {
			within(c.Node, "version "+state.Short(c.Version))
		}
		if len(kept) < maxKept {
			kept = append(kept, clientv3.Compare(clientv3.ModRevision(string(kv.Key)), "=", kv.ModRevision))
		}
	}
	first := ""
	for _, host := range hosts {
		switch b := blockers.Nodes[host]; {
		case !b.Known:
		case first == "":
			first = host
		case b.Runs != blockers.Nodes[first].Runs:
			within(host, "a rollout, and runs another version than "+first)
		}
	}
	return out, kept, nil
}

// maxKept bounds the conditions of a transaction.
const maxKept = 50

// Text says what keeps a run from opening.
func (c *Crossing) Text() string {
	is, first := "is", "does"
	if len(c.Hosts) > 1 {
		is, first = "are", "do"
	}
	hosts := safetext.Some(c.Hosts, 3)
	if c.Item.Run == "" {
		return hosts + " " + is + " in the middle of " + c.Item.Name
	}
	return hosts + " " + first + " " + c.Item.Name + " first"
}
