package state

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func (s *Rollouts) key(rollout string, parts ...string) string {
	return s.store.key("rollout", rollout) + "/" + strings.Join(parts, "/")
}

// QueuePrefix is where the nodes of a group queue for a rollout.
func (s *Rollouts) QueuePrefix(rollout, group string) string {
	return s.key(rollout, "queue", group) + "/"
}

// QueuesPrefix is where the nodes of all groups queue for a rollout.
func (s *Rollouts) QueuesPrefix(rollout string) string { return s.key(rollout, "queue") + "/" }

// DoneKey says that a node of the frozen roster is through; with an empty node, the prefix of all.
func (s *Rollouts) DoneKey(rollout, group, node string) string {
	return s.key(rollout, "done", group, node)
}

// DoneOp says that a node of the frozen roster is through. Each node is counted once, in the version of ThroughKey: to
// count the keys would take etcd the longer, the more they are.
func (s *Rollouts) DoneOp(rollout, group, node, how string) clientv3.Op {
	done := s.DoneKey(rollout, group, node)
	return clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(done), "=", 0)},
		[]clientv3.Op{clientv3.OpPut(done, how), clientv3.OpPut(s.ThroughKey(rollout, group), "")}, nil)
}

// ThroughKey has the number of nodes that are through as its version.
func (s *Rollouts) ThroughKey(rollout, group string) string {
	return s.key(rollout, "through", group)
}

// AwayKey has, for a moment, how many nodes of a large group do not answer.
func (s *Rollouts) AwayKey(rollout, group string) string { return s.key(rollout, "away", group) }

// ClosedKey says that all nodes of a group are through.
func (s *Rollouts) ClosedKey(rollout, group string) string {
	return s.key(rollout, "closed", group)
}

// SoakKey is there while a group that is through is watched before others follow.
func (s *Rollouts) SoakKey(rollout, group string) string { return s.key(rollout, "soak", group) }

// BegunKey is there when a node of the group was admitted.
func (s *Rollouts) BegunKey(rollout, group string) string { return s.key(rollout, "begun", group) }

// ClockKey is there until no holder of the group finished for the progress deadline.
func (s *Rollouts) ClockKey(rollout, group string) string { return s.key(rollout, "clock", group) }

// LostKey records that a claim was taken back from a node that does not answer.
func (s *Rollouts) LostKey(rollout, node string) string { return s.key(rollout, "lost", node) }

// SlotPrefix is where the claims of a group are; of all groups for "".
func (s *Rollouts) SlotPrefix(group string) string {
	if group == "" {
		return s.store.key("slot") + "/"
	}
	return s.store.key("slot", group) + "/"
}

// TotalPrefix is where the claims of all groups are counted a second time, for the cap over the whole fleet.
func (s *Rollouts) TotalPrefix() string { return s.store.key("total") + "/" }

// MarkPrefix is where holders of a group's claims leave a mark on their lease; of all groups for "".
func (s *Rollouts) MarkPrefix(group string) string {
	if group == "" {
		return s.store.key("mark") + "/"
	}
	return s.store.key("mark", group) + "/"
}

// Claim is the value of a slot: who changes now, and for which version. It has no lease; its create revision is the
// fence.
type Claim struct {
	Node    string `json:"node"`
	Version string `json:"version"`
	Release string `json:"release,omitempty"`
	Rollout string `json:"rollout,omitempty"`
	// the last one that it started; at a serialized step that one, from the beginning
	Step  string    `json:"step,omitempty"`
	Since time.Time `json:"since"`

	// Groups are those that the node left since it made the claim, by a change of rules, labels or role: it counts
	// there, too.
	Groups []string `json:"groups,omitempty"`
	// Idle says that the node changes nothing now: it waits for others before it begins with a newer version, or has a
	// fault of its own. It does not count in the total.
	Idle bool `json:"idle,omitempty"`
	// Member is the node where the claim was put back: a restored record may not know the node, or have it as given up.
	Member *Member `json:"member,omitempty"`
	// Reaction is the name of the reaction that the claim is for; "": it is for a move to Version.
	Reaction string `json:"reaction,omitempty"`
	// Before is as which the node held the slot before it began with a run of a reaction in it, and holds it again behind
	// that: its move to a version failed. nil: it did not.
	Before *Claim `json:"before,omitempty"`

	Unread *BadRecordError `json:"-"` // why nobody knows what it says
}

