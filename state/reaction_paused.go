package state

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// PausedReaction is an operator's word that a reaction is not started. Its events are counted meanwhile.
type PausedReaction struct {
	Reaction string    `json:"reaction"`
	Reason   string    `json:"reason,omitempty"`
	By       string    `json:"by"`
	At       time.Time `json:"at"`
	Until    time.Time `json:"until,omitzero"` // when it ends by itself, by the clock of etcd
}

func (s *Reactions) pausedPrefix() string { return s.store.key("reaction_paused") + "/" }
func (s *Reactions) pausedKey(reaction string) string {
	return s.pausedPrefix() + GroupHash(reaction, "")
}

// Pause keeps a reaction from being started, for a time where that is not 0.
func (s *Reactions) Pause(ctx context.Context, p PausedReaction, lasts time.Duration) error {
	op := Put(s.pausedKey(p.Reaction), p)
	if lasts > 0 {
		p.Until = p.At.Add(lasts)
		var err error
		if op, err = forAWhile(ctx, s.store, s.pausedKey(p.Reaction), p, lasts); err != nil {
			return err
		}
	}
	_, err := s.store.Client.Txn(ctx).Then(op).Commit()
	return err
}

// Resume lifts a pause. It is false where there was none.
func (s *Reactions) Resume(ctx context.Context, reaction string) (bool, error) {
	got, err := s.store.Client.Delete(ctx, s.pausedKey(reaction))
	return err == nil && got.Deleted > 0, err
}

// Paused are the reactions that are paused, by name.
func (s *Reactions) Paused(ctx context.Context) (map[string]PausedReaction, error) {
	got, err := s.store.Client.Get(ctx, s.pausedPrefix(), clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	return s.pausedOf(got.Kvs), nil
}

func (s *Reactions) pausedOf(kvs []*mvccpb.KeyValue) map[string]PausedReaction {
	out := map[string]PausedReaction{}
	for _, kv := range kvs {
		if p, err := Read[PausedReaction](s.store, kv); err == nil {
			out[p.Reaction] = p
		}
	}
	return out
}

func (p *PausedReaction) check(k Key) error {
	var c checks
	c.unless(GroupHash(p.Reaction, "") == k.Hash, "it is about another reaction than its key")
	c.times(p.At, p.Until)
	line(&p.Reaction, &p.Reason, &p.By)
	return c.err
}

func (r *ReactionRun) limit() int { return maxBig }

func (r *ReactionRun) check(k Key) error {
	var c checks
	c.unless(r.ID == k.Word, "it is about another run than its key")
	c.unless(versionID(r.ID), "%s is no run", quoted(r.ID)) // it names a rollout, too
	c.nodes(r.Hosts)
	c.version(r.Version)
	c.times(r.At, r.Clock)
	c.also(r.Event.Check())
	c.count("occurrences", r.Event.Occurrences, 1<<40)
	c.nodes(r.Event.About)
	c.unless(len(r.Chain) <= MaxChain, "its chain has %d runs", len(r.Chain))
	line(&r.Reaction, &r.By, &r.Why)
	lines(r.Event.IDs)
	lines(r.Event.Unknown)
	for i := range r.Chain {
		line(&r.Chain[i].Run, &r.Chain[i].Reaction)
	}
	return c.err
}

func (r *ReactionResult) check(k Key) error {
	var c checks
	c.unless(r.Node == k.Node, "%v", errOtherNode)
	c.version(r.Version)
	c.times(r.Started, r.Ended)
	c.count("changed", r.Changed, 1<<30)
	line(&r.State, &r.Run, &r.Reason, &r.Remedy)
	return c.err
}
