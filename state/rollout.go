package state

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Gate is the switch of a group in one rollout: admissions compare it, so that none slips past a halt.
type Gate struct {
	State   string   `json:"state"` // open, halted
	Node    string   `json:"node,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Failed  []string `json:"failed,omitempty"`  // the nodes whose upgrade failed
	Resumed string   `json:"resumed,omitempty"` // who opened it again
	Clock   bool     `json:"clock,omitempty"`   // the progress deadline was set going
}

// Halted is the state of a gate that admits nobody.
const Halted = "halted"

// AllGroups is the gate that holds for every group of a rollout.
const AllGroups = "*"

// GateKey is the gate of a group in a rollout.
func (s *Store) GateKey(rollout, group string) string { return s.rolloutKey(rollout, "gate", group) }

// Gate is the gate of a group in a rollout, open unless something was said, and its revision.
func (s *Store) Gate(ctx context.Context, rollout, group string) (Gate, int64, error) {
	g := Gate{State: "open"}
	rev, err := s.read(ctx, s.GateKey(rollout, group), &g)
	return g, rev, err
}

// GateOp writes a gate.
func (s *Store) GateOp(rollout, group string, g Gate) clientv3.Op {
	return Put(s.GateKey(rollout, group), g)
}

func (s *Store) rolloutKey(rollout string, parts ...string) string {
	return s.key("rollout", rollout) + "/" + strings.Join(parts, "/")
}

// QueuePrefix is where the nodes of a group queue for a rollout.
func (s *Store) QueuePrefix(rollout, group string) string {
	return s.rolloutKey(rollout, "queue", group) + "/"
}

// QueuesPrefix is where the nodes of all groups queue for a rollout.
func (s *Store) QueuesPrefix(rollout string) string { return s.rolloutKey(rollout, "queue") + "/" }

// DoneKey says that a node of the frozen roster is through; with an empty node, the prefix of all.
func (s *Store) DoneKey(rollout, group, node string) string {
	return s.rolloutKey(rollout, "done", group, node)
}

// ClosedKey says that all nodes of a group are through.
func (s *Store) ClosedKey(rollout, group string) string {
	return s.rolloutKey(rollout, "closed", group)
}

// SoakKey is there while a group that is through is watched before others follow.
func (s *Store) SoakKey(rollout, group string) string { return s.rolloutKey(rollout, "soak", group) }

// ClockKey is there until no holder of the group finished for the progress deadline.
func (s *Store) ClockKey(rollout, group string) string { return s.rolloutKey(rollout, "clock", group) }

// LostKey records that a claim was taken back from a node that does not answer.
func (s *Store) LostKey(rollout, node string) string { return s.rolloutKey(rollout, "lost", node) }

// SlotPrefix is where the claims of a group are; of all groups for "".
func (s *Store) SlotPrefix(group string) string {
	if group == "" {
		return s.key("slot") + "/"
	}
	return s.key("slot", group) + "/"
}

// TotalPrefix is where the claims of all groups are counted a second time, for the cap over the whole fleet.
func (s *Store) TotalPrefix() string { return s.key("total") + "/" }

// MarkPrefix is where holders of a group's claims leave a mark on their lease.
func (s *Store) MarkPrefix(group string) string { return s.key("mark", group) + "/" }

// Claim is the value of a slot: who changes now, and for which version. It has no lease; its create revision is the fence.
type Claim struct {
	Node    string    `json:"node"`
	Version string    `json:"version"`
	Release string    `json:"release,omitempty"`
	Rollout string    `json:"rollout,omitempty"`
	Step    string    `json:"step,omitempty"` // the last one that it started
	Since   time.Time `json:"since"`
}

// Member is a node as rosters see it.
type Member struct {
	Role   string
	Labels map[string]string
}

// Roster is the list of a group's nodes in a rollout, frozen when somebody first asked.
type Roster struct {
	Size  int      `json:"size"`
	Roles []string `json:"roles"`          // that its nodes have
	Left  []string `json:"left,omitempty"` // who was left out, and why
	names []byte   // "\nweb1\nweb2\n"
}

// Has reports a node of the roster.
func (r *Roster) Has(node string) bool { return bytes.Contains(r.names, []byte("\n"+node+"\n")) }

// Nodes are the roster's, sorted.
func (r *Roster) Nodes() []string { return strings.Fields(string(r.names)) }

// newRoster makes a roster of nodes with their roles.
func newRoster(members map[string]string) *Roster {
	roles := map[string]bool{}
	for _, role := range members {
		roles[role] = true
	}
	names := slices.Sorted(maps.Keys(members))
	return &Roster{Size: len(names), Roles: slices.Sorted(maps.Keys(roles)), names: []byte("\n" + strings.Join(names, "\n") + "\n")}
}

// encode is a line of JSON and then the names, a line each: large rosters are searched and never decoded.
func (r *Roster) encode() string {
	head, _ := json.Marshal(r) // plain data
	return string(head) + string(r.names)
}

// DecodeRoster reads the value of a roster's key.
func DecodeRoster(value []byte) (*Roster, error) {
	r := &Roster{}
	end := bytes.IndexByte(value, '\n')
	if end < 0 {
		return nil, fmt.Errorf("it is no roster")
	}
	r.names = value[end:]
	return r, json.Unmarshal(value[:end], r)
}

// RosterKey is the frozen roster of a group in a rollout.
func (s *Store) RosterKey(rollout, group string) string {
	return s.rolloutKey(rollout, "roster", group)
}

// Members are the nodes that count: those of the inventory, and every registered one outside it, less the decommissioned.
func (s *Store) Members(ctx context.Context, inventory map[string]Member) (map[string]Member, error) {
	got, err := s.Client.Get(ctx, s.NodeKey(""), clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	out := maps.Clone(inventory)
	if out == nil {
		out = map[string]Member{}
	}
	for _, kv := range got.Kvs {
		var n Node
		if err := json.Unmarshal(kv.Value, &n); err != nil {
			return nil, fmt.Errorf("etcd key %s: %w", kv.Key, err)
		}
		if _, listed := out[n.Name]; n.Decommissioned {
			delete(out, n.Name)
		} else if !listed {
			out[n.Name] = Member{n.Role, n.Labels}
		}
	}
	return out, nil
}

// Belongs says whether a member belongs to a roster, and, where one that would is left out, why.
type Belongs func(node string, m Member) (yes bool, left string)

// FreezeRoster is the roster at a key: what it was when somebody first asked. A new one has the members that belong.
func (s *Store) FreezeRoster(ctx context.Context, key string, inventory map[string]Member, belongs Belongs) (*Roster, error) {
	got, err := s.Client.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(got.Kvs) > 0 {
		return DecodeRoster(got.Kvs[0].Value)
	}
	members, err := s.Members(ctx, inventory)
	if err != nil {
		return nil, err
	}
	roles, out := map[string]string{}, []string{}
	for node, m := range members {
		yes, left := belongs(node, m)
		if yes {
			roles[node] = GroupOf(m.Role)
		} else if left != "" {
			out = append(out, node+" ("+left+")")
		}
	}
	roster := newRoster(roles)
	roster.Left = slices.Sorted(slices.Values(out))
	done, err := s.Client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, roster.encode())).Else(clientv3.OpGet(key)).Commit()
	if err != nil || done.Succeeded {
		return roster, err
	}
	return DecodeRoster(done.Responses[0].GetResponseRange().Kvs[0].Value) // another node was faster: its list holds
}

// GroupOf is the group in which nodes of a role take turns; nodes without a role share one.
func GroupOf(role string) string {
	if role == "" {
		return "none"
	}
	return role
}

// CanariesDone reports that the canaries of a version are through and were watched long enough, or that they are halted: then nobody
// waits for them.
func (s *Store) CanariesDone(ctx context.Context, v *Version, group string) (bool, error) {
	gate, _, err := s.Gate(ctx, v.Rollout(), group)
	if err != nil || gate.State == Halted {
		return true, err
	}
	got, err := s.Client.Txn(ctx).Then(
		clientv3.OpGet(s.ClosedKey(v.Rollout(), group), clientv3.WithCountOnly()),
		clientv3.OpGet(s.SoakKey(v.Rollout(), group), clientv3.WithCountOnly()),
	).Commit()
	if err != nil {
		return false, err
	}
	return got.Responses[0].GetResponseRange().Count > 0 && got.Responses[1].GetResponseRange().Count == 0, nil
}
