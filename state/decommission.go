package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/authority"
)

// GivenUp is what came of a node that was decommissioned.
type GivenUp struct {
	Freed []string  // the claims that it had
	Began []string  // the targeted steps that it began and whose end is not on record
	By    string    // who had given it up before, since its last pull; "" is nobody
	At    time.Time // when that was
}

// gone is what is recorded of a node that was given up.
type gone struct {
	By   string    `json:"by"`
	Time time.Time `json:"time"`
}

// Decommission removes a node from the fleet: its lease, its claims and its place in rosters that are not frozen yet.
// It is recorded, and undone by the node's next pull. First the node is marked and its registration deleted: claims
// compare that, and it makes none any more. Then what it has is freed, one by one, so that nothing that others do in a
// busy fleet is in the way. Where this is killed in between it is finished by doing it again.
func (s *Nodes) Decommission(ctx context.Context, node, by string, force bool) (GivenUp, error) {
	was, mark, err := s.markGone(ctx, node, by, force)
	if err != nil || mark == 0 {
		return GivenUp{}, err
	}
	var began, freed []string
	if err = s.store.Identities.shutOut(ctx, node); err == nil {
		began, err = haltUnfinished(ctx, s.store, node, mark) // its claims say which groups
	}
	if err == nil {
		freed, err = s.freeAll(ctx, node, mark)
	}
	if err == nil {
		err = errors.Join(s.leaveRuns(ctx, node, mark), s.clear(ctx, node, mark))
	}
	if err != nil {
		return GivenUp{}, fmt.Errorf(
			"%s is decommissioned, but not all that it had is freed: %w; to finish it: pullet decommission %s",
			node,
			err,
			node,
		)
	}
	return GivenUp{freed, began, was.By, was.Time}, nil
}

// decommissionAttempts are made while the node's record moves under the hands of who gives it up.
const decommissionAttempts = 10

// markGone marks a node as given up, unless it is, and ends its registration. It returns who had marked it before, and
// the revision of the mark: 0 for a machine that never came.
func (s *Nodes) markGone(ctx context.Context, node, by string, force bool) (was gone, mark int64, err error) {
	for range decommissionAttempts {
		n, seen, err := s.record(ctx, node)
		if err != nil {
			return was, 0, err
		}
		if seen == 0 {
			if awaited, err := s.awaited(ctx, node); !awaited || err != nil {
				return was, 0, errors.Join(err, s.forget(ctx, node))
			}
		}
		if n.Decommissioned {
			was, mark, err = get[gone](ctx, s.store, s.DecommissionedKey(node))
			if mark != 0 || unlessBad(err) != nil {
				return was, mark, unlessBad(err)
			}
		}
		if !force {
			if err := mayChange(ctx, s.store, node); err != nil {
				return was, 0, err
			}
		}
		ops := append(
			s.clearOps(n),
			clientv3.OpDelete(s.store.Presences.AliveKey(node)),
			clientv3.OpDelete(s.store.Presences.rivalKey(node, ""), clientv3.WithPrefix()),
			Put(s.DecommissionedKey(node), gone{by, time.Now().UTC()}),
			s.store.Bells.RingOp(),
		)
		done, err := s.store.Client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(s.Key(node)), "=", seen)).
			Then(ops...).
			Commit()
		if err != nil {
			return was, 0, err
		}
		if done.Succeeded {
			return was, done.Header.Revision, nil
		}
	}
	return was, 0, &MovedError{What: "the record of " + node}
}

// mayChange is why a node that counts as alive is not given up, and until when it counts so if no pull is at work
// there.
func mayChange(ctx context.Context, s *Store, node string) error {
	alive, err := s.Client.Get(ctx, s.Presences.AliveKey(node))
	if err != nil || len(alive.Kvs) == 0 {
		return err
	}
	times, err := s.Views.leaseTimes(ctx, alive.Kvs[0].Lease)
	if err != nil {
		return err
	}
	return fmt.Errorf(
		"%[1]s counts as alive until its lease ends, at %[2]s unless a pull there renews it: it may be changing now. "+
			"Stop it first, and wait until then; if it is surely down: pullet decommission --force %[1]s",
		node, time.Now().Add(times.Left).Local().Format(time.TimeOnly),
	)
}

// awaited reports a node without a record that the fleet waits for: it has a certificate, the inventory of its version
// lists it, a roster has it, or it put its claim back in a record that was restored.
func (s *Nodes) awaited(ctx context.Context, node string) (bool, error) {
	id, _, err := get[Identity](ctx, s.store, s.store.Identities.key(node))
	if joined := id.Kind == authority.Node; joined || unlessBad(err) != nil {
		return joined, unlessBad(err)
	}
	current, _, err := s.store.Versions.Current(ctx)
	if current == nil || err != nil {
		return false, unlessBad(err)
	}
	listed, _, err := get[Listed](ctx, s.store, s.ListedKey(current.ID))
	if _, yes := listed.roles()[node]; yes || unlessBad(err) != nil {
		return yes, unlessBad(err)
	}
	held, err := s.heldBy(ctx, node)
	return len(held) > 0, err
}

// record is a node's lasting record and its revision, 0 where there is none. Of one that cannot be read only the name
// is known.
func (s *Nodes) record(ctx context.Context, node string) (Node, int64, error) {
	n, seen, err := get[Node](ctx, s.store, s.Key(node))
	if err != nil || seen == 0 {
		n = Node{Name: node}
	}
	return n, seen, unlessBad(err)
}

