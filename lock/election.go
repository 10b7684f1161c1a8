package lock

import (
	"context"
	"errors"
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
	Once       bool // in the fleet's life, and not in each version
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
	return s.store.RunKey(s.scope(e.Once), state.StepHash("election\x00"+e.ID), parts...)
}

// resultKey is a key of what a chosen node made: it is the version's, also when the fleet comes back to it, or the fleet's.
func (s *Steps) resultKey(step Step, parts ...string) string {
	return s.store.RunKey(s.scope(step.Once), state.StepHash(step.ID), parts...)
}

// scope is in what a choice and a result hold.
func (s *Steps) scope(once bool) string {
	if once {
		return state.OnceScope
	}
	return s.req.Version.ID
}

// Elect claims a free place, for this rollout. In a version that the fleet left nobody is chosen any more. Nobody gives a place back: all steps of an election are one node's.
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
func (c *Candidate) Others() string {
	if len(c.chosen) == 0 {
		return "a node that is not on record any more"
	}
	return strings.Join(c.chosen, ", ")
}

func (s *Steps) elect(ctx context.Context, e Election) (*Candidate, error) {
	prefix := s.electionKey(e, "place") + "/"
	got, err := s.store.Client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	c := &Candidate{steps: s, election: e}
	taken := map[string]bool{}
	for _, kv := range got.Kvs {
		k, err := s.store.Key(kv)
		if err != nil {
			continue
		}
		node := holderOf(s.store, kv)
		c.chosen, taken[strconv.Itoa(k.Place)] = append(c.chosen, node), true
		if node == s.req.node() {
			c.place, c.revision = string(kv.Key), kv.ModRevision
			return c, nil
		}
	}
	if s.req.Stale { // of a version that the fleet left nothing is started: who was chosen is on record, or forgotten
		return c, nil
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
			return c, c.take(ctx, string(kv.Key), kv.ModRevision, clientv3.Compare(clientv3.CreateRevision(s.store.AliveKey(holderOf(s.store, kv))), "=", 0),
				clientv3.Compare(clientv3.CreateRevision(s.electionKey(e, "took", holderOf(s.store, kv))+"/"), "=", 0).WithPrefix())
		}
	}
	return c, nil
}

// abandoned reports a place whose node is gone, and where nothing stands that it started: with onLost: hold only one that was given up.
func (s *Steps) abandoned(ctx context.Context, e Election, kv *mvccpb.KeyValue) (bool, error) {
	node, err := state.Read[state.NodeName](s.store, kv)
	if err != nil { // nobody knows who has it
		return false, nil
	}
	return s.givenUp(ctx, e, string(node))
}

// holderOf is the node that has a place. Of one that cannot be read it is the key.
func holderOf(s *state.Store, kv *mvccpb.KeyValue) string {
	node, err := state.Read[state.NodeName](s, kv)
	if bad, ok := errors.AsType[*state.BadRecordError](err); ok {
		return "a node that etcd key " + bad.Key + " does not name"
	}
	return string(node)
}

// givenUp reports a node that is gone and started nothing, or only what an operator had run again since (rollout settle --again).
func (s *Steps) givenUp(ctx context.Context, e Election, node string) (bool, error) {
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.store.AliveKey(node), clientv3.WithCountOnly()),
		clientv3.OpGet(s.electionKey(e, "took", node)+"/", clientv3.WithPrefix(), clientv3.WithCountOnly()),
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
