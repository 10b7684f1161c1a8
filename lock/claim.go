package lock

import (
	"context"
	"path"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// ownClaim is the claim that a node holds.
type ownClaim struct {
	store *state.Store
	req   *Request
	pool  *pool
	held  heldPlace

	gate    *state.Gate // as it was when the claim was made, at revision gateRev
	gateRev int64
}

// heldPlace is what a node holds. It is set and cleared as a whole.
type heldPlace struct {
	key    string // "" while there is none
	fence  int64
	total  string   // the key of the second claim, for the limit of the whole fleet
	groups []string // that the node left since it made the claim
	step   string   // that it started last under it
	// as which the node held the place before, for a move to a version that failed; nil: it did not
	before *state.Claim
}

// check reports whether the node may go on with a step under its claim: nil, ErrFenced, state.ErrLeaseLost,
// ErrSuperseded when the fleet moved on to another version, or why the store could not tell. The step is named for
// those that wait.
func (c *ownClaim) check(ctx context.Context, step string) error {
	if c.store.Presences.CutOff(c.req.Presence) {
		return state.ErrLeaseLost
	}
	c.held.step = step
	for {
		conditions := append(c.conditions(), c.req.Presence.Lives())
		if c.pool.follows {
			conditions = append(
				conditions,
				clientv3.Compare(clientv3.ModRevision(c.store.Versions.CurrentKey()), "=", c.req.VersionRev),
			)
		}
		done, err := c.store.Client.Txn(ctx).If(conditions...).Then(state.Put(c.held.key, c.value(step))).
			Else(
				clientv3.OpGet(c.held.key, clientv3.WithKeysOnly()),
				clientv3.OpGet(c.req.Presence.Key, clientv3.WithKeysOnly()),
			).Commit()
		if err != nil || done.Succeeded {
			return err
		}
		if kvs := done.Responses[0].GetResponseRange().Kvs; len(kvs) == 0 || kvs[0].CreateRevision != c.held.fence {
			return ErrFenced
		}
		if revisionOf(done.Responses[1].GetResponseRange().Kvs) != c.req.Presence.Revision {
			return state.ErrLeaseLost
		}
		if c.req.VersionRev, err = superseded(ctx, c.store, c.req); err != nil { // else the version has a new record
			return err
		}
	}
}

// place is the place that the node holds, for its own record; nil without a claim.
func (c *ownClaim) place() *state.HeldPlace {
	me := c.req.Presence.Node
	member := &state.Member{Role: me.Role, Labels: me.Labels}
	switch {
	case c.held.key == "":
		return nil
	case c.pool.step != "":
		return &state.HeldPlace{Step: state.StepHash(c.pool.step), Claim: c.value(c.pool.step), Member: member}
	case c.pool.run != "":
		return &state.HeldPlace{Run: c.pool.run, Claim: c.value(c.held.step), Member: member}
	}
	return &state.HeldPlace{Group: c.pool.group, Claim: c.value(c.held.step), Member: member}
}

// value is the claim as the node writes it at a step.
func (c *ownClaim) value(step string) state.Claim {
	q := c.req
	return state.Claim{
		Node: q.node(), Version: q.Version.ID, Release: q.Version.Release, Rollout: q.rollout(), Step: step,
		Since: time.Now().UTC(), Groups: c.held.groups, Before: c.held.before,
		Reaction: q.Reaction,
	}
}

// releaseOps release the claim.
func (c *ownClaim) releaseOps() []clientv3.Op {
	if c.held.key == "" {
		return nil
	}
	if c.held.before != nil { // what the move to a version left
		ops := []clientv3.Op{state.Put(c.held.key, c.held.before), c.store.Bells.RingOp()}
		if c.held.before.Idle && c.held.total != "" { // it had none in the fleet
			ops = append(ops, clientv3.OpDelete(c.held.total))
		}
		return ops
	}
	mark := c.pool.marks + path.Base(c.held.key)
	// of another one where a run that was killed left it
	if place, ofGroup := strings.CutPrefix(c.held.key, c.store.Rollouts.SlotPrefix("")); ofGroup {
		mark = c.store.Rollouts.MarkPrefix("") + place
	}
	ops := []clientv3.Op{clientv3.OpDelete(c.held.key), clientv3.OpDelete(mark), c.store.Bells.RingOp()}
	if c.held.total != "" {
		ops = append(ops, clientv3.OpDelete(c.held.total))
	}
	return ops
}

// releaseTotalOps release the node's place in the total and keep its place in the group: a broken host must not keep
// other groups waiting.
func (c *ownClaim) releaseTotalOps() []clientv3.Op {
	if c.held.key == "" {
		return nil
	}
	idle := c.value(c.held.step)
	idle.Idle = true
	ops := []clientv3.Op{state.Put(c.held.key, idle)}
	if c.held.total != "" {
		ops = append(ops, clientv3.OpDelete(c.held.total))
	}
	return ops
}

// conditions hold while the node holds its claim. Without a claim they hold while the node's lease lives.
func (c *ownClaim) conditions() []clientv3.Cmp {
	if c.held.key == "" {
		return []clientv3.Cmp{c.req.Presence.Lives()}
	}
	return []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(c.held.key), "=", c.held.fence)}
}

