package state

import (
	"context"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Orders are what operators want of a node, at one revision.
type Orders struct {
	Freeze   *Switch  // that stops all changes of the node, drift correction included; nil: none does
	Scope    Scope    // of Freeze
	Commands []string // that somebody has to run; Commands.For tells which of them this node has to
	// Reactions are runs of reactions that some hosts are not through with; Reactions.For tells which of them this node
	// has to run.
	Reactions []string
	Begun     bool // the begin of a run is on record
}

// Orders reads what operators want of a node. Where there is no switch at all, a run that is given begins in the same
// transaction, as BeginRun does. For what the node waits in a rollout, where that is given, is told with it.
func (s *Switches) Orders(ctx context.Context, p *Presence, role string, run, waits *Status) (Orders, error) {
	reads := s.ordersOps(p.Node.Name, role)
	if waits != nil {
		reads = append(
			reads,
			clientv3.OpTxn([]clientv3.Cmp{p.Lives()}, s.store.Statuses.Ops(p.Node.Name, Rollout, Pending, *waits), nil),
		)
	}
	txn := s.store.Client.Txn(ctx).Then(reads...)
	if run != nil {
		begins := s.store.Statuses.mayBegin(p)
		for _, c := range scopesOf(p.Node.Name, role) {
			begins = append(begins, clientv3.Compare(clientv3.CreateRevision(s.Key(c)), "=", 0))
		}
		txn = s.store.Client.Txn(ctx).
			If(begins...).
			Then(append(slices.Clone(reads), s.store.Statuses.Ops(p.Node.Name, Configured, Running, *run)...)...).
			Else(reads...)
	}
	got, err := txn.Commit()
	if err != nil {
		return Orders{}, err
	}
	o := s.ordersOf(p.Node.Name, role, got.Responses)
	o.Begun = run != nil && got.Succeeded
	return o, nil
}

// scopesOf are the scopes of switches that hold for a node, the nearest first: one that enables lifts those behind it.
func scopesOf(node, role string) []Scope {
	return []Scope{HostScope(node), RoleScope(role), GlobalScope()}
}

// ordersOps read the orders of a node, for ordersOf.
func (s *Switches) ordersOps(node, role string) []clientv3.Op {
	ops := []clientv3.Op{
		clientv3.OpGet(s.store.Commands.pendingKey(""), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.store.Reactions.PendingPrefix(), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
	}
	for _, c := range scopesOf(node, role) {
		ops = append(ops, clientv3.OpGet(s.Key(c)))
	}
	return ops
}

func (s *Switches) ordersOf(node, role string, answers []*pb.ResponseOp) (o Orders) {
	for i, words := range []*[]string{&o.Commands, &o.Reactions} {
		for _, kv := range answers[i].GetResponseRange().Kvs {
			if k, err := s.store.Key(kv); err == nil {
				*words = append(*words, k.Word)
			}
		}
	}
	set := map[string]Switch{}
	for i, c := range scopesOf(node, role) {
		for _, kv := range answers[2+i].GetResponseRange().Kvs {
			set[c.String()] = s.Read(kv)
		}
	}
	o.Freeze, o.Scope = FreezeOf(set, node, role)
	return o
}

// FreezeOf is the switch that stops all changes of a node, of those that are set by scope: host over role over global;
// nil where none does.
func FreezeOf(set map[string]Switch, node, role string) (*Switch, Scope) {
	for _, c := range scopesOf(node, role) {
		w, ok := set[c.String()]
		switch {
		case ok && w.Enabled:
			return nil, Scope{}
		case ok && w.AllChanges: // one that is only off lifts none of a wider scope
			return &w, c
		}
	}
	return nil, Scope{}
}

// Freeze is the switch that stops all changes of this node, as it knew it last: it holds also while etcd is away.
type Freeze struct {
	Switch
	Scope string        `json:"scope"`          // "host web1", "role web", "global"
	Seen  time.Time     `json:"seen,omitzero"`  // when this node learned of it, by its own clock
	Boot  string        `json:"boot,omitempty"` // of that moment
	Up    time.Duration `json:"up,omitempty"`   // of the host at that moment
}

// NewFreeze is a switch of a scope that the node learns of now.
func NewFreeze(w Switch, scope Scope, boot string) *Freeze {
	return &Freeze{w, scope.String(), time.Now().UTC(), boot, bootClock()}
}

// Same reports that both are one switch.
func (f *Freeze) Same(other *Freeze) bool {
	if f == nil || other == nil {
		return f == other
	}
	return f.At.Equal(other.At) && f.Scope == other.Scope
}

// Ended reports that the time of a freeze is over, for a node that cannot ask etcd. The time counts from when the node
// learned of it: the clock of who set it may be wrong, and that of this host may have been set since.
func (f *Freeze) Ended(boot string) bool {
	return !f.Until.IsZero() && since(f.Seen, f.Boot, f.Up, boot) > f.Until.Sub(f.At)
}
