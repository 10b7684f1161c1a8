package state

import (
	"context"
	"errors"
	"slices"
	"strconv"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// PendingCommand is a command as a node sees it: of the other nodes it reads only how many are through.
type PendingCommand struct {
	Command
	Open   bool          // nodes may begin with it: it has not expired
	Halted bool          // it failed on more nodes than it survives
	Stage  int           // the first that is not complete; the number of stages when all are
	Own    CommandResult // of the node
}

// endedKey has the number of a stage's nodes that are through as its version: to read all of their results would cost
// each node the more, the more they are.
func (s *Commands) endedKey(id string, stage int) string {
	return s.Prefix(id, "ended") + strconv.Itoa(stage)
}

// failuresKey has the number of nodes on which a command failed as its version.
func (s *Commands) failuresKey(id string) string { return s.store.key("command_failed", id) }

// For are those of some commands that a node may have to do something about. Nothing is asked where there are
// none.
func (s *Commands) For(ctx context.Context, node string, ids []string) ([]PendingCommand, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return s.pending(ctx, node, ids...)
}

// pending reads commands as a node sees them, without those that were forgotten meanwhile.
func (s *Commands) pending(ctx context.Context, node string, ids ...string) ([]PendingCommand, error) {
	ops := []clientv3.Op{
		clientv3.OpGet(s.store.Nodes.DecommissionedKey(""), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
	}
	const each = 5
	for _, id := range ids {
		ops = append(
			ops,
			clientv3.OpGet(s.givenKey(id)),
			clientv3.OpGet(s.openKey(id), clientv3.WithCountOnly()),
			clientv3.OpGet(s.resultKey(id, node)),
			clientv3.OpGet(s.failuresKey(id), clientv3.WithKeysOnly()),
			clientv3.OpGet(s.Prefix(id, "ended"), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		)
	}
	answers, _, err := s.store.ReadMany(ctx, ops)
	if err != nil {
		return nil, err
	}
	gone := map[string]bool{}
	for _, kv := range answers[0].GetResponseRange().Kvs {
		if k, err := s.store.Key(kv); err == nil {
			gone[k.Node] = true
		}
	}
	var out []PendingCommand
	for one := range slices.Chunk(answers[1:], each) {
		c, ended := s.pendingOf(one)
		if c == nil {
			continue
		}
		if c.Stage, err = s.stageOf(ctx, c.Command, ended, gone); err != nil {
			return nil, err
		}
		out = append(out, *c)
	}
	return out, nil
}

// pendingOf files the answers about one command, and by stage how many nodes are through; nil where there is nothing to
// do about it.
func (s *Commands) pendingOf(answers []*pb.ResponseOp) (*PendingCommand, map[string]int64) {
	c := &PendingCommand{Open: answers[1].GetResponseRange().Count > 0}
	given := answers[0].GetResponseRange().Kvs
	if len(given) == 0 {
		return nil, nil
	}
	var err error
	if c.Command, err = Read[Command](s.store, given[0]); err != nil {
		return nil, nil
	}
	for _, kv := range answers[2].GetResponseRange().Kvs {
		k, _ := s.store.Key(kv)
		c.Own = s.result(k, kv)
	}
	for _, kv := range answers[3].GetResponseRange().Kvs {
		c.Halted = kv.Version > int64(c.MaxFailures)
	}
	ended := map[string]int64{}
	for _, kv := range answers[4].GetResponseRange().Kvs {
		if k, err := s.store.Key(kv); err == nil {
			ended[strconv.Itoa(k.Place)] = kv.Version
		}
	}
	return c, ended
}

// stageOf is the first stage that is not complete. Where nodes of it were decommissioned it takes all results to know
// who is still waited for.
func (s *Commands) stageOf(ctx context.Context, c Command, ended map[string]int64, gone map[string]bool) (int, error) {
	for i, nodes := range c.Stages {
		if ended[strconv.Itoa(i)] >= int64(len(nodes)) {
			continue
		}
		if !slices.ContainsFunc(nodes, func(n string) bool { return gone[n] }) {
			return i, nil
		}
		all, gone, err := s.list(ctx, c.ID, false)
		if err != nil || len(all) == 0 {
			return i, err
		}
		return all[0].Stage(gone), nil
	}
	return len(c.Stages), nil
}

// errBegun says that a node began with a command before.
var errBegun = errors.New("the command was begun before")

// Begin records that a node begins with a command: it happens once. It is false for a command with which no
// further node begins.
func (s *Commands) Begin(ctx context.Context, c Command, r CommandResult) (bool, error) {
	key := s.resultKey(c.ID, r.Node)
	done, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0),
			clientv3.Compare(clientv3.CreateRevision(s.pendingKey(c.ID)), ">", 0),
			clientv3.Compare(clientv3.CreateRevision(s.openKey(c.ID)), ">", 0),
			clientv3.Compare(clientv3.Version(s.failuresKey(c.ID)), "<", c.MaxFailures+1)).
		Then(Put(key, r)).
		Else(clientv3.OpGet(key, clientv3.WithCountOnly())).Commit()
	if err == nil && !done.Succeeded && done.Responses[0].GetResponseRange().Count > 0 {
		err = errBegun
	}
	return err == nil && done.Succeeded, err
}

// End records what came of a command on a node of a stage.
func (s *Commands) End(ctx context.Context, id string, r CommandResult, stage int) error {
	if _, err := s.store.Client.Txn(ctx).Then(s.endOps(id, r, stage)...).Commit(); err != nil {
		return err
	}
	return s.proceed(ctx, id, r.Node, stage)
}

// endOps record a node's end. It is counted once: with its output.
func (s *Commands) endOps(id string, r CommandResult, stage int) []clientv3.Op {
	output := s.Prefix(id, "output") + r.Node
	counts := []clientv3.Op{clientv3.OpPut(output, r.Output), clientv3.OpPut(s.endedKey(id, stage), "")}
	if r.fails() {
		counts = append(counts, clientv3.OpPut(s.failuresKey(id), ""))
	}
	r.Output = ""
	return []clientv3.Op{
		Put(s.resultKey(id, r.Node), r), s.store.Bells.RingOp(),
		clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(output), "=", 0)}, counts, nil),
	}
}

