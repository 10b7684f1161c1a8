package state

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Gate is the switch of a group in one rollout: admissions compare it, so that none slips past a halt.
type Gate struct {
	State  string    `json:"state"`            // open, halted
	Node   string    `json:"node,omitempty"`   // whose failure halted it
	By     string    `json:"by,omitempty"`     // the operator who halted it
	Reason string    `json:"reason,omitempty"` // why it is halted; Why says it in full
	At     time.Time `json:"at,omitzero"`      // since when it is halted, or open again, by the clock of who did it
	Failed []string  `json:"failed,omitempty"` // the nodes whose upgrade failed
	// those that failed by a fault of the host, not of the commit; no node is in both
	Hosts   []string `json:"hosts,omitempty"`
	Resumed string   `json:"resumed,omitempty"` // who opened it again
	Seen    int64    `json:"seen,omitempty"`    // the revision of etcd up to which who opened it again saw the fleet
	Step    string   `json:"step,omitempty"`    // the serialized step that it guards
	Unknown string   `json:"unknown,omitempty"` // the targeted step for which it is halted: nobody knows what came of it
	Clock   bool     `json:"clock,omitempty"`   // the progress deadline was set going
}

// Halted is the state of a gate that admits nobody.
const Halted = "halted"

// AllGroups is the gate that holds for every group of a rollout.
const AllGroups = "*"

// Halt halts the gate from now on: because of a node, or of none for "".
func (g *Gate) Halt(node, reason string) {
	g.State, g.Node, g.Reason, g.At = Halted, node, reason, time.Now().UTC()
}

// Counts reports that a failure of the node is counted.
func (g Gate) Counts(node string) bool {
	return slices.Contains(g.Failed, node) || slices.Contains(g.Hosts, node)
}

// Why is why the gate is halted, for people.
func (g Gate) Why() string {
	switch {
	case g.By != "" && g.Reason == "":
		return "halted by " + g.By
	case g.By != "":
		return "halted by " + g.By + ": " + g.Reason
	case g.Node == "":
		return g.Reason
	case g.Step != "":
		return "it failed on " + g.Node + ": " + g.Reason
	}
	return "the upgrade of " + g.Node + " failed: " + g.Reason
}

// Clear is what lets the nodes of a halted gate go on.
func (g Gate) Clear() string {
	switch {
	case g.Unknown != "":
		return SettleHint(g.Unknown)
	case g.By != "":
		return "push a commit that fixes it, or go back: pullet rollout undo, or go on: pullet rollout resume"
	}
	return "push a commit that fixes it, or, when it was the host: pullet rollout resume"
}

// GroupGate is a gate with its group.
type GroupGate struct {
	Group string `json:"group"`
	Gate
}

// Scope is what the gate guards, for people.
func (g GroupGate) Scope() string {
	switch {
	case g.Group == AllGroups:
		return "the rollout"
	case g.Step != "":
		return "step " + g.Step
	case strings.HasPrefix(g.Group, "step-"): // its record cannot be read, and its key has no name
		return "a serialized step"
	}
	return "role " + g.Group
}

// Why is why the gate is halted, with what it guards.
func (g GroupGate) Why() string {
	if g.Group == AllGroups {
		return g.Gate.Why()
	}
	return g.Scope() + ": " + g.Gate.Why()
}

// GateKey is the gate of a group in a rollout.
func (s *Rollouts) GateKey(rollout, group string) string { return s.key(rollout, "gate", group) }

// Gate is the gate of a group in a rollout, open unless something was said, and its revision.
func (s *Rollouts) Gate(ctx context.Context, rollout, group string) (Gate, int64, error) {
	got, err := s.store.Client.Get(ctx, s.GateKey(rollout, group))
	if err != nil || len(got.Kvs) == 0 {
		return Gate{State: "open"}, 0, err
	}
	_, g := s.ReadGate(got.Kvs[0])
	return g, got.Kvs[0].ModRevision, nil
}

// ReadGate is a gate as it stands in etcd, with its group. One that cannot be read admits nobody.
func (s *Rollouts) ReadGate(kv *mvccpb.KeyValue) (group string, g Gate) {
	k, err := s.store.Key(kv)
	if err == nil {
		g, err = Read[Gate](s.store, kv)
	}
	if err != nil {
		return k.Group, Gate{State: Halted, Reason: err.Error()}
	}
	return k.Group, g
}

// GateOp writes a gate.
func (s *Rollouts) GateOp(rollout, group string, g Gate) clientv3.Op {
	return Put(s.GateKey(rollout, group), g)
}

// Resume opens the halted gates of the current rollout: those of some groups, or all where none is named. It is
// recorded with who did it, and returns the gates as they were.
func (s *Rollouts) Resume(ctx context.Context, by string, groups ...string) ([]GroupGate, error) {
	return s.reopen(ctx, by, func(g GroupGate) bool { return len(groups) == 0 || slices.Contains(groups, g.Group) })
}

// reopen opens those of the halted gates of the current rollout that which says.
func (s *Rollouts) reopen(ctx context.Context, by string, which func(GroupGate) bool) ([]GroupGate, error) {
	current, _, err := s.store.Versions.Current(ctx)
	if err != nil || current == nil {
		return nil, err
	}
	prefix := s.GateKey(current.Rollout(), "")
	got, err := s.store.Client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	var opened []GroupGate
	ops := []clientv3.Op{s.store.Bells.RingOp(), s.store.Bells.wakeOp()} // agents that back off, too
	for _, kv := range got.Kvs {
		name, gate := s.ReadGate(kv)
		g := GroupGate{name, gate}
		if g.State != Halted || !which(g) {
			continue
		}
		opened = append(opened, g)
		ops = append(
			ops,
			Put(
				string(kv.Key),
				Gate{State: "open", Resumed: by, At: time.Now().UTC(), Seen: got.Header.Revision, Step: g.Step},
			),
			clientv3.OpDelete(s.ClockKey(current.Rollout(), name)),
		)
	}
	if len(opened) == 0 {
		return nil, nil
	}
	still := clientv3.Compare(clientv3.ModRevision(prefix), "<", got.Header.Revision+1)
	done, err := s.store.Client.Txn(ctx).If(still.WithPrefix()).Then(ops...).Commit()
	if err == nil && !done.Succeeded {
		err = &MovedError{What: "the rollout"}
	}
	if err != nil {
		return nil, err
	}
	return opened, nil
}
