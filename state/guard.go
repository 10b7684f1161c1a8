package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Origin is where the fleet's record was when a node saw it last. A record that is another one, or younger, was
// replaced or restored from a backup: claims that were made since are forgotten there.
type Origin struct {
	Cluster  uint64 `json:"cluster,omitempty"`
	Revision int64  `json:"revision,omitempty"` // at which the node's own record was written
	Claimed  int64  `json:"claimed,omitempty"`  // at which the node made its last claim
	Accepted string `json:"accepted,omitempty"` // the operator's acceptance that was seen last
}

// WentBackError says that the fleet's record is older than what the node saw before.
type WentBackError struct {
	Seen, Is Origin
}

func (e *WentBackError) Error() string {
	return e.What() +
		"; look whether anybody is in the middle of an upgrade, then accept it: pullet rollout resume --store"
}

// What says what the node saw, without what helps.
func (e *WentBackError) What() string {
	var what string
	switch {
	case e.Seen.Cluster != e.Is.Cluster || e.Is.Revision == 0:
		what = "it is another one than this node knows"
	case e.Is.Revision < e.Seen.Revision:
		what = fmt.Sprintf(
			"this node's record went back in time, from revision %d to %d",
			e.Seen.Revision,
			e.Is.Revision,
		)
	default:
		what = fmt.Sprintf("it does not have the claim that this node made at revision %d", e.Seen.Claimed)
	}
	return "the fleet's record in etcd was restored or replaced: " + what
}

// StoreScope is where a doubt in the fleet's record stands among switches.
const StoreScope = "store"

// Key is there while nobody accepted the fleet's record, of which a node knows better: nobody is admitted. It is
// apart from the pause, which an operator may lift for reasons of his own.
func (s *Doubts) Key() string { return s.store.key("config_state", StoreScope) }

// None is the condition that nobody accepted the fleet's record since a node doubted it.
func (s *Doubts) None() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(s.Key()), ">", 0)
}

// ClaimedKey is written with each claim of a node: its revision tells a record that lacks the last one. It is never
// deleted.
func (s *Doubts) ClaimedKey(node string) string { return s.store.key("claimed", node) }

// doubtingKey is there, on a lease, while a node lives that does not accept the fleet's record: it is not registered
// there.
func (s *Doubts) doubtingKey(node string) string { return s.store.key("doubting", node) }

// Doubt is what a node says that does not accept the fleet's record, which may have forgotten what the node runs.
type Doubt struct {
	Reason  string    `json:"reason"`
	At      time.Time `json:"at"`
	Running string    `json:"running,omitempty"` // the version that the node runs, whatever the record says
	Release string    `json:"release,omitempty"` // of that version
}

// Tell tells for a time that a node lives, does not accept the fleet's record, and runs a version; nil is none. Where
// somebody accepted the record meanwhile it tells nothing.
func (s *Doubts) Tell(
	ctx context.Context,
	node string,
	back *WentBackError,
	runs *Version,
	lasts time.Duration,
) error {
	d := Doubt{Reason: back.What(), At: time.Now().UTC()}
	if runs != nil {
		d.Running, d.Release = runs.ID, runs.Release
	}
	op, err := forAWhile(ctx, s.store, s.doubtingKey(node), d, lasts)
	if err == nil {
		_, err = s.store.Client.Txn(ctx).If(s.None()).Then(op).Commit()
	}
	return err
}

func (s *Doubts) acceptedKey() string { return s.store.key("store_accepted") }

// Guard compares the fleet's record with what the node saw last; a *WentBackError tells that it is not to be trusted.
// It returns where it is now. What is compared is the node's own: others may have written a lot since the store went
// back. The doubt is recorded then, so that nobody is admitted who saw less. What comes later in this process is
// compared by monotonic.
func (s *Doubts) Guard(ctx context.Context, node string, seen Origin) (Origin, error) {
	r := s.store.known.pop(node)
	if r == nil || r.guarded {
		s.store.monotonic.begin(Origin{})
		var err error
		if r, err = s.store.Presences.registration(ctx, node); err != nil {
			return seen, err
		}
	} else {
		s.store.monotonic.begin(Origin{Cluster: r.origin.Cluster, Revision: r.revision})
	}
	now := r.origin
	back := seen.Revision != 0 &&
		(seen.Cluster != now.Cluster || now.Revision < seen.Revision || now.Claimed < seen.Claimed)
	if back && !acceptedAt(now.Accepted).After(acceptedAt(seen.Accepted)) {
		back := &WentBackError{seen, now}
		return seen, errors.Join(back, doubt(ctx, s.store, node, back.What(), acceptedAt(seen.Accepted)))
	}
	r.guarded = true
	s.store.known.keep(r)
	return now, nil
}

// Accept tells every node that the fleet's record is to be trusted as it is. Its time is later than that of every
// acceptance that the record or the node that doubts it knows, whatever the clock of this machine says. Where etcd
// shows that it was restored, that is accepted as well: nobody is to find it out later.
func (s *Doubts) Accept(ctx context.Context, by string) error {
	got, err := s.store.Client.Txn(ctx).
		Then(clientv3.OpGet(s.acceptedKey()), clientv3.OpGet(s.Key()), clientv3.OpGet(s.IncarnationKey())).
		Commit()
	if err != nil {
		return err
	}
	at := time.Now().UTC()
	for _, kv := range got.Responses[0].GetResponseRange().Kvs {
		before, _ := Read[Word](s.store, kv) // one that cannot be read accepts nothing
		at = after(at, acceptedAt(string(before)))
	}
	for _, kv := range got.Responses[1].GetResponseRange().Kvs {
		doubt, _ := Read[Switch](s.store, kv)
		at = after(at, doubt.At)
	}
	var was Incarnation // one that cannot be read is none
	for _, kv := range got.Responses[2].GetResponseRange().Kvs {
		was, _ = Read[Incarnation](s.store, kv)
	}
	ops := []clientv3.Op{
		clientv3.OpPut(s.acceptedKey(), by+" "+at.Format(time.RFC3339Nano)), clientv3.OpDelete(s.Key()),
		clientv3.OpDelete(s.doubtingKey(""), clientv3.WithPrefix()), s.store.Bells.wakeOp(), s.store.Bells.RingOp(),
	}
	is, err := s.Incarnation(ctx)
	if err != nil {
		return err
	}
	if is.Replaced(was) != "" {
		ops = append(ops, Put(s.IncarnationKey(), is))
	}
	_, err = s.store.Client.Txn(ctx).Then(ops...).Commit()
	return err
}

// acceptedAt is when an acceptance was given; zero is never. A restored record may hold an older acceptance than the
// one that a node saw: only a later one is about the record as it is now.
func acceptedAt(acceptance string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, acceptance[strings.LastIndexByte(acceptance, ' ')+1:])
	if err != nil {
		return time.Time{}
	}
	return at
}

// after is a time, moved behind another one.
func after(at, other time.Time) time.Time {
	if at.After(other) {
		return at
	}
	return other.Add(time.Nanosecond).UTC()
}
