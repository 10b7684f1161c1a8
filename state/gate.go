package state

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// AliveKey is the key on a node's lease.
func (s *Store) AliveKey(node string) string { return s.key("alive", node) }

// RingOp wakes the nodes that wait.
func (s *Store) RingOp() clientv3.Op {
	return clientv3.OpPut(s.BellKey(), strconv.FormatInt(time.Now().UnixNano(), 36))
}

// Gate is the gate of a group in a version, open unless something was said, and its revision.
func (s *Store) Gate(ctx context.Context, version, group string) (Gate, int64, error) {
	g := Gate{State: "open"}
	rev, err := s.read(ctx, s.GateKey(version, group), &g)
	return g, rev, err
}

// GateOp writes a gate.
func (s *Store) GateOp(version, group string, g Gate) clientv3.Op {
	return put(s.GateKey(version, group), g)
}

// Listen waits until the bell rings after a revision, or for as long as a poll takes; false when ctx ends first.
func (s *Store) Listen(ctx context.Context, after int64, poll time.Duration) bool {
	watch, cancel := context.WithTimeout(ctx, poll)
	defer cancel()
	var from []clientv3.OpOption
	if after > 0 { // 0: nothing could be read, and what is to come counts
		from = append(from, clientv3.WithRev(after+1))
	}
	select {
	case <-s.Client.Watch(watch, s.BellKey(), from...):
	case <-watch.Done():
	}
	return ctx.Err() == nil
}

// FreezeRoster is the list of a group's nodes in a version: what it was when somebody first asked. The inventory's nodes of the role
// belong to it, seen or not, and every registered node outside the inventory.
func (s *Store) FreezeRoster(ctx context.Context, version, group string, inventory map[string]string) ([]string, error) {
	key := s.RosterKey(version, group)
	var roster []string
	if rev, err := s.read(ctx, key, &roster); err != nil || rev != 0 {
		return roster, err
	}
	nodes, err := s.Client.Get(ctx, s.NodeKey(""), clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	gone := map[string]bool{}
	roster = []string{}
	for _, kv := range nodes.Kvs {
		var n Node
		if err := json.Unmarshal(kv.Value, &n); err != nil {
			return nil, fmt.Errorf("etcd key %s: %w", kv.Key, err)
		}
		gone[n.Name] = n.Decommissioned
		if _, listed := inventory[n.Name]; !listed && GroupOf(n.Role) == group && !n.Decommissioned {
			roster = append(roster, n.Name)
		}
	}
	for node, role := range inventory {
		if GroupOf(role) == group && !gone[node] {
			roster = append(roster, node)
		}
	}
	slices.Sort(roster)
	if _, err := s.Client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(put(key, roster)).Commit(); err != nil {
		return nil, err
	}
	_, err = s.read(ctx, key, &roster) // another node may have been faster: its list holds
	return roster, err
}

// GroupOf is the group in which nodes of a role take turns; nodes without a role share one.
func GroupOf(role string) string {
	if role == "" {
		return "none"
	}
	return role
}

// AwaitOther returns nil as soon as the fleet's version is another than the given one, or why it cannot tell any more.
func (s *Store) AwaitOther(ctx context.Context, version string) error {
	for {
		v, rev, err := s.Current(ctx)
		if err != nil {
			return err
		}
		if v != nil && v.ID != version {
			return nil
		}
		watch, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		select {
		case <-s.Client.Watch(watch, s.CurrentKey(), clientv3.WithRev(rev+1)):
		case <-time.After(time.Minute): // a watch is never trusted alone
		case <-ctx.Done():
		}
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
