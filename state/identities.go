package state

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/safetext"
)

func (s *Identities) key(name string) string          { return s.store.key("identity", name) }
func (s *Identities) requestKey(name string) string   { return s.store.key("request", name) }
func (s *Identities) invitationKey(id string) string  { return s.store.key("invitation", id) }
func (s *Identities) revokingKey(name string) string  { return s.store.key("revoking", name) }
func (s *Identities) revokedKey(number string) string { return s.store.key("revoked", number) }
func (s *Identities) authorityKey() string            { return s.store.key("authority") }

// Invite puts an invitation on record.
func (s *Identities) Invite(ctx context.Context, i Invitation) error {
	key := s.invitationKey(i.ID)
	done, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(Put(key, i)).Commit()
	if err == nil && !done.Succeeded {
		err = fmt.Errorf("the invitation %s is there already", i.ID)
	}
	return err
}

// Invited is the invitation of an id; false: there is none, or somebody used it.
func (s *Identities) Invited(ctx context.Context, id string) (Invitation, bool, error) {
	if !safetext.Word(id) {
		return Invitation{}, false, nil
	}
	i, rev, err := get[Invitation](ctx, s.store, s.invitationKey(id))
	return i, rev != 0 && err == nil, unlessBad(err)
}

// Use takes an invitation away. It is true for one of all that use it.
func (s *Identities) Use(ctx context.Context, id string) (bool, error) {
	key := s.invitationKey(id)
	done, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), ">", 0)).Then(clientv3.OpDelete(key)).Commit()
	return err == nil && done.Succeeded, err
}

// Revoke has the keeper revoke all certificates of somebody.
func (s *Identities) Revoke(ctx context.Context, name string) error {
	_, err := s.store.Client.Put(ctx, s.revokingKey(name), "")
	return err
}

// shutOut has the keeper revoke a host that is decommissioned. That it is marked is not enough: the host itself may
// take its mark away, and does so with each pull, before the keeper sees it. Who may not ask the keeper leaves it to
// the mark.
func (s *Identities) shutOut(ctx context.Context, node string) error {
	_, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.key(node)), ">", 0)).
		Then(clientv3.OpPut(s.revokingKey(node), "")).Commit()
	if denied(err) {
		return nil
	}
	return err
}

// AwaitRevoked waits until the keeper revoked somebody.
func (s *Identities) AwaitRevoked(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, keeperTime)
	defer cancel()
	for {
		got, err := s.store.Client.Get(ctx, s.key(name), clientv3.WithCountOnly())
		if err != nil || got.Count == 0 {
			return err
		}
		Pause(ctx, keeperTime/100)
	}
}

// keeperTime is how long it takes the keeper at most to see what somebody wants.
const keeperTime = 20 * time.Second

// Ask asks for the next certificate of somebody.
func (s *Identities) Ask(ctx context.Context, name string, r Request) error {
	_, err := s.store.Client.Do(ctx, Put(s.requestKey(name), r))
	return err
}

// Issued is what is on record of somebody, and of the authority. Of what cannot be read nothing is returned.
func (s *Identities) Issued(ctx context.Context, name string) (Identity, Authority, error) {
	id, _, err := get[Identity](ctx, s.store, s.key(name))
	if unlessBad(err) != nil {
		return id, Authority{}, err
	}
	a, _, err := get[Authority](ctx, s.store, s.authorityKey())
	return id, a, unlessBad(err)
}

// First records somebody who got a certificate before there was a record, where there is no such record yet.
func (s *Identities) First(ctx context.Context, name string, i Identity) error {
	_, err := s.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(s.key(name)), "=", 0)).
		Then(Put(s.key(name), i)).Commit()
	return err
}

// Record records what was issued to somebody, in the place of what was asked. It is refused where another member
// changed or revoked that one behind a revision: what it decided counts. What was asked behind that revision stays.
func (s *Identities) Record(ctx context.Context, name string, i Identity, revision int64) error {
	request := s.requestKey(name)
	done, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.key(name)), ">", 0), s.unchanged(name, revision)).
		Then(Put(s.key(name), i), clientv3.OpTxn(
			[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(request), "<", revision+1)},
			[]clientv3.Op{clientv3.OpDelete(request)}, nil,
		)).Commit()
	return changed(name, done, err)
}