// lostError says why the conditions do not hold.
func (c *ownClaim) lostError() error {
	if c.held.key == "" {
		return state.ErrLeaseLost
	}
	return ErrFenced
}

// write does what only the holder may.
func (c *ownClaim) write(ctx context.Context, ops []clientv3.Op) error {
	done, err := c.store.Client.Txn(ctx).If(c.conditions()...).Then(ops...).Commit()
	if err == nil && !done.Succeeded {
		err = c.lostError()
	}
	return err
}

func (c *ownClaim) release(ctx context.Context, more ...clientv3.Op) error {
	if c.held.key == "" && len(more) == 0 {
		return nil
	}
	err := again(ctx, c.req.node(), func() error {
		_, err := c.store.Client.Txn(ctx).If(c.conditions()...).Then(append(c.releaseOps(), more...)...).Commit()
		return err
	})
	if err == nil {
		c.forget()
	}
	return err
}

// forget clears a claim that was released.
func (c *ownClaim) forget() { c.held = heldPlace{} }

// adopt reads the group's gate and adopts a claim, in any group, that a killed run left behind.
func (c *ownClaim) adopt(ctx context.Context) (gate state.Gate, gateRev int64, err error) {
	if seen := c.gate; seen != nil &&
		c.held.key != "" { // this process made the claim: it left nothing since, and knows the gate
		c.gate = nil
		return *seen, c.gateRev, nil
	}
	s := c.store
	gate.State = "open"
	got, err := s.Client.Txn(ctx).Then(clientv3.OpGet(s.Rollouts.GateKey(c.req.rollout(), c.req.Rules.Group)),
		clientv3.OpGet(s.Rollouts.SlotPrefix(""), clientv3.WithPrefix()),
		clientv3.OpGet(s.Rollouts.TotalPrefix(), clientv3.WithPrefix())).
		Commit()
	if err != nil {
		return gate, 0, err
	}
	kvs := got.Responses[0].GetResponseRange().Kvs
	if len(kvs) > 0 {
		_, gate = s.Rollouts.ReadGate(kvs[0])
	}
	for i := range 2 {
		for _, kv := range got.Responses[1+i].GetResponseRange().Kvs {
			switch {
			case s.Rollouts.ReadClaim(kv).Node != c.req.node():
			case i == 0 && c.held.key == "":
				c.held.key, c.held.fence = string(kv.Key), kv.CreateRevision
			case i == 1 && c.held.key != "":
				c.held.total = string(kv.Key)
			}
		}
	}
	return gate, revisionOf(kvs), err
}
