package lock

import (
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Election is a choice of nodes for steps that few take for all. Steps with the same one are taken by the same nodes.
type Election struct {
	ID         string // as people read it: "1 of role=master"
	Limit      int
	Once       bool                                   // in the fleet's life, and not in each version
	Has        func(node string, m state.Member) bool // the version gives the node the step
	Candidates func(node string, m state.Member) bool // those that have it and may take it before this node is through
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
	return s.store.Steps.Key(s.scope(e.Once), state.StepHash("election\x00"+e.ID), parts...)
}

// resultKey is a key of what a chosen node made: it is the version's, also when the fleet comes back to it, or the
// fleet's.
func (s *Steps) resultKey(step Step, parts ...string) string {
	return s.store.Steps.Key(s.scope(step.Once), state.StepHash(step.ID), parts...)
}

// scope is in what a choice and a result hold.
func (s *Steps) scope(once bool) string {
	if once {
		return state.OnceScope
	}
	return s.req.Version.ID
}

// Elect claims a free place, for this rollout. In a version that the fleet left nobody is chosen any more. Nobody gives
// a place back: all steps of an election are one node's.
func (s *Steps) Elect(ctx context.Context, e Election) (*Candidate, error) {
	var c *Candidate
	err := retry(ctx, s.req.node(), retryFast, func() error {
		c = &Candidate{steps: s, election: e}
		return c.elect(ctx)
	})
	return c, err
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

// elect finds the place that the node has, or claims one.
func (c *Candidate) elect(ctx context.Context) error {
	s, e := c.steps, c.election
	prefix := s.electionKey(e, "place") + "/"
	got, err := s.store.Client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	taken, places := map[string]bool{}, e.within(s.store, got.Kvs)
	for _, kv := range places {
		node := holderOf(s.store, kv)
		c.chosen, taken[path.Base(string(kv.Key))] = append(c.chosen, node), true
		if node == s.req.node() {
			c.place, c.revision = string(kv.Key), kv.ModRevision
			return nil
		}
	}
	if s.req.Stale { // of a version that the fleet left nothing is started: who was chosen is on record, or forgotten
		return nil
	}
	for i := range e.Limit {
		if !taken[strconv.Itoa(i)] {
			return c.claim(ctx, prefix+strconv.Itoa(i), 0)
		}
	}
	for _, kv := range places {
		if free, err := c.takeOverConditions(ctx, kv); err != nil {
			return err
		} else if free != nil {
			return c.claim(ctx, string(kv.Key), kv.ModRevision, free...)
		}
	}
	return nil
}

// within are the places of an election up to its limit. A step that runs once in the fleet's life may have had a higher
// one.
func (e Election) within(s *state.Store, places []*mvccpb.KeyValue) []*mvccpb.KeyValue {
	return slices.DeleteFunc(places, func(kv *mvccpb.KeyValue) bool {
		k, err := s.Key(kv)
		return err != nil || k.Place >= e.Limit
	})
}

// takeOverConditions are the conditions under which this node may take the place of another one: nothing stands that
// the other started, and it is gone or comes after this node in the rollout. With onLost: hold a node is gone when it
// was given up. nil: the other one keeps its place.
func (c *Candidate) takeOverConditions(ctx context.Context, place *mvccpb.KeyValue) ([]clientv3.Cmp, error) {
	s, e := c.steps, c.election
	name, err := state.Read[state.NodeName](s.store, place)
	if err != nil { // nobody knows who has it
		return nil, nil
	}
	node, took := string(name), s.electionKey(e, "took", string(name))+"/"
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.store.Presences.AliveKey(node), clientv3.WithCountOnly()),
		clientv3.OpGet(took, clientv3.WithPrefix(), clientv3.WithCountOnly()),
		clientv3.OpGet(s.store.Nodes.DecommissionedKey(node), clientv3.WithCountOnly()),
		clientv3.OpGet(s.store.Nodes.Key(node)),
	).Commit()
	if err != nil {
		return nil, err
	}
	count := func(i int) int64 { return got.Responses[i].GetResponseRange().Count }
	nothing := clientv3.Compare(clientv3.CreateRevision(took), "=", 0).WithPrefix()
	switch {
	case count(1) > 0:
		return nil, nil
	case count(0) == 0 && (count(2) > 0 || givesUp(s.req.Rules.OnLost)):
		return []clientv3.Cmp{nothing, clientv3.Compare(clientv3.CreateRevision(s.store.Presences.AliveKey(node)), "=", 0)},
			nil
	case c.comesAfter(node, got.Responses[3].GetResponseRange().Kvs):
		return []clientv3.Cmp{nothing}, nil
	}
	return nil, nil
}

// comesAfter reports that another node cannot take the steps of an election before this one is through: it comes in a
// later stage, its limit is 0, or the version has no such step for it. It would wait for this node, and this node for
// its result.
func (c *Candidate) comesAfter(node string, record []*mvccpb.KeyValue) bool {
	s, e := c.steps, c.election
	own := s.req.Presence.Node
	member, known := c.member(node, record)
	self, listed := s.req.Inventory[own.Name]
	if !listed {
		self = state.Member{Role: own.Role, Labels: own.Labels}
	}
	return known && e.Candidates(own.Name, self) && !e.Candidates(node, member)
}

// member is a node as the inventory says, or else its own record.
func (c *Candidate) member(node string, record []*mvccpb.KeyValue) (m state.Member, known bool) {
	if m, known = c.steps.req.Inventory[node]; known {
		return m, true
	}
	for _, kv := range record {
		n, err := state.Read[state.Node](c.steps.store, kv)
		m, known = state.Member{Role: n.Role, Labels: n.Labels}, err == nil
	}
	return m, known
}

// holderOf is the node that has a place. Of one that cannot be read it is the key.
func holderOf(s *state.Store, kv *mvccpb.KeyValue) string {
	node, err := state.Read[state.NodeName](s, kv)
	if bad, ok := errors.AsType[*state.BadRecordError](err); ok {
		return "a node that etcd key " + bad.Key + " does not name"
	}
	return string(node)
}

// claim claims a place as it was seen.
func (c *Candidate) claim(ctx context.Context, key string, seen int64, more ...clientv3.Cmp) error {
	s := c.steps
	done, err := s.store.Client.Txn(ctx).
		If(append(more, clientv3.Compare(clientv3.ModRevision(key), "=", seen), s.req.Presence.Lives())...).
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
