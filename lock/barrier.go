package lock

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Steps are the gates inside a node's run in one rollout, where its steps meet those of other nodes. Its methods are
// safe for concurrent use.
type Steps struct {
	store *state.Store
	req   *Request
}

// NewSteps returns the gates inside the run of a request.
func NewSteps(store *state.Store, req Request) *Steps { return &Steps{store, &req} }

// Step is a step that several nodes take together.
type Step struct {
	ID      string        // as people read it
	Once    bool          // its result is the fleet's, and not the version's
	Stage   string        // of the rollout: a barrier spans one
	Members state.Belongs // who takes part

	Repeatable bool // it may run again where its end is not on record
}

func (s *Steps) key(step Step, parts ...string) string {
	return s.store.Steps.Key(s.req.rollout(), state.StepHash(step.ID+"\x00"+step.Stage), parts...)
}

// The ways to arrive at a barrier.
const (
	Done    = "done"
	Skipped = "skipped"
	Failed  = "failed"
	Faulty  = "failed by a fault of the host"
)

// Arrive records that the node came to a barrier, and how. The last arrival opens the barrier in the same transaction:
// every arrival writes a key whose version etcd counts. A node outside the frozen roster does not count. Arrive reports
// whether the barrier is open.
func (s *Steps) Arrive(ctx context.Context, step Step, how string) (open bool, err error) {
	roster, err := s.roster(ctx, step)
	if err != nil {
		return false, err
	}
	b := &barrier{steps: s, step: step}
	if !roster.Has(s.req.node()) {
		return b.isOpen(ctx)
	}
	err = again(ctx, s.req.node(), func() (err error) {
		open, err = b.arrive(ctx, roster, how)
		return err
	})
	return open, err
}

// barrier is a step at which all nodes of a roster wait for each other.
type barrier struct {
	steps *Steps
	step  Step
}

func (b *barrier) key(parts ...string) string { return b.steps.key(b.step, parts...) }

func (b *barrier) isOpen(ctx context.Context) (bool, error) {
	got, err := b.steps.store.Client.Get(ctx, b.key("open"), clientv3.WithCountOnly())
	return err == nil && got.Count > 0, err
}

// arrive makes one attempt.
func (b *barrier) arrive(ctx context.Context, roster *state.Roster, how string) (bool, error) {
	own, count, bad, open := b.key("in", b.steps.req.node()), b.key("count"), b.key("bad"), b.key("open")
	none := clientv3.Compare(clientv3.CreateRevision(bad+"/"), "=", 0) // of a whole prefix: none of it is there
	last := []clientv3.Cmp{clientv3.Compare(clientv3.Version(count), "=", int64(roster.Size-1)), none.WithPrefix()}
	ops := []clientv3.Op{clientv3.OpPut(own, how), clientv3.OpPut(count, b.step.ID)} // its name, for people
	if how == Failed || how == Faulty {
		ops = append(ops, clientv3.OpPut(bad+"/"+b.steps.req.node(), ""))
	} else {
		ops = append(ops, clientv3.OpTxn(last, []clientv3.Op{state.Put(open, b.openedBy())}, nil))
	}
	ops = append(ops, clientv3.OpGet(count, clientv3.WithKeysOnly()), clientv3.OpGet(open, clientv3.WithCountOnly()))
	done, err := b.steps.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(own), "=", 0), b.steps.req.Presence.Lives()).Then(ops...).
		Else(clientv3.OpGet(own), clientv3.OpGet(open, clientv3.WithCountOnly())).Commit()
	if err != nil {
		return false, err
	}
	if !done.Succeeded {
		return b.arriveAgain(ctx, how, done)
	}
	n := len(done.Responses)
	if done.Responses[n-1].GetResponseRange().Count > 0 {
		return true, nil
	}
	if arrived(done.Responses[n-2]) < int64(roster.Size) {
		return false, nil
	}
	_, open2, err := b.openIfComplete(ctx)
	return open2, err
}

// arrived is how many nodes came to a barrier, or are through: each wrote the counted key once.
func arrived(count *pb.ResponseOp) int64 {
	for _, kv := range count.GetResponseRange().Kvs {
		return kv.Version
	}
	return 0
}

