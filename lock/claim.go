package lock

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// claim commits the admission if nothing moved: the place is free (or the node's own), no other was claimed, the gates,
// the switches and the version are as they were read, and the lease lives. A claim for the same version is retried
// whatever the gates say.
func (t *Turn) claim(ctx context.Context, r *reading, d Decision) error {
	if t.req.Parked && r.view.late() {
		_, err := t.setClock(ctx, r, r.view.parked(t.req.node()+" waits in mid-run for others (pullet status)"))
		return cmp.Or(err, ErrMoved)
	}
	key, fence := t.claims+strconv.Itoa(d.Index), r.fences[d.Index]
	retried := fence != 0 && r.view.Claims[d.Index].Rollout == t.req.rollout()
	ops, gate, err := t.claimOps(ctx, r, d, key)
	if err != nil {
		return err
	}
	done, err := t.store.Client.Txn(ctx).If(t.unmoved(r, d, key, fence, retried)...).Then(ops...).Commit()
	if err != nil {
		return err
	}
	if !done.Succeeded {
		return ErrMoved
	}
	t.req.Presence.Claims(done.Header.Revision)
	if fence == 0 {
		fence = done.Header.Revision
	}
	if t.seen, t.seenRev = &r.view.Gate, r.gateRev; gate != nil {
		t.seen, t.seenRev = gate, done.Header.Revision
	}
	t.taken = taken{key: key, fence: fence, groups: r.view.Claims[d.Index].Groups, at: t.step}
	t.queued, t.ticketed, t.since, t.said = false, false, time.Time{}, ""
	if i, holds := r.view.own(r.view.Totals); holds {
		t.total = t.store.TotalPrefix() + strconv.Itoa(i)
	} else if d.Total >= 0 {
		t.total = t.store.TotalPrefix() + strconv.Itoa(d.Total)
	}
	if t.restarted(r, done.Header) && !retried { // what it looked at may be forgotten
		return cmp.Or(t.Release(ctx), ErrMoved)
	}
	return nil
}

// unmoved are the conditions of a claim.
func (t *Turn) unmoved(r *reading, d Decision, key string, fence int64, retried bool) []clientv3.Cmp {
	out := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(key), "=", fence),
		t.lives(),
	}
	if t.follows {
		out = append(out, clientv3.Compare(clientv3.ModRevision(t.store.CurrentKey()), "=", t.req.VersionRev))
	}
	if fence == 0 { // of two that count the same nodes, and find room for one, one is admitted
		none := clientv3.Compare(clientv3.CreateRevision(t.claims), "<", r.revision+1)
		out = append(out, none.WithPrefix())
	}
	if d.Total >= 0 {
		if _, holds := r.view.own(r.view.Totals); !holds {
			out = append(
				out,
				clientv3.Compare(clientv3.CreateRevision(t.store.TotalPrefix()+strconv.Itoa(d.Total)), "=", 0),
			)
		}
	}
	if !retried {
		out = append(out, r.moved...)
	}
	return out
}

// claimOps are the writes of a claim, and the gate where it is among them.
func (t *Turn) claimOps(ctx context.Context, r *reading, d Decision, key string) ([]clientv3.Op, *state.Gate, error) {
	q := t.req
	value := t.claimed(t.step)
	value.Groups = r.view.Claims[d.Index].Groups
	ops := []clientv3.Op{
		state.Put(key, value), clientv3.OpDelete(t.ticket), clientv3.OpPut(t.store.ClaimedKey(q.node()), ""),
		clientv3.OpPut(t.marks+strconv.Itoa(d.Index), q.node(), clientv3.WithLease(q.Presence.Lease)),
	}
	if d.Total >= 0 {
		ops = append(ops, state.Put(t.store.TotalPrefix()+strconv.Itoa(d.Total), value))
	}
	if t.slots {
		ops = append(ops, clientv3.OpPut(t.store.BegunKey(q.rollout(), t.gate), ""))
		ops = append(ops, t.store.StatusOps(q.node(), state.Rollout, state.Running, q.status(""))...)
		ops = append(ops, t.store.BeginOp(q.Presence, q.status(state.InRun)))
	}
	if !r.view.Timed || r.view.Gate.Clock && !r.view.late() { // else it passed while nobody was there to be late
		return ops, nil, nil
	}
	clock, err := t.wind(ctx) // the first that is admitted sets the progress deadline going
	if err != nil {
		return nil, nil, err
	}
	gate := r.view.Gate
	gate.Clock = true
	return append(ops, clock, t.gateOp(gate)), &gate, nil
}

