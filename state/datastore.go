package state

import (
	"context"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Datastore is all that is on record of the datastore itself.
type Datastore struct {
	Wanted   *Wanted // nil: the repository says nothing
	Carriers map[string]Carrier
	Handed   map[string]Handed
	Reach    map[string]Reach
	Moving   map[string]bool
	Alive    map[string]bool // of the carriers: they have a lease
	Rotation Rotation        // the last one
	Steps    MemberSteps
	StepsRev int64 // the revision of Steps
}

func (s *Datastores) key(parts ...string) string {
	return s.store.key(append([]string{"datastore"}, parts...)...)
}

// HandedKey is what a node gets when it becomes a member.
func (s *Datastores) HandedKey(node string) string { return s.key("handed", node) }

// All reads all of it, at one revision.
func (s *Datastores) All(ctx context.Context) (Datastore, error) {
	out := Datastore{
		Carriers: map[string]Carrier{}, Handed: map[string]Handed{}, Reach: map[string]Reach{},
		Moving: map[string]bool{}, Alive: map[string]bool{},
	}
	got, err := s.store.Client.Get(ctx, s.key()+"/", clientv3.WithPrefix())
	if err != nil {
		return out, err
	}
	for _, kv := range got.Kvs {
		if k, err := s.store.Key(kv); err == nil {
			out.add(s.store, k, kv)
		}
	}
	return out, s.alive(ctx, &out)
}

func (d *Datastore) add(s *Store, k Key, kv *mvccpb.KeyValue) {
	switch k.kind.shape {
	case "datastore/wanted":
		if w, err := Read[Wanted](s, kv); err == nil {
			d.Wanted = &w
		}
	case "datastore/host/NODE":
		keep(s, kv, k.Node, d.Carriers)
	case "datastore/handed/NODE":
		keep(s, kv, k.Node, d.Handed)
	case "datastore/reach/NODE":
		keep(s, kv, k.Node, d.Reach)
	case "datastore/moving/NODE":
		d.Moving[k.Node] = true
	case "datastore/rotation":
		d.Rotation, _ = Read[Rotation](s, kv) // one that cannot be read is none
	case "datastore/steps":
		d.Steps, _ = Read[MemberSteps](s, kv) // for people, and for who failed last: written anew
		d.StepsRev = kv.ModRevision
	}
}

// alive asks which carriers have a lease.
func (s *Datastores) alive(ctx context.Context, d *Datastore) error {
	var nodes []string
	for node := range d.Carriers {
		nodes = append(nodes, node)
	}
	for some := range slices.Chunk(nodes, opsAtOnce) {
		var ops []clientv3.Op
		for _, node := range some {
			ops = append(ops, clientv3.OpGet(s.store.Presences.AliveKey(node), clientv3.WithCountOnly()))
		}
		got, err := s.store.Client.Txn(ctx).Then(ops...).Commit()
		if err != nil {
			return err
		}
		for i, r := range got.Responses {
			d.Alive[some[i]] = r.GetResponseRange().Count > 0
		}
	}
	return nil
}

// Want records what a version wants, where none says more that comes behind it.
func (s *Datastores) Want(ctx context.Context, w Wanted) error {
	key := s.key("wanted")
	have, rev, err := get[Wanted](ctx, s.store, key)
	if unlessBad(err) != nil || err == nil && rev != 0 && have.Seq >= w.Seq {
		return unlessBad(err)
	}
	_, err = s.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", rev)).Then(Put(key, w)).Commit()
	return err
}

// Offer records what a host says of itself.
func (s *Datastores) Offer(ctx context.Context, node string, c Carrier) error {
	key := s.key("host", node)
	have, rev, err := get[Carrier](ctx, s.store, key)
	if unlessBad(err) != nil || err == nil && rev != 0 && have == c {
		return unlessBad(err)
	}
	_, err = s.store.Client.Do(ctx, Put(key, c))
	return err
}

// HandedTo is what a node gets as a member; nil: it is to be none.
func (s *Datastores) HandedTo(ctx context.Context, node string) (*Handed, error) {
	h, rev, err := get[Handed](ctx, s.store, s.HandedKey(node))
	if err != nil || rev == 0 {
		return nil, err
	}
	return &h, nil
}

// Hand gives a node what it needs as a member.
func (s *Datastores) Hand(ctx context.Context, node string, h Handed) error {
	_, err := s.store.Client.Do(ctx, Put(s.HandedKey(node), h))
	return err
}

// Took takes back what a node got: it came.
func (s *Datastores) Took(ctx context.Context, node string) error {
	_, err := s.store.Client.Delete(ctx, s.HandedKey(node))
	return err
}

// Take takes back what a node got, and that it is moved: it is a member no more.
func (s *Datastores) Take(ctx context.Context, node string) error {
	_, err := s.store.Client.Txn(ctx).
		Then(clientv3.OpDelete(s.HandedKey(node)), clientv3.OpDelete(s.key("moving", node))).Commit()
	return err
}

// Say records what a member reaches, with its lease.
func (s *Datastores) Say(ctx context.Context, node string, r Reach, lease clientv3.LeaseID) error {
	_, err := s.store.Client.Do(ctx, Put(s.key("reach", node), r, clientv3.WithLease(lease)))
	return err
}

// Record records steps in the place of those at a revision. It is false where somebody else was faster.
func (s *Datastores) Record(ctx context.Context, steps MemberSteps, revision int64) (bool, error) {
	key := s.key("steps")
	done, err := s.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
		Then(Put(key, steps)).Commit()
	return err == nil && done.Succeeded, err
}

// Turn takes the turn for what one member does at a time, for so many seconds. Who is the node, and behind a space what
// for. It returns the lease that the turn lasts with; 0: another one has it.
func (s *Datastores) Turn(ctx context.Context, who string, ttl int64) (clientv3.LeaseID, error) {
	lease, err := s.store.Client.Grant(ctx, ttl)
	if err != nil {
		return 0, err
	}
	key := s.key("turn")
	done, err := s.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, who, clientv3.WithLease(lease.ID))).Commit()
	if err == nil && done.Succeeded {
		return lease.ID, nil
	}
	_, _ = s.store.Client.Revoke(ctx, lease.ID) // it ends by itself
	return 0, err
}

// TurnOf is who has the turn, with the lease; "": nobody.
func (s *Datastores) TurnOf(ctx context.Context) (who string, lease clientv3.LeaseID, err error) {
	got, err := s.store.Client.Get(ctx, s.key("turn"))
	if err != nil || len(got.Kvs) == 0 {
		return "", 0, err
	}
	w, err := Read[Word](s.store, got.Kvs[0])
	return string(w), clientv3.LeaseID(got.Kvs[0].Lease), err
}

// Move has the datastore leave a node, or with stay lets it stay.
func (s *Datastores) Move(ctx context.Context, node string, stay bool) error {
	op := clientv3.OpPut(s.key("moving", node), "")
	if stay {
		op = clientv3.OpDelete(s.key("moving", node))
	}
	_, err := s.store.Client.Do(ctx, op)
	return err
}
