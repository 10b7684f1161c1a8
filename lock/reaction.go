package lock

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// NewReactionTurn is a node's turn to run a reaction. It takes a slot of its group as an upgrade does, and the rules of
// rollouts hold but for the order of roles. One that may run beside a rollout takes a place of its own, of which there
// are as many as the group has slots; pauses and switches hold.
func NewReactionTurn(store *state.Store, req Request, r state.ReactionRun) *Turn {
	req.Apart, req.Stale, req.Rules.Depends = true, false, nil
	if !r.OnChange {
		return NewTurn(store, req)
	}
	return newTurn(store, &req, &pool{
		kind: state.WaitSlot, name: "reaction " + r.Reaction, scope: "reaction " + r.Reaction,
		run: r.ID, group: state.AllGroups,
		limit: func(int) int { return req.Rules.Limit(len(r.Hosts)) }, switched: true,
		queue: store.Commands.Prefix(r.ID, "queue"), claims: store.Commands.Prefix(r.ID, "claim"),
		marks: store.Commands.Prefix(r.ID, "mark"),
	})
}

// End records the end of a run that is no move to a version, and releases its claim in the same transaction. Where the
// claim was taken back meanwhile, the end is recorded all the same.
func (t *Turn) End(ctx context.Context, ops ...clientv3.Op) error {
	err := again(ctx, t.req.node(), func() error {
		_, err := t.store.Client.Txn(ctx).If(t.claim.conditions()...).
			Then(append(t.claim.releaseOps(), ops...)...).Else(ops...).Commit()
		return err
	})
	if err == nil {
		t.claim.forget()
	}
	return err
}