// clearOps remove what is said of a node, but for its name.
func (s *Nodes) clearOps(n Node) []clientv3.Op {
	running := n.Running
	n.Decommissioned, n.Running = true, ""
	ops := []clientv3.Op{
		Put(s.Key(n.Name), n), clientv3.OpDelete(s.store.key("facts", n.Name)), clientv3.OpDelete(s.SeenKey(n.Role, n.Name)),
		clientv3.OpDelete(s.LiveKey(n.Role, n.Name)),
	}
	if running != "" {
		ops = append(ops, clientv3.OpDelete(s.store.Statuses.RunningKey(running, n.Name)))
	}
	return append(ops, s.noStatusOps(n.Name)...)
}

// clear removes what the node said of itself between its mark and the end of its claims.
func (s *Nodes) clear(ctx context.Context, node string, mark int64) error {
	for range decommissionAttempts {
		n, seen, err := s.record(ctx, node)
		if err != nil {
			return err
		}
		if done, err := s.whileGone(ctx, node, mark, clientv3.Compare(clientv3.ModRevision(s.Key(node)), "=", seen),
			s.clearOps(n)...); done ||
			err != nil {
			return err
		}
	}
	return &MovedError{What: "the record of " + node}
}

// whileGone does something about a node as long as it is given up, if a condition holds, and reports that it did.
func (s *Nodes) whileGone(
	ctx context.Context,
	node string,
	mark int64,
	condition clientv3.Cmp,
	ops ...clientv3.Op,
) (bool, error) {
	key := s.DecommissionedKey(node)
	done, err := s.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", mark), condition).
		Then(ops...).
		Else(clientv3.OpGet(key, clientv3.WithKeysOnly())).Commit()
	if err != nil || done.Succeeded {
		return err == nil, err
	}
	for _, kv := range done.Responses[0].GetResponseRange().Kvs {
		if kv.ModRevision == mark {
			return false, nil
		}
	}
	return false, &MovedError{"the record of " + node, node}
}

// freeAll frees what a node has, and names its claims as people read their keys.
func (s *Nodes) freeAll(ctx context.Context, node string, mark int64) (freed []string, err error) {
	held, err := s.heldBy(ctx, node)
	if err != nil {
		return nil, err
	}
	for _, h := range held {
		done, err := s.whileGone(
			ctx,
			node,
			mark,
			clientv3.Compare(clientv3.CreateRevision(h.key), "=", h.fence),
			append(h.ops, s.store.Bells.RingOp())...)
		if err != nil {
			return freed, err
		}
		if done && h.claim {
			freed = append(freed, h.key[len(s.store.prefix):])
		}
	}
	return freed, nil
}

// claimPrefixes are where nodes claim places.
func (s *Nodes) claimPrefixes() []string {
	return []string{
		s.store.Rollouts.SlotPrefix(""), s.store.Rollouts.TotalPrefix(), s.store.Steps.SemaphorePrefix(""),
		s.store.Commands.claims(),
	}
}

// noStatusOps remove what is said of a node.
func (s *Nodes) noStatusOps(node string) []clientv3.Op {
	ops := []clientv3.Op{clientv3.OpDelete(s.store.Statuses.lostKey(node))}
	for _, c := range Categories() {
		for _, state := range states {
			ops = append(ops, clientv3.OpDelete(s.store.key("status", c, state, node)))
		}
	}
	return ops
}

// forget removes a machine that was provisioned and never came.
func (s *Nodes) forget(ctx context.Context, node string) error {
	done, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.Key(node)), "=", 0)).
		Then(s.noStatusOps(node)...).
		Commit()
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

// holding is something that a node has in the fleet's record beside itself.
type holding struct {
	key   string
	fence int64         // the revision at which the key was created
	claim bool          // a slot, a semaphore or a place of a command
	ops   []clientv3.Op // that give it up
}

// heldBy finds a node's claims, services, and places in the rosters of the rollout that goes on.
func (s *Nodes) heldBy(ctx context.Context, node string) ([]holding, error) {
	current, _, err := s.store.Versions.Current(ctx)
	if unlessBad(err) != nil {
		return nil, err
	}
	rosters := s.store.Rosters.Key("none", "")
	if current != nil {
		rosters = s.store.Rosters.Key(current.Rollout(), "")
	}
	prefixes := append(s.claimPrefixes(), s.store.Services.prefix(), rosters)
	var ops []clientv3.Op
	for _, p := range prefixes {
		ops = append(ops, clientv3.OpGet(p, clientv3.WithPrefix()))
	}
	got, err := s.store.Client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, err
	}
	var out []holding
	for i, r := range got.Responses {
		for _, kv := range r.GetResponseRange().Kvs {
			key := string(kv.Key)
			h := holding{key: key, fence: kv.CreateRevision}
			switch i {
			case len(prefixes) - 2:
				if k, err := s.store.Key(kv); err == nil && k.Node == node {
					one, _ := Read[Service](s.store, kv) // one that cannot be read goes, too
					h.ops = append([]clientv3.Op{clientv3.OpDelete(key), s.store.Services.bell(k.Service)}, one.leaveDNS()...)
				}
			case len(prefixes) - 1:
				if roster, err := s.store.Rosters.read(kv); err == nil && roster.Has(node) {
					k, _ := s.store.Key(kv)
					h.ops = []clientv3.Op{s.store.Rollouts.DoneOp(current.Rollout(), k.Group, node, "decommissioned")}
				}
			default:
				if c, err := Read[Claim](s.store, kv); err == nil && c.Node == node {
					h.claim, h.ops = prefixes[i] != s.store.Rollouts.TotalPrefix(), []clientv3.Op{clientv3.OpDelete(key)}
				}
			}
			if len(h.ops) > 0 {
				out = append(out, h)
			}
		}
	}
	return out, nil
}