// wind writes the progress deadline anew.
func (t *Turn) wind(ctx context.Context) (clientv3.Op, error) {
	lease, err := t.store.Client.Grant(ctx, int64(t.req.Rules.Deadline.Seconds()))
	if err != nil {
		return clientv3.Op{}, err
	}
	return clientv3.OpPut(t.store.ClockKey(t.req.rollout(), t.gate), "", clientv3.WithLease(lease.ID)), nil
}

// Check reports whether the node may go on with a step under its claim: nil, ErrFenced, state.ErrLeaseLost,
// ErrSuperseded when the fleet moved on to another version, or why the store could not tell. The step is named for
// those that wait.
func (t *Turn) Check(ctx context.Context, step string) error {
	if t.store.CutOff(t.req.Presence) {
		return state.ErrLeaseLost
	}
	t.at = step
	for {
		conditions := append(t.holding(), t.lives())
		if t.follows {
			conditions = append(
				conditions,
				clientv3.Compare(clientv3.ModRevision(t.store.CurrentKey()), "=", t.req.VersionRev),
			)
		}
		done, err := t.store.Client.Txn(ctx).If(conditions...).Then(state.Put(t.key, t.claimed(step))).
			Else(clientv3.OpGet(t.key, clientv3.WithKeysOnly()), clientv3.OpGet(t.req.Presence.Key, clientv3.WithKeysOnly())).
			Commit()
		if err != nil || done.Succeeded {
			return err
		}
		if kvs := done.Responses[0].GetResponseRange().Kvs; len(kvs) == 0 || kvs[0].CreateRevision != t.fence {
			return ErrFenced
		}
		if revisionOf(done.Responses[1].GetResponseRange().Kvs) != t.req.Presence.Revision {
			return state.ErrLeaseLost
		}
		if t.req.VersionRev, err = superseded(ctx, t.store, t.req); err != nil { // else only what is said of the version is new
			return err
		}
	}
}

func (t *Turn) lives() clientv3.Cmp {
	return t.req.Presence.Lives()
}

// freeOps give the claim back.
func (t *Turn) freeOps() []clientv3.Op {
	if t.key == "" {
		return nil
	}
	mark := t.marks + path.Base(t.key)
	if place, ofGroup := strings.CutPrefix(t.key, t.store.SlotPrefix("")); ofGroup { // of another one where a run that was killed left it
		mark = t.store.MarkPrefix("") + place
	}
	ops := []clientv3.Op{clientv3.OpDelete(t.key), clientv3.OpDelete(mark), t.store.RingOp()}
	if t.total != "" {
		ops = append(ops, clientv3.OpDelete(t.total))
	}
	return ops
}

// holding are the conditions of what only a holder writes; without a claim, a node that lives may.
func (t *Turn) holding() []clientv3.Cmp {
	if t.key == "" {
		return []clientv3.Cmp{t.lives()}
	}
	return []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(t.key), "=", t.fence)}
}

// Release gives the claim back and records nothing else. One that was taken back already is no error.
func (t *Turn) Release(ctx context.Context) error { return t.free(ctx) }

func (t *Turn) free(ctx context.Context, more ...clientv3.Op) error {
	if t.key == "" && len(more) == 0 {
		return nil
	}
	err := again(ctx, t.req.node(), func() error {
		_, err := t.store.Client.Txn(ctx).If(t.holding()...).Then(append(t.freeOps(), more...)...).Commit()
		return err
	})
	if err == nil {
		t.drop()
	}
	return err
}

// drop forgets the claim, which is given back.
func (t *Turn) drop() { t.taken = taken{} }

// again does something whose outcome an error leaves open, and which may be done twice, until there is an answer or ctx
// ends.
func again(ctx context.Context, node string, do func() error) error {
	for attempt := 0; ; attempt++ {
		err := do()
		if err == nil || final(err) ||
			!sleep(ctx, jitter(node, attempt, min(5*time.Second, 50*time.Millisecond<<min(attempt, 7)))) {
			return err
		}
	}
}

// final reports an error that stays the same however often it is tried.
func final(err error) bool {
	return errors.Is(err, ErrFenced) || errors.Is(err, state.ErrLeaseLost) || errors.Is(err, state.ErrTooLarge)
}

// without is a list less one of its items.
func without(list []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == one })
}