func (b *barrier) openedBy() map[string]any {
	return map[string]any{"by": b.steps.req.node(), "time": time.Now().UTC()}
}

// arriveAgain handles a node that arrived before. A different end replaces the first one.
func (b *barrier) arriveAgain(ctx context.Context, how string, done *clientv3.TxnResponse) (bool, error) {
	before := done.Responses[0].GetResponseRange().Kvs
	if done.Responses[1].GetResponseRange().Count > 0 {
		return true, nil
	}
	if len(before) == 0 {
		return false, state.ErrLeaseLost
	}
	if arrivalOf(b.steps.store, before[0]) != how {
		ops := []clientv3.Op{
			clientv3.OpPut(string(before[0].Key), how),
			clientv3.OpDelete(b.key("bad", b.steps.req.node())),
		}
		if how == Failed || how == Faulty {
			ops[1] = clientv3.OpPut(b.key("bad", b.steps.req.node()), "")
		}
		still := clientv3.Compare(clientv3.ModRevision(string(before[0].Key)), "=", before[0].ModRevision)
		again, err := b.steps.store.Client.Txn(ctx).
			If(still, b.steps.req.Presence.Lives()).
			Then(ops...).
			Else(clientv3.OpGet(b.steps.req.Presence.Key, clientv3.WithKeysOnly())).
			Commit()
		switch {
		case err != nil:
			return false, err
		case !again.Succeeded && revisionOf(again.Responses[0].GetResponseRange().Kvs) != b.steps.req.Presence.Revision:
			return false, state.ErrLeaseLost
		}
	}
	_, open, err := b.openIfComplete(ctx)
	return open, err
}

// AwaitOpen waits until a barrier opens. When ctx ends first it returns the *Wait; ErrSuperseded when the fleet moved
// on.
func (s *Steps) AwaitOpen(ctx context.Context, step Step, notify func(*Wait)) error {
	roster, err := s.roster(ctx, step)
	if err != nil {
		return err
	}
	b := &barrier{steps: s, step: step}
	look := func(poll int) (*Wait, int64, error) { return b.look(ctx, roster, poll) }
	return s.await(ctx, b.key("open"), pollOf(roster.Size), notify, look)
}

// look checks whether the barrier is open. In a large roster only a few nodes read all arrivals each time; the others
// read the count.
func (b *barrier) look(ctx context.Context, roster *state.Roster, poll int) (*Wait, int64, error) {
	got, err := b.steps.store.Client.Txn(ctx).Then(
		clientv3.OpGet(b.key("open"), clientv3.WithCountOnly()),
		clientv3.OpGet(b.key("count"), clientv3.WithKeysOnly()),
		clientv3.OpGet(b.steps.store.Versions.CurrentKey(), clientv3.WithKeysOnly()),
	).Commit()
	if err != nil {
		return nil, 0, err
	}
	if got.Responses[0].GetResponseRange().Count > 0 {
		return nil, 0, nil
	}
	if revisionOf(got.Responses[2].GetResponseRange().Kvs) != b.steps.req.VersionRev {
		if _, err := superseded(ctx, b.steps.store, b.steps.req); err != nil {
			return nil, 0, err
		}
	}
	in := arrived(got.Responses[1])
	if in < int64(roster.Size) && !b.looksAtAll(roster.Size, poll) {
		reason := fmt.Sprintf("%d of %d nodes have not arrived yet", int64(roster.Size)-in, roster.Size)
		return b.wait(reason, state.Itself("see pullet locks"), nil), got.Header.Revision, nil
	}
	wait, open, err := b.openIfComplete(ctx)
	if err != nil || open {
		return nil, 0, err
	}
	return wait, got.Header.Revision, nil
}

// looksAtAll picks about twenty of many nodes, different ones each time.
func (b *barrier) looksAtAll(nodes, poll int) bool {
	h := fnv.New32a()
	fmt.Fprint(h, b.steps.req.node(), poll)
	return nodes <= 100 || int(h.Sum32()%uint32(nodes)) < 20
}

func (b *barrier) wait(reason string, remedy state.Remedy, holders []state.Holder) *Wait {
	return &Wait{Kind: state.WaitBarrier, Gate: "barrier " + b.step.ID, Reason: reason, Remedy: remedy, Holders: holders}
}
