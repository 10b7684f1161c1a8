package lock

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Record is what the fleet's record says of a step at a node that was chosen for it.
type Record struct {
	Attempt string           // the last one that was started; empty is none
	Result  state.StepResult // what was published; its Result is empty where nothing was
	Fresh   bool             // the result is not older than its maxAge
	Again   string           // it changes when an operator has the step run again

	maxAge          time.Duration // of the step's result
	started, result int64         // the revisions at which it was so
}

// Final reports a result that stays as it is: nobody replaces it.
func (r Record) Final() bool {
	return r.Fresh && (r.Result.Result == "ok" || r.Result.Result == Skipped)
}

// Record reads what the fleet's record says of a step here.
func (c *Candidate) Record(ctx context.Context, step Step, maxAge time.Duration) (r Record, err error) {
	s := c.steps
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.resultKey(step, "started", s.req.node())),
		clientv3.OpGet(s.resultKey(step, "result", s.req.node())),
		clientv3.OpGet(s.resultKey(step, "fresh", s.req.node()), clientv3.WithCountOnly()),
		clientv3.OpGet(s.store.Steps.SettledKey(s.scope(step.Once), state.StepHash(step.ID))),
	).Commit()
	if err != nil {
		return r, err
	}
	for _, kv := range got.Responses[0].GetResponseRange().Kvs {
		r.Attempt, r.started = s.store.Steps.ReadStart(kv).Attempt, kv.ModRevision
	}
	for _, kv := range got.Responses[1].GetResponseRange().Kvs {
		r.Result, r.result = s.store.Steps.ReadResult(kv), kv.ModRevision
	}
	r.maxAge = maxAge
	r.Fresh = maxAge == 0 || got.Responses[2].GetResponseRange().Count > 0
	for _, kv := range got.Responses[3].GetResponseRange().Kvs {
		said, _ := state.Read[state.Settlement](s.store, kv) // one that cannot be read is none
		r.Again = said.Again
	}
	return r, nil
}

// Start records that the node starts a step, before it does: from here on nobody else takes its place, until an
// operator has the step run again. It fails with ErrReplaced when the place was lost, and with ErrMoved when the record
// is not what was read.
func (c *Candidate) Start(ctx context.Context, step Step, attempt string, read Record) error {
	s := c.steps
	started, result := s.resultKey(step, "started", s.req.node()), s.resultKey(step, "result", s.req.node())
	done, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(c.place), "=", c.revision), s.req.Presence.Lives(),
			clientv3.Compare(clientv3.ModRevision(started), "=", read.started),
			clientv3.Compare(clientv3.ModRevision(result), "=", read.result)).
		Then(c.startedOp(step), state.Put(started, state.StepStart{
			Step: step.ID, Attempt: attempt, At: time.Now().UTC(), MaxAge: read.maxAge, Repeatable: step.Repeatable,
		})).
		Else(clientv3.OpGet(c.place, clientv3.WithKeysOnly()), clientv3.OpGet(s.req.Presence.Key, clientv3.WithKeysOnly()),
			clientv3.OpGet(started)).
		Commit()
	if err != nil || done.Succeeded {
		return err
	}
	seen := done.Responses
	switch {
	case revisionOf(seen[0].GetResponseRange().Kvs) != c.revision:
		return ErrReplaced
	case revisionOf(seen[1].GetResponseRange().Kvs) != s.req.Presence.Revision:
		return state.ErrLeaseLost
	}
	for _, kv := range seen[2].GetResponseRange().Kvs { // an attempt to write it whose answer was lost did it
		if s.store.Steps.ReadStart(kv).Attempt == attempt {
			return nil
		}
	}
	return ErrMoved
}

// startedOp records that the node started a step: nobody takes its place any more.
func (c *Candidate) startedOp(step Step) clientv3.Op {
	s := c.steps
	return clientv3.OpPut(s.electionKey(c.election, "took", s.req.node(), state.StepHash(step.ID)), step.ID)
}

// Publish makes the result of an attempt known to the others; an empty attempt is a step that had nothing to start. A
// final result stays as it is. One that is unknown halts the group.
func (c *Candidate) Publish(
	ctx context.Context,
	step Step,
	attempt string,
	r state.StepResult,
	value []byte,
	maxAge time.Duration,
) error {
	s := c.steps
	r.Node, r.Step, r.Attempt, r.At = s.req.node(), step.ID, attempt, time.Now().UTC()
	var revision int64
	err := again(ctx, s.req.node(), func() (err error) {
		revision, err = c.publish(ctx, step, r, value, maxAge)
		return err
	})
	if err != nil || r.Result != Unknown || revision == 0 {
		return err
	}
	return s.haltUnknown(ctx, step, r.Node, r.Reason, revision)
}

// publish makes one attempt, and returns the revision of what it wrote: 0 is nothing.
func (c *Candidate) publish(
	ctx context.Context,
	step Step,
	r state.StepResult,
	value []byte,
	maxAge time.Duration,
) (int64, error) {
	s := c.steps
	have, err := c.Record(ctx, step, maxAge)
	switch {
	case err != nil:
		return 0, err
	case have.Final(), r.Result == Unknown && have.Result.Result == Unknown:
		return 0, nil
	case r.Attempt != "" && have.Attempt != r.Attempt: // an operator had it forgotten
		return 0, ErrFenced
	}
	shared, err := s.store.Results.Share(ctx, r, value)
	if err != nil {
		return 0, err
	}
	key := s.resultKey(step, "result", s.req.node())
	ops := []clientv3.Op{state.Put(key, shared)}
	if r.Result == "ok" || r.Result == Skipped { // also of a step that stood already: nobody else takes it
		ops = append(ops, c.startedOp(step))
	}
	if maxAge > 0 {
		lease, err := s.store.Client.Grant(ctx, int64(max(1, maxAge.Seconds())))
		if err != nil {
			return 0, err
		}
		ops = append(ops, clientv3.OpPut(s.resultKey(step, "fresh", s.req.node()), "", clientv3.WithLease(lease.ID)))
	}
	place := clientv3.Compare(clientv3.ModRevision(c.place), "=", c.revision)
	same := []clientv3.Cmp{place, clientv3.Compare(clientv3.ModRevision(key), "=", have.result),
		clientv3.Compare(clientv3.ModRevision(s.resultKey(step, "started", s.req.node())), "=", have.started)}
	done, err := s.store.Client.Txn(ctx).
		If(same...).
		Then(ops...).
		Else(clientv3.OpGet(c.place, clientv3.WithKeysOnly())).
		Commit()
	switch {
	case err != nil:
		return 0, err
	case done.Succeeded:
		return done.Header.Revision, nil
	case revisionOf(done.Responses[0].GetResponseRange().Kvs) != c.revision:
		return 0, ErrReplaced
	}
	return 0, ErrMoved
}

// Unknown is the result of a step of which nobody can say what came of it.
const Unknown = "unknown"
