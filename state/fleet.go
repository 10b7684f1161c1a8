package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Node is a node's lasting record.
type Node struct {
	Name           string            `json:"name"`
	Labels         map[string]string `json:"labels,omitempty"`
	Role           string            `json:"role,omitempty"`
	Running        string            `json:"running,omitempty"` // the version under running_version
	FirstSeen      time.Time         `json:"firstSeen"`
	LastSeen       time.Time         `json:"lastSeen"`
	Agent          string            `json:"agent"` // version of pullet
	Decommissioned bool              `json:"decommissioned,omitempty"`
}

// Alive is the record on a node's lease.
type Alive struct {
	Instance string `json:"instance"` // of the process
	Owner    string `json:"owner"`    // digest of the state directory's secret
}

// Status is what is said of a node in one category.
type Status struct {
	Version string    `json:"version"`
	Release string    `json:"release,omitempty"`
	Run     string    `json:"run,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Clear   string    `json:"clear,omitempty"` // the command that helps
	Time    time.Time `json:"time"`
}

// Categories and states of a status: a node is in exactly one state of each category.
const (
	Provisioned = "provisioned"
	Configured  = "configured"
	Validated   = "validated"
	Rollout     = "rollout"

	Running = "running"
	Success = "success"
	Failed  = "failed"
	Pending = "pending"
)

// Categories lists the categories in the order in which a node goes through them.
func Categories() []string { return []string{Provisioned, Configured, Validated, Rollout} }

var states = [...]string{Running, Success, Failed, Pending}

// Current is the fleet's version, nil when none was ever set, and the revision at which it was.
func (s *Store) Current(ctx context.Context) (*Version, int64, error) {
	var v Version
	rev, err := s.read(ctx, s.CurrentKey(), &v)
	if rev == 0 {
		return nil, 0, err
	}
	return &v, rev, err
}

// CurrentKey is the key of the fleet's version, for watches and comparisons.
func (s *Store) CurrentKey() string { return s.key("current_version") }

// Propose sets the fleet's version if it is still the one that was read at a revision; false means that another node was faster.
func (s *Store) Propose(ctx context.Context, v Version, seen int64) (bool, error) {
	done, err := s.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(s.CurrentKey()), "=", seen)).
		Then(put(s.CurrentKey(), v), s.RingOp()).Commit()
	if err != nil {
		return false, err
	}
	return done.Succeeded, nil
}

// BellKey is the one key that waiting nodes watch: it is written whenever something changed that a node may wait for.
func (s *Store) BellKey() string { return s.key("bell") }

// Presence is a node's registration with its lease.
type Presence struct {
	Node     Node
	Lease    clientv3.LeaseID
	Key      string // alive/<node>
	Revision int64  // at which Key was written: comparing it proves that the lease lives
}

// NameTakenError says that another host runs under this node's name.
type NameTakenError struct{ Node string }

func (e *NameTakenError) Error() string {
	return fmt.Sprintf("another host runs as node %q: give this one a name of its own (node.name in pullet.yaml); "+
		"if this host replaces it, run: pullet decommission %s", e.Node, e.Node)
}

// Register writes the node's record and facts, and its lease of ttl. It fails with a *NameTakenError while another state directory
// holds the name.
func (s *Store) Register(ctx context.Context, n Node, owner Alive, facts any, ttl time.Duration) (*Presence, error) {
	lease, err := s.Client.Grant(ctx, int64(ttl.Seconds()))
	if err != nil {
		return nil, err
	}
	key := s.AliveKey(n.Name)
	for {
		var holder Alive
		seen, err := s.read(ctx, key, &holder)
		if err != nil {
			return nil, err
		}
		if seen != 0 && holder.Owner != owner.Owner {
			return nil, &NameTakenError{n.Name}
		}
		var old Node
		nodeSeen, err := s.read(ctx, s.NodeKey(n.Name), &old)
		if err != nil {
			return nil, err
		}
		n.FirstSeen, n.Running = n.LastSeen, old.Running
		if nodeSeen != 0 {
			n.FirstSeen = old.FirstSeen
		}
		done, err := s.Client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(key), "=", seen), clientv3.Compare(clientv3.ModRevision(s.NodeKey(n.Name)), "=", nodeSeen)).
			Then(put(key, owner, clientv3.WithLease(lease.ID)), put(s.NodeKey(n.Name), n), put(s.key("facts", n.Name), facts),
				clientv3.OpDelete(s.DecommissionedKey(n.Name))).Commit()
		if err != nil {
			return nil, err
		}
		if done.Succeeded {
			return &Presence{n, lease.ID, key, done.Header.Revision}, nil
		}
	}
}

// Relabel changes the labels in a node's record.
func (s *Store) Relabel(ctx context.Context, p *Presence, labels map[string]string) error {
	p.Node.Labels, p.Node.Role = labels, labels["role"]
	_, err := s.Client.Txn(ctx).Then(put(s.NodeKey(p.Node.Name), p.Node)).Commit()
	return err
}

// DecommissionedKey is there while a node is given up: it stops to count also where rosters name it.
func (s *Store) DecommissionedKey(node string) string { return s.key("decommissioned", node) }

// NodeKey is the key of a node's lasting record.
func (s *Store) NodeKey(node string) string { return s.key("node", node) }

// KeepAlive renews the lease until ctx ends.
func (s *Store) KeepAlive(ctx context.Context, p *Presence) error {
	renewals, err := s.Client.KeepAlive(ctx, p.Lease)
	if err != nil {
		return err
	}
	go func() {
		for range renewals { // the client sends the next one only when the last was read
		}
	}()
	return nil
}

// StatusOps move a node to a state of a category, out of every other one.
func (s *Store) StatusOps(node, category, state string, st Status) []clientv3.Op {
	ops := []clientv3.Op{put(s.key("status", category, state, node), st)}
	for _, other := range states {
		if other != state {
			ops = append(ops, clientv3.OpDelete(s.key("status", category, other, node)))
		}
	}
	return ops
}

// SetStatus moves a node to a state of a category.
func (s *Store) SetStatus(ctx context.Context, node, category, state string, st Status) error {
	_, err := s.Client.Txn(ctx).Then(s.StatusOps(node, category, state, st)...).Commit()
	return err
}

// RunningOps move a node's leaf below running_version to a version.
func (s *Store) RunningOps(p *Presence, to string) []clientv3.Op {
	n := p.Node
	from := n.Running
	n.Running = to
	ops := []clientv3.Op{
		clientv3.OpPut(s.RunningKey(to, n.Name), time.Now().UTC().Format(time.RFC3339)), put(s.NodeKey(n.Name), n),
	}
	if from != "" && from != to {
		ops = append(ops, clientv3.OpDelete(s.RunningKey(from, n.Name)))
	}
	return ops
}

// RunningKey is the leaf that says that a node runs a version.
func (s *Store) RunningKey(version, node string) string {
	return s.key("running_version", version, node)
}

// Resume opens the halted gates of the current version, of one group or of all for "". It is recorded with who did it, and reports the
// groups.
func (s *Store) Resume(ctx context.Context, group, by string) ([]string, error) {
	o, err := s.Overview(ctx, false)
	if err != nil {
		return nil, err
	}
	var opened []string
	for name, g := range o.Gates {
		if g.State != Halted || group != "" && name != group {
			continue
		}
		key := s.GateKey(o.Current.ID, name)
		still := clientv3.Compare(clientv3.ModRevision(key), "<", o.Revision+1)
		done, err := s.Client.Txn(ctx).If(still).Then(put(key, Gate{State: "open", Resumed: by}), s.RingOp()).Commit()
		if err == nil && !done.Succeeded {
			err = fmt.Errorf("role %s moved just now: look at pullet status and try again", name)
		}
		if err != nil {
			return opened, err
		}
		opened = append(opened, name)
	}
	slices.Sort(opened)
	return opened, nil
}

// Decommission removes a node from the fleet: its lease, its claims and its place in rosters that are not frozen yet. It is
// recorded, and undone by the node's next pull. It reports the claims that were freed.
func (s *Store) Decommission(ctx context.Context, node, by string, force bool) ([]string, error) {
	var n Node
	seen, err := s.read(ctx, s.NodeKey(node), &n)
	if err != nil {
		return nil, err
	}
	if seen == 0 {
		return nil, fmt.Errorf("there is no node %q in this fleet: see pullet status", node)
	}
	if alive, err := s.Client.Get(ctx, s.AliveKey(node), clientv3.WithCountOnly()); err != nil {
		return nil, err
	} else if alive.Count > 0 && !force {
		return nil, fmt.Errorf("%s counts as alive, until its lease ends: it may be changing now. Stop it first; if it is surely down: pullet decommission --force %s", node, node)
	}
	running := n.Running
	n.Decommissioned, n.Running = true, ""
	ops := []clientv3.Op{
		put(s.NodeKey(node), n), clientv3.OpDelete(s.AliveKey(node)), clientv3.OpDelete(s.key("facts", node)),
		put(s.DecommissionedKey(node), map[string]any{"by": by, "time": time.Now().UTC()}), s.RingOp(),
	}
	if running != "" {
		ops = append(ops, clientv3.OpDelete(s.RunningKey(running, node)))
	}
	for _, c := range Categories() {
		for _, state := range states {
			ops = append(ops, clientv3.OpDelete(s.key("status", c, state, node)))
		}
	}
	slots, err := s.Client.Get(ctx, s.SlotPrefix(""), clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	services, err := s.Client.Get(ctx, s.key("service")+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	for _, kv := range services.Kvs {
		if LastPart(kv.Key) == node {
			ops = append(ops, clientv3.OpDelete(string(kv.Key)))
		}
	}
	// No claim is made or moved in between: one of this node would be left behind.
	still := clientv3.Compare(clientv3.ModRevision(s.SlotPrefix("")), "<", slots.Header.Revision+1)
	conditions := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(s.NodeKey(node)), "=", seen), still.WithPrefix()}
	var freed []string
	for _, kv := range slots.Kvs {
		var c Claim
		if json.Unmarshal(kv.Value, &c) == nil && c.Node == node {
			freed = append(freed, string(kv.Key[len(s.prefix):]))
			ops = append(ops, clientv3.OpDelete(string(kv.Key)))
		}
	}
	done, err := s.Client.Txn(ctx).If(conditions...).Then(ops...).Commit()
	if err == nil && !done.Succeeded {
		err = errors.New("the fleet's slots moved just now: try again")
	}
	return freed, err
}

// SlotPrefix is where the claims of a group are; of all groups for "".
func (s *Store) SlotPrefix(group string) string {
	if group == "" {
		return s.key("slot") + "/"
	}
	return s.key("slot", group) + "/"
}

// Claim is the value of a slot: who changes now, and for which version. It has no lease; its create revision is the fence.
type Claim struct {
	Node    string    `json:"node"`
	Version string    `json:"version"`
	Release string    `json:"release,omitempty"`
	Since   time.Time `json:"since"`
}
