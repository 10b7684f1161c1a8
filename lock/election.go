package lock

import (
	"context"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Election is a choice of nodes for steps that few take for all. Steps with the same one are taken by the same nodes.
type Election struct {
	ID         string // as people read it: "1 of role=master"
	Limit      int
	Candidates func(node string, m state.Member) bool
}

// Candidate is a node's part in an election.
type Candidate struct {
	steps    *Steps
	election Election
	place    string // "" is none: others were chosen
	revision int64  // of the place: the fence
	chosen   []string
}

func (s *Steps) electionKey(e Election, parts ...string) string {
	return s.store.RunKey(s.req.Version.ID, state.StepHash("election\x00"+e.ID), parts...)
}

// resultKey is a key of what a chosen node made: it is the version's, also when the fleet comes back to it.
func (s *Steps) resultKey(step Step, parts ...string) string {
	return s.store.RunKey(s.req.Version.ID, state.StepHash(step.ID), parts...)
}

// Elect claims a free place, for this rollout. Nobody gives a place back: all steps of an election are one node's.
func (s *Steps) Elect(ctx context.Context, e Election) (*Candidate, error) {
	for attempt := 0; ; attempt++ {
		c, err := s.elect(ctx, e)
		if err == nil || final(err) || !sleep(ctx, jitter(s.req.node(), attempt, min(5*time.Second, 20*time.Millisecond<<min(attempt, 8)))) {
			return c, err
		}
	}
}

// Chosen reports that the node takes the steps.
func (c *Candidate) Chosen() bool { return c.place != "" }

// Others are the nodes that were chosen instead.
func (c *Candidate) Others() string { return strings.Join(c.chosen, ", ") }

func (s *Steps) elect(ctx context.Context, e Election) (*Candidate, error) {
	prefix := s.electionKey(e, "place") + "/"
	got, err := s.store.Client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	c := &Candidate{steps: s, election: e}
	taken := map[string]bool{}
	for _, kv := range got.Kvs {
		c.chosen = append(c.chosen, string(kv.Value))
		taken[state.LastPart(kv.Key)] = true
		if string(kv.Value) == s.req.node() {
			c.place, c.revision = string(kv.Key), kv.ModRevision
			return c, nil
		}
	}
	for i := range e.Limit {
		if !taken[strconv.Itoa(i)] {
			return c, c.take(ctx, prefix+strconv.Itoa(i), 0)
		}
	}
	for _, kv := range got.Kvs {
		if free, err := s.abandoned(ctx, e, kv); err != nil {
			return nil, err
		} else if free {
			return c, c.take(ctx, string(kv.Key), kv.ModRevision, clientv3.Compare(clientv3.CreateRevision(s.store.AliveKey(string(kv.Value))), "=", 0),
				clientv3.Compare(clientv3.CreateRevision(s.electionKey(e, "started", string(kv.Value))), "=", 0))
		}
	}
	return c, nil
}

// abandoned reports a place whose node is gone and started nothing there: with onLost: hold only one that was given up.
func (s *Steps) abandoned(ctx context.Context, e Election, kv *mvccpb.KeyValue) (bool, error) {
	node := string(kv.Value)
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.store.AliveKey(node), clientv3.WithCountOnly()),
		clientv3.OpGet(s.electionKey(e, "started", node), clientv3.WithCountOnly()),
		clientv3.OpGet(s.store.DecommissionedKey(node), clientv3.WithCountOnly()),
	).Commit()
	if err != nil {
		return false, err
	}
	count := func(i int) int64 { return got.Responses[i].GetResponseRange().Count }
	givenUp := count(2) > 0 || givesUp(s.req.Rules.OnLost)
	return count(0) == 0 && count(1) == 0 && givenUp, nil
}

// take claims a place as it was seen.
func (c *Candidate) take(ctx context.Context, key string, seen int64, more ...clientv3.Cmp) error {
	s := c.steps
	done, err := s.store.Client.Txn(ctx).
		If(append(more, clientv3.Compare(clientv3.ModRevision(key), "=", seen), s.lives())...).
		Then(clientv3.OpPut(key, s.req.node()), clientv3.OpPut(s.electionKey(c.election, "name"), c.election.ID)).
		Else(clientv3.OpGet(s.req.Presence.Key, clientv3.WithKeysOnly())).Commit()
	switch {
	case err != nil:
		return err // it may be there all the same: Elect looks again
	case !done.Succeeded && revisionOf(done.Responses[0].GetResponseRange().Kvs) != s.req.Presence.Revision:
		return state.ErrLeaseLost
	case !done.Succeeded:
		return ErrMoved
	}
	c.place, c.revision = key, done.Header.Revision
	return nil
}

// Start records that the node starts a step, before it does: from here on nobody else takes its place. It fails when the place was lost.
func (c *Candidate) Start(ctx context.Context, step Step) error {
	s := c.steps
	own := s.electionKey(c.election, "started", s.req.node())
	done, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(c.place), "=", c.revision), s.lives()).
		Then(clientv3.OpPut(own, step.ID), clientv3.OpPut(s.resultKey(step, "started", s.req.node()), time.Now().UTC().Format(time.RFC3339))).
		Else(clientv3.OpGet(c.place, clientv3.WithKeysOnly())).Commit()
	switch {
	case err != nil || done.Succeeded:
		return err
	case revisionOf(done.Responses[0].GetResponseRange().Kvs) == c.revision:
		return state.ErrLeaseLost
	}
	return ErrFenced
}

// Fresh reports that the node's own result of a step is there and not too old.
func (c *Candidate) Fresh(ctx context.Context, step Step, maxAge time.Duration) (published, fresh bool, err error) {
	s := c.steps
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.resultKey(step, "result", s.req.node())),
		clientv3.OpGet(s.resultKey(step, "fresh", s.req.node()), clientv3.WithCountOnly()),
	).Commit()
	if err != nil {
		return false, false, err
	}
	var r state.StepResult
	if kvs := got.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		if err := decode(kvs[0], &r); err != nil {
			return false, false, err
		}
	}
	published = r.Result == "ok" || r.Result == Skipped
	return published, published && (maxAge == 0 || got.Responses[1].GetResponseRange().Count > 0), nil
}

// Publish makes a step's result known to the others.
func (c *Candidate) Publish(ctx context.Context, step Step, r state.StepResult, value []byte, maxAge time.Duration) error {
	s := c.steps
	r.Node, r.Step, r.At = s.req.node(), step.ID, time.Now().UTC()
	return again(ctx, s.req.node(), func() error {
		shared, err := s.store.Share(ctx, r, value)
		if err != nil {
			return err
		}
		ops := []clientv3.Op{state.Put(s.resultKey(step, "result", s.req.node()), shared)}
		if maxAge > 0 {
			lease, err := s.store.Client.Grant(ctx, int64(max(1, maxAge.Seconds())))
			if err != nil {
				return err
			}
			ops = append(ops, clientv3.OpPut(s.resultKey(step, "fresh", s.req.node()), "", clientv3.WithLease(lease.ID)))
		}
		done, err := s.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(c.place), "=", c.revision)).Then(ops...).Commit()
		if err == nil && !done.Succeeded {
			err = ErrFenced
		}
		return err
	})
}
