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

// Steps are the gates inside a node's run: what its steps share with those of other nodes, in one rollout. Its methods
// may be called at once.
type Steps struct {
	store *state.Store
	req   *Request
}

// NewSteps are the gates inside the run of a request.
func NewSteps(store *state.Store, req Request) *Steps { return &Steps{store, &req} }

// Step is a step that several nodes take together.
type Step struct {
	ID      string        // as people read it
	Once    bool          // its result is the fleet's, and not the version's
	Stage   string        // of the rollout: a barrier spans one
	Members state.Belongs // who takes part
}

func (s *Steps) key(step Step, parts ...string) string {
	return s.store.RunKey(s.req.rollout(), state.StepHash(step.ID+"\x00"+step.Stage), parts...)
}

// The ways to arrive at a barrier.
const (
	Done    = "done"
	Skipped = "skipped"
	Failed  = "failed"
	Faulty  = "failed by a fault of the host"
)

// Arrive records that the node came to a barrier, and how. Whose arrival is the last one opens it, in the same
// transaction: every arrival writes a key whose version etcd counts. A node outside the frozen roster does not count.
// It reports whether the barrier is open.
func (s *Steps) Arrive(ctx context.Context, step Step, how string) (open bool, err error) {
	roster, err := s.roster(ctx, step)
	if err != nil {
		return false, err
	}
	if !roster.Has(s.req.node()) {
		return s.isOpen(ctx, step)
	}
	for attempt := 0; ; attempt++ {
		open, err = s.arrive(ctx, step, roster, how)
		if err == nil || final(err) ||
			!sleep(ctx, jitter(s.req.node(), attempt, min(5*time.Second, 50*time.Millisecond<<min(attempt, 7)))) {
			return open, err
		}
	}
}

func (s *Steps) isOpen(ctx context.Context, step Step) (bool, error) {
	got, err := s.store.Client.Get(ctx, s.key(step, "open"), clientv3.WithCountOnly())
	return err == nil && got.Count > 0, err
}

// arrive is one attempt to arrive.
func (s *Steps) arrive(ctx context.Context, step Step, roster *state.Roster, how string) (bool, error) {
	own, count, bad, open := s.key(step, "in", s.req.node()), s.key(step, "count"), s.key(step, "bad"), s.key(step, "open")
	none := clientv3.Compare(clientv3.CreateRevision(bad+"/"), "=", 0) // of a whole prefix: none of it is there
	last := []clientv3.Cmp{clientv3.Compare(clientv3.Version(count), "=", int64(roster.Size-1)), none.WithPrefix()}
	ops := []clientv3.Op{clientv3.OpPut(own, how), clientv3.OpPut(count, step.ID)} // its name, for people
	if how == Failed || how == Faulty {
		ops = append(ops, clientv3.OpPut(bad+"/"+s.req.node(), ""))
	} else {
		ops = append(ops, clientv3.OpTxn(last, []clientv3.Op{state.Put(open, s.opened())}, nil))
	}
	ops = append(ops, clientv3.OpGet(count, clientv3.WithKeysOnly()), clientv3.OpGet(open, clientv3.WithCountOnly()))
	done, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(own), "=", 0), s.lives()).Then(ops...).
		Else(clientv3.OpGet(own), clientv3.OpGet(open, clientv3.WithCountOnly())).Commit()
	if err != nil {
		return false, err
	}
	if !done.Succeeded {
		return s.arriveAgain(ctx, step, how, done)
	}
	n := len(done.Responses)
	if done.Responses[n-1].GetResponseRange().Count > 0 {
		return true, nil
	}
	if arrived(done.Responses[n-2]) < int64(roster.Size) {
		return false, nil
	}
	_, open2, err := s.settle(ctx, step)
	return open2, err
}

// arrived is how many nodes came to a barrier, or are through: each wrote the counted key once.
func arrived(count *pb.ResponseOp) int64 {
	for _, kv := range count.GetResponseRange().Kvs {
		return kv.Version
	}
	return 0
}

func (s *Steps) lives() clientv3.Cmp {
	return s.req.Presence.Lives()
}