// proceed wakes the nodes of the next stage when one is complete. Behind the last, and when a command that failed runs
// nowhere any more, no node has to do anything about it.
func (s *Commands) proceed(ctx context.Context, id, node string, stage int) error {
	all, err := s.pending(ctx, node, id)
	if err != nil || len(all) == 0 {
		return err
	}
	c := all[0]
	over := c.Stage == len(c.Stages)
	if c.Halted && !over {
		if over, err = s.runsNowhere(ctx, id); err != nil {
			return err
		}
	}
	switch {
	case over:
		_, err = s.store.Client.Delete(ctx, s.pendingKey(id))
	case c.Stage > stage:
		_, err = s.store.Client.Txn(ctx).Then(s.store.Bells.wakeOp()).Commit()
	}
	return err
}

// runsNowhere reports that all nodes which began with a command are through.
func (s *Commands) runsNowhere(ctx context.Context, id string) (bool, error) {
	got, err := s.store.Client.Txn(ctx).
		Then(clientv3.OpGet(s.Prefix(id, "result"), clientv3.WithPrefix(), clientv3.WithCountOnly()),
			clientv3.OpGet(s.Prefix(id, "output"), clientv3.WithPrefix(), clientv3.WithCountOnly())).
		Commit()
	if err != nil {
		return false, err
	}
	return got.Responses[0].GetResponseRange().Count == got.Responses[1].GetResponseRange().Count, nil
}

// Abandon records the end of a command whose agent was killed, and gives back the place that it had.
func (s *Commands) Abandon(ctx context.Context, id string, r CommandResult, stage int) error {
	claims, err := s.store.Client.Get(ctx, s.Prefix(id, "claim"), clientv3.WithPrefix())
	if err != nil {
		return err
	}
	ops := s.endOps(id, r, stage)
	for _, kv := range claims.Kvs {
		if c, err := Read[Claim](s.store, kv); err == nil && c.Node == r.Node {
			k, _ := s.store.Key(kv)
			ops = append(
				ops,
				clientv3.OpDelete(string(kv.Key)),
				clientv3.OpDelete(s.Prefix(id, "mark")+strconv.Itoa(k.Place)),
			)
		}
	}
	if _, err = s.store.Client.Txn(ctx).Then(ops...).Commit(); err != nil {
		return err
	}
	return s.proceed(ctx, id, r.Node, stage)
}