// ReadClaim is a claim as it stands in etcd. One that cannot be read is held, and nobody knows by whom.
func (s *Rollouts) ReadClaim(kv *mvccpb.KeyValue) Claim {
	c, err := Read[Claim](s.store, kv)
	if bad, ok := errors.AsType[*BadRecordError](err); ok {
		return Claim{Unread: bad}
	}
	return c
}

// HeldPlace is the slot, or the place at a serialized step, that a node holds, as the node itself knows it: the fleet's
// record may forget it.
type HeldPlace struct {
	Group string `json:"group,omitempty"`
	Step  string `json:"step,omitempty"` // the hash of a serialized step; "" is a slot of the group
	Run   string `json:"run,omitempty"`  // of a reaction that has places of its own; "": it has none
	Claim Claim  `json:"claim"`
	// Member is the node itself; nil where an older pullet wrote this.
	Member *Member `json:"member,omitempty"`
}

// Prefixes are those of the keys of such places: of the ones beside it, and of all that a node may hold one of.
func (h *HeldPlace) Prefixes(s *Store) (beside, all string) {
	switch {
	case h.Step != "":
		return s.Steps.SemaphorePrefix(h.Step), s.Steps.SemaphorePrefix(h.Step)
	case h.Run != "":
		return s.Commands.Prefix(h.Run, "claim"), s.Commands.Prefix(h.Run, "claim")
	}
	return s.Rollouts.SlotPrefix(h.Group), s.Rollouts.SlotPrefix("")
}

// GroupOf is the group in which nodes of a role take turns; nodes without a role share one.
func GroupOf(role string) string {
	if role == "" {
		return "none"
	}
	return role
}

// CanariesDone reports that the canaries of a version are through and were watched long enough, that none of them has
// begun, or that the version is halted somewhere: then no newer version waits for them.
func (s *Rollouts) CanariesDone(ctx context.Context, v *Version, group string) (bool, error) {
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.ClosedKey(v.Rollout(), group), clientv3.WithCountOnly()),
		clientv3.OpGet(s.SoakKey(v.Rollout(), group), clientv3.WithCountOnly()),
		clientv3.OpGet(s.ThroughKey(v.Rollout(), group), clientv3.WithKeysOnly()),
		s.store.Rosters.Op(s.store.Rosters.Key(v.Rollout(), group), ""),
		clientv3.OpGet(s.GateKey(v.Rollout(), ""), clientv3.WithPrefix()),
		clientv3.OpGet(s.BegunKey(v.Rollout(), group), clientv3.WithCountOnly()),
	).Commit()
	if err != nil {
		return false, err
	}
	if got.Responses[5].GetResponseRange().Count == 0 {
		return true, nil
	}
	for _, kv := range got.Responses[4].GetResponseRange().Kvs {
		if group, gate := s.ReadGate(kv); group != "" && gate.State == Halted {
			return true, nil
		}
	}
	roster, err := s.store.Rosters.Of(got.Responses[3])
	if unlessBad(err) != nil {
		return false, err
	}
	closed := got.Responses[0].GetResponseRange().Count > 0
	// the last one may have been decommissioned, or killed before it said so
	for _, kv := range got.Responses[2].GetResponseRange().Kvs {
		closed = closed || roster != nil && kv.Version >= int64(roster.Size)
	}
	return closed && got.Responses[1].GetResponseRange().Count == 0, nil
}