// unchanged compares somebody's record with how it was at a revision. Of two members one may take itself for the leader
// a while longer than it is.
func (s *Identities) unchanged(name string, revision int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(s.key(name)), "<", revision+1)
}

func changed(name string, done *clientv3.TxnResponse, err error) error {
	if err == nil && !done.Succeeded {
		err = fmt.Errorf("another member of the datastore changed the certificates of %s at the same time", name)
	}
	return err
}

// Admit records somebody who was invited: a host that was decommissioned before is none any more. Who was revoked or
// decommissioned behind a revision is not admitted, nor who got a certificate from another member meanwhile.
func (s *Identities) Admit(ctx context.Context, name string, i Identity, revision int64) error {
	revoking, gone := s.revokingKey(name), s.store.Nodes.DecommissionedKey(name)
	done, err := s.store.Client.Txn(ctx).
		If(s.unchanged(name, revision), clientv3.Compare(clientv3.ModRevision(revoking), "<", revision+1),
			clientv3.Compare(clientv3.ModRevision(gone), "<", revision+1)).
		Then(
			Put(s.key(name), i), clientv3.OpDelete(s.requestKey(name)), clientv3.OpDelete(revoking), clientv3.OpDelete(gone),
		).Commit()
	if err == nil && !done.Succeeded {
		err = fmt.Errorf("%s was revoked while it joined, or its certificates changed: invite it again", name)
	}
	return err
}

// Strike records that certificates of somebody count no more.
func (s *Identities) Strike(ctx context.Context, name string, serials []Serial) error {
	var ops []clientv3.Op
	for _, one := range serials {
		ops = append(ops, Put(s.revokedKey(one.Number), Revoked{name, one.Until}))
	}
	return s.commit(ctx, ops)
}

// Expel records that nobody has the name: all its certificates count no more. It is refused where another member gave
// it one behind a revision, which has to count no more, too.
func (s *Identities) Expel(ctx context.Context, name string, serials []Serial, revision int64) error {
	if err := s.Strike(ctx, name, serials); err != nil { // first: what a kill leaves undone is done again
		return err
	}
	var ops []clientv3.Op
	for _, key := range []string{s.requestKey(name), s.key(name), s.revokingKey(name)} {
		ops = append(ops, clientv3.OpDelete(key))
	}
	done, err := s.store.Client.Txn(ctx).If(s.unchanged(name, revision)).Then(ops...).Commit()
	return changed(name, done, err)
}

// commit does more than one transaction may.
func (s *Identities) commit(ctx context.Context, ops []clientv3.Op) error {
	for some := range slices.Chunk(ops, opsAtOnce) {
		if _, err := s.store.Client.Txn(ctx).Then(some...).Commit(); err != nil {
			return err
		}
	}
	return nil
}

// Forget removes invitations and revocations that ended.
func (s *Identities) Forget(ctx context.Context, invitations, revoked []string) error {
	var ops []clientv3.Op
	for _, id := range invitations {
		ops = append(ops, clientv3.OpDelete(s.invitationKey(id)))
	}
	for _, number := range revoked {
		ops = append(ops, clientv3.OpDelete(s.revokedKey(number)))
	}
	return s.commit(ctx, ops)
}

// Publish tells hosts what to believe, where that changed.
func (s *Identities) Publish(ctx context.Context, a Authority) error {
	have, _, err := get[Authority](ctx, s.store, s.authorityKey())
	if unlessBad(err) != nil || err == nil && reflect.DeepEqual(have, a) {
		return unlessBad(err)
	}
	_, err = s.store.Client.Do(ctx, Put(s.authorityKey(), a))
	return err
}

// Await returns when somebody asks for a certificate, or is revoked or decommissioned, behind a revision; and after a
// while, since a watch can miss what happens while etcd is away.
func (s *Identities) Await(ctx context.Context, revision int64, atMost time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	changed := make(chan struct{}, 1)
	for _, what := range []string{"request/", "revoking/", "revoked/", "decommissioned/"} {
		seen := s.store.Client.Watch(ctx, s.store.key(what), clientv3.WithPrefix(), clientv3.WithRev(revision+1))
		go func() {
			if r := <-seen; len(r.Events) > 0 {
				select {
				case changed <- struct{}{}:
				default: // another one rang
				}
			}
		}()
	}
	select {
	case <-changed:
	case <-ctx.Done():
	}
}
