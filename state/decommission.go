package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// GivenUp is what came of a node that was decommissioned.
type GivenUp struct {
	Freed []string  // the claims that it had
	By    string    // who had given it up before, since its last pull; "" is nobody
	At    time.Time // when that was
}

// gone is what is recorded of a node that was given up.
type gone struct {
	By   string    `json:"by"`
	Time time.Time `json:"time"`
}

// Decommission removes a node from the fleet: its lease, its claims and its place in rosters that are not frozen yet. It is
// recorded, and undone by the node's next pull.
func (s *Store) Decommission(ctx context.Context, node, by string, force bool) (GivenUp, error) {
	var n Node
	seen, err := s.read(ctx, s.NodeKey(node), &n)
	if err != nil {
		return GivenUp{}, err
	}
	if seen == 0 {
		return GivenUp{}, s.forget(ctx, node)
	}
	if alive, err := s.Client.Get(ctx, s.AliveKey(node), clientv3.WithCountOnly()); err != nil {
		return GivenUp{}, err
	} else if alive.Count > 0 && !force {
		return GivenUp{}, fmt.Errorf("%s counts as alive, until its lease ends: it may be changing now. Stop it first; if it is surely down: pullet decommission --force %s", node, node)
	}
	var was gone
	if n.Decommissioned { // read behind the node's record, which is compared
		if _, err := s.read(ctx, s.DecommissionedKey(node), &was); err != nil {
			return GivenUp{}, err
		}
	}
	running := n.Running
	n.Decommissioned, n.Running = true, ""
	ops := []clientv3.Op{
		Put(s.NodeKey(node), n), clientv3.OpDelete(s.AliveKey(node)), clientv3.OpDelete(s.key("facts", node)),
		clientv3.OpDelete(s.SeenKey(n.Role, node)), clientv3.OpDelete(s.LiveKey(n.Role, node)),
		Put(s.DecommissionedKey(node), gone{by, time.Now().UTC()}), s.RingOp(),
	}
	if running != "" {
		ops = append(ops, clientv3.OpDelete(s.RunningKey(running, node)))
	}
	ops = append(ops, s.noStatusOps(node)...)
	for range decommissionAttempts {
		held, err := s.heldBy(ctx, node)
		if err != nil {
			return GivenUp{}, err
		}
		conditions := append(s.noneSince(held.revision), clientv3.Compare(clientv3.ModRevision(s.NodeKey(node)), "=", seen))
		done, err := s.Client.Txn(ctx).If(conditions...).Then(append(held.ops, ops...)...).Commit()
		if err != nil {
			return GivenUp{}, err
		}
		if done.Succeeded {
			return GivenUp{held.claims, was.By, was.Time}, nil
		}
	}
	var before gone
	_, err = s.read(ctx, s.DecommissionedKey(node), &before)
	return GivenUp{}, errors.Join(err, &MovedError{"the record of " + node + ", or the fleet's claims,", before.By})
}

// decommissionAttempts are made while other nodes claim places: one that this node made in between would be left behind.
const decommissionAttempts = 10

// claimPrefixes are where nodes claim places.
func (s *Store) claimPrefixes() []string {
	return []string{s.SlotPrefix(""), s.TotalPrefix(), s.SemaphorePrefix(""), s.commandClaims()}
}

// noneSince are the conditions that no claim was made since a revision.
func (s *Store) noneSince(revision int64) []clientv3.Cmp {
	var out []clientv3.Cmp
	for _, prefix := range s.claimPrefixes() {
		out = append(out, clientv3.Compare(clientv3.CreateRevision(prefix), "<", revision+1).WithPrefix())
	}
	return out
}

// noStatusOps remove what is said of a node.
func (s *Store) noStatusOps(node string) []clientv3.Op {
	var ops []clientv3.Op
	for _, c := range Categories() {
		for _, state := range states {
			ops = append(ops, clientv3.OpDelete(s.key("status", c, state, node)))
		}
	}
	return ops
}

// forget removes a machine that was provisioned and never came.
func (s *Store) forget(ctx context.Context, node string) error {
	done, err := s.Client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(s.NodeKey(node)), "=", 0)).Then(s.noStatusOps(node)...).Commit()
	if err != nil {
		return err
	}
	for _, r := range done.Responses {
		if r.GetResponseDeleteRange().Deleted > 0 {
			return nil
		}
	}
	return fmt.Errorf("there is no node %q in this fleet: see pullet status", node)
}

// holdings is what a node has in the fleet's record beside itself.
type holdings struct {
	claims   []string      // slots, semaphores and places of commands, as people read their keys
	ops      []clientv3.Op // that give all of it up
	revision int64         // at which it was read
}

// heldBy finds a node's claims, services, and places in the rosters of the rollout that goes on.
func (s *Store) heldBy(ctx context.Context, node string) (holdings, error) {
	var h holdings
	current, _, err := s.Current(ctx)
	if err != nil {
		return h, err
	}
	rosters := s.RosterKey("none", "")
	if current != nil {
		rosters = s.RosterKey(current.Rollout(), "")
	}
	prefixes := append(s.claimPrefixes(), s.key("service")+"/", rosters)
	var ops []clientv3.Op
	for _, p := range prefixes {
		ops = append(ops, clientv3.OpGet(p, clientv3.WithPrefix()))
	}
	got, err := s.Client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return h, err
	}
	h.revision = got.Header.Revision
	for i, r := range got.Responses {
		for _, kv := range r.GetResponseRange().Kvs {
			key := string(kv.Key)
			switch i {
			case len(prefixes) - 2:
				if LastPart(kv.Key) == node {
					var one Service
					if err := json.Unmarshal(kv.Value, &one); err != nil {
						return h, fmt.Errorf("etcd key %s: %w", key, err)
					}
					name := strings.TrimSuffix(strings.TrimPrefix(key, s.key("service")+"/"), "/"+node)
					h.ops = append(append(h.ops, clientv3.OpDelete(key), s.serviceBell(name)), one.leaveDNS()...)
				}
			case len(prefixes) - 1:
				if roster, err := DecodeRoster(kv.Value); err == nil && roster.Has(node) {
					h.ops = append(h.ops, s.DoneOp(current.Rollout(), LastPart(kv.Key), node, "decommissioned"))
				}
			default:
				var c Claim
				if json.Unmarshal(kv.Value, &c) == nil && c.Node == node {
					h.ops = append(h.ops, clientv3.OpDelete(key))
					if i != 1 {
						h.claims = append(h.claims, key[len(s.prefix):])
					}
				}
			}
		}
	}
	return h, nil
}
