package state

import (
	"context"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/safetext"
)

// Announced is a commit of which somebody outside says that a repository has it. It says where to look, and nothing of
// what hosts find there.
type Announced struct {
	Ref    string    `json:"ref"`    // refs/heads/main
	Commit string    `json:"commit"` // its id
	At     time.Time `json:"at"`     // when it was heard, by the clock of the host that heard it

	Rev int64 `json:"-"` // at which it was written
}

func (a *Announced) check(Key) error {
	var c checks
	c.unless(safetext.Word(strings.ReplaceAll(a.Ref, "/", "_")), "%s is no name of a branch or a tag", quoted(a.Ref))
	c.unless(hexOf(a.Commit, 40) || hexOf(a.Commit, 64), "%s is no id of a commit", quoted(a.Commit))
	c.times(a.At)
	return c.err
}

func (s *Bells) announcedKey(repository string) string { return s.store.key("announced", repository) }

// Announce tells the fleet of a commit that a repository has, and wakes the agents.
func (s *Bells) Announce(ctx context.Context, repository string, a Announced) error {
	_, err := s.store.Client.Txn(ctx).Then(Put(s.announcedKey(repository), a), s.wakeOp()).Commit()
	return err
}

// Announced are the commits that were announced last, by repository. One that cannot be read is left out.
func (s *Bells) Announced(ctx context.Context, repositories []string) (map[string]Announced, error) {
	var ops []clientv3.Op
	for _, name := range repositories {
		ops = append(ops, clientv3.OpGet(s.announcedKey(name)))
	}
	answers, _, err := s.store.ReadMany(ctx, ops)
	if err != nil {
		return nil, err
	}
	out := map[string]Announced{}
	for _, answer := range answers {
		for _, kv := range answer.GetResponseRange().Kvs {
			k, err := s.store.Key(kv)
			if err != nil {
				continue
			}
			if a, err := Read[Announced](s.store, kv); err == nil {
				a.Rev = kv.ModRevision
				out[k.Word] = a
			}
		}
	}
	return out, nil
}