func (s *Steps) opened() map[string]any {
	return map[string]any{"by": s.req.node(), "time": time.Now().UTC()}
}

// arriveAgain is the arrival of a node that had arrived before: another end than the first time replaces it.
func (s *Steps) arriveAgain(ctx context.Context, step Step, how string, done *clientv3.TxnResponse) (bool, error) {
	before := done.Responses[0].GetResponseRange().Kvs
	if done.Responses[1].GetResponseRange().Count > 0 {
		return true, nil
	}
	if len(before) == 0 {
		return false, state.ErrLeaseLost
	}
	if came(s.store, before[0]) != how {
		ops := []clientv3.Op{
			clientv3.OpPut(string(before[0].Key), how),
			clientv3.OpDelete(s.key(step, "bad", s.req.node())),
		}
		if how == Failed || how == Faulty {
			ops[1] = clientv3.OpPut(s.key(step, "bad", s.req.node()), "")
		}
		still := clientv3.Compare(clientv3.ModRevision(string(before[0].Key)), "=", before[0].ModRevision)
		again, err := s.store.Client.Txn(ctx).
			If(still, s.lives()).
			Then(ops...).
			Else(clientv3.OpGet(s.req.Presence.Key, clientv3.WithKeysOnly())).
			Commit()
		switch {
		case err != nil:
			return false, err
		case !again.Succeeded && revisionOf(again.Responses[0].GetResponseRange().Kvs) != s.req.Presence.Revision:
			return false, state.ErrLeaseLost
		}
	}
	_, open, err := s.settle(ctx, step)
	return open, err
}

// AwaitOpen waits until a barrier opens. When ctx ends first it returns the *Wait; ErrSuperseded when the fleet moved
// on.
func (s *Steps) AwaitOpen(ctx context.Context, step Step, told func(*Wait)) error {
	roster, err := s.roster(ctx, step)
	if err != nil {
		return err
	}
	return s.await(
		ctx,
		s.key(step, "open"),
		pollOf(roster.Size),
		told,
		func(poll int) (*Wait, int64, error) { return s.barrierWait(ctx, step, roster, poll) },
	)
}

// barrierWait looks whether the barrier is open. Of a large roster only a few nodes look at everything each time: the
// others count.
func (s *Steps) barrierWait(ctx context.Context, step Step, roster *state.Roster, poll int) (*Wait, int64, error) {
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.key(step, "open"), clientv3.WithCountOnly()),
		clientv3.OpGet(s.key(step, "count"), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.store.CurrentKey(), clientv3.WithKeysOnly()),
	).Commit()
	if err != nil {
		return nil, 0, err
	}
	if got.Responses[0].GetResponseRange().Count > 0 {
		return nil, 0, nil
	}
	if revisionOf(got.Responses[2].GetResponseRange().Kvs) != s.req.VersionRev {
		if _, err := superseded(ctx, s.store, s.req); err != nil {
			return nil, 0, err
		}
	}
	in := arrived(got.Responses[1])
	switch {
	case in < int64(roster.Size) && !s.looksAtAll(roster.Size, poll):
		return s.waits(step, fmt.Sprintf("%d of %d nodes have not arrived yet", int64(roster.Size)-in, roster.Size), state.Itself("pullet locks says who"), nil), got.Header.Revision, nil
	}
	wait, open, err := s.settle(ctx, step)
	if err != nil || open {
		return nil, 0, err
	}
	return wait, got.Header.Revision, nil
}

// looksAtAll picks about twenty nodes out of many, others each time.
func (s *Steps) looksAtAll(nodes, poll int) bool {
	h := fnv.New32a()
	fmt.Fprint(h, s.req.node(), poll)
	return nodes <= 100 || int(h.Sum32()%uint32(nodes)) < 20
}

func (s *Steps) waits(step Step, reason string, remedy state.Remedy, holders []state.Holder) *Wait {
	return &Wait{Kind: state.WaitBarrier, Gate: "barrier " + step.ID, Reason: reason, Remedy: remedy, Holders: holders}
}
