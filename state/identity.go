package state

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// NameTakenError says that a host with another state directory runs under this node's name.
type NameTakenError struct{ Node string }

func (e *NameTakenError) Error() string {
	return fmt.Sprintf("another host runs as node %[1]q: give this one a name of its own (node.name in pullet.yaml); "+
		"if this host replaces it, stop pullet there, then run: pullet decommission --force %[1]s", e.Node)
}

// Taken is a *NameTakenError while another state directory than that of an owner has a name, and a *ClonedError while
// hosts with copies of one state directory use it.
func (s *Presences) Taken(ctx context.Context, node, owner string) error {
	r, err := s.registration(ctx, node)
	switch {
	case err != nil:
		return err
	case r.named && r.holder.Owner != owner:
		return &NameTakenError{node}
	case len(r.rivals) > 0:
		return &ClonedError{node, r.holder, r.rivals}
	}
	return nil
}

// ClonedError says that a copy of this host's state directory is in use under the same name. Nobody can tell which one
// is meant: neither of them pulls until one is renamed or gone.
type ClonedError struct {
	Node   string
	This   Alive
	Others []Alive
}

func (e *ClonedError) Error() string {
	return Cloned(e.Node, append([]Alive{e.This}, e.Others...)) + "; " + ClonedClear(e.Node)
}

// Cloned says which hosts use one name with copies of one state directory.
func Cloned(node string, hosts []Alive) string {
	var marks []string
	for _, h := range hosts {
		marks = append(marks, h.String())
	}
	slices.Sort(marks)
	return fmt.Sprintf(
		"%d hosts run as node %q with copies of one state directory, and none of them pulls: %s",
		len(hosts),
		node,
		strings.Join(marks, " and "),
	)
}

// ClonedClear is what lets one of the hosts go on that use one name.
func ClonedClear(node string) string {
	return fmt.Sprintf(
		"rename one (node.name in its pullet.yaml) or stop pullet there, then run: pullet decommission --force %s",
		node,
	)
}

// String is a host by its marks, as people tell it from another.
func (a Alive) String() string {
	text := a.Host + " (machine " + Short(a.Machine)
	if a.Machine == "" {
		text = a.Host + " (no machine id"
	}
	if !a.Booted.IsZero() {
		text += ", up since " + a.Booted.UTC().Format(time.DateTime)
	}
	return fmt.Sprintf("%s, state directory inode %d)", text, a.Dir)
}

// mark tells hosts with copies of one state directory apart.
func (a Alive) mark() string {
	return StepHash(fmt.Sprintf("%s\x00%d\x00%s", a.Machine, a.Dir, a.Boot))
}

// marked reports that it is known which host it is.
func (a Alive) marked() bool { return a.Machine != "" || a.Dir != 0 }

// sameHost compares what stays when a host boots.
func (a Alive) sameHost(b Alive) bool {
	return !a.marked() || !b.marked() || a.Machine == b.Machine && a.Dir == b.Dir
}

// rivalKey is there while a host is refused because another one uses its name and its secret; with an empty mark, the
// prefix of all.
func (s *Presences) rivalKey(node, mark string) string { return s.store.key("rival", node, mark) }

// registration is what is on record of who uses a name.
type registration struct {
	name           string
	holder         Alive
	revision       int64            // at which it was read
	seen, nodeSeen int64            // the revisions of the holder and of the node; 0: there is none
	least          Minimum          // the fleet's
	minimum        int64            // its revision; 0: there is none
	lease          clientv3.LeaseID // of the holder
	node           Node
	rivals         []Alive
	origin         Origin
	guarded        bool // Guard had it: only Register takes it now
	named          bool // the holder can be read: no pullet writes another one, and the node takes its name back from it
	unread         bool // the node's record cannot be read
	incarnated     bool // etcd's incarnation is on record
}

// known keeps the last registration that was read until Guard or Register takes it. A stale one costs another attempt:
// Register compares it.
type known struct{ last atomic.Pointer[registration] }

func (k *known) keep(r *registration) { k.last.Store(r) }

// pop is what is known of a node, once.
func (k *known) pop(node string) *registration {
	if r := k.last.Swap(nil); r != nil && r.name == node {
		return r
	}
	return nil
}

// registration reads it. A *TooOldError tells that this pullet may not join.
func (s *Presences) registration(ctx context.Context, node string) (*registration, error) {
	got, err := s.store.Client.Txn(ctx).Then(clientv3.OpGet(s.AliveKey(node)), clientv3.OpGet(s.store.Nodes.Key(node)),
		clientv3.OpGet(s.store.Doubts.acceptedKey()),
		clientv3.OpGet(s.store.Doubts.IncarnationKey(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.store.Doubts.ClaimedKey(node), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.store.Nodes.minimumKey()),
		clientv3.OpGet(s.rivalKey(node, ""), clientv3.WithPrefix())).Commit()
	if err != nil {
		return nil, err
	}
	r := &registration{name: node, revision: got.Header.Revision, origin: Origin{Cluster: got.Header.ClusterId}}
	if r.least, r.minimum, err = s.store.admits(got.Responses[5].GetResponseRange().Kvs); err != nil {
		return nil, err
	}
	for i, response := range got.Responses {
		for _, kv := range response.GetResponseRange().Kvs {
			switch i {
			case 0:
				holder, err := Read[Alive](s.store, kv)
				r.seen, r.lease, r.holder, r.named = kv.ModRevision, clientv3.LeaseID(kv.Lease), holder, err == nil
			case 1:
				node, err := Read[Node](s.store, kv)
				r.nodeSeen, r.node, r.unread = kv.ModRevision, node, err != nil
				r.origin.Revision = kv.ModRevision
			case 2:
				word, _ := Read[Word](s.store, kv) // one that cannot be read accepts nothing
				r.origin.Accepted = string(word)
			case 3:
				r.incarnated = true
			case 4:
				r.origin.Claimed = kv.ModRevision
			case 6:
				if rival, err := Read[Alive](s.store, kv); err == nil {
					r.rivals = append(r.rivals, rival)
				}
			}
		}
	}
	return r, nil
}

// identify refuses a host whose name another one uses. It returns the boots that the node's host was in before.
func (s *Presences) identify(ctx context.Context, r *registration, me Alive) (boots []string, err error) {
	boots = r.node.Boots
	if r.named && r.holder.Owner != me.Owner {
		return nil, &NameTakenError{r.name}
	}
	others := slices.DeleteFunc(r.rivals, func(a Alive) bool { return a.Owner != me.Owner || a.mark() == me.mark() })
	if r.named && r.holder.mark() != me.mark() &&
		!slices.ContainsFunc(others, func(a Alive) bool { return a.mark() == r.holder.mark() }) {
		booted, err := s.booted(ctx, r, me)
		if err != nil {
			return nil, err
		}
		if booted && r.holder.Boot != "" {
			boots = append(boots[max(0, len(boots)-keptBoots+1):len(boots):len(boots)], r.holder.Boot)
		}
		if !booted {
			others = append(others, r.holder)
		}
	}
	if len(others) == 0 {
		return boots, nil
	}
	lease, err := s.store.Client.Grant(ctx, int64(max(3*me.Every, rivalTime).Seconds()))
	if err == nil { // so that the other one learns of it, and status shows both
		_, err = s.store.Client.Txn(ctx).
			Then(Put(s.rivalKey(r.name, me.mark()), me, clientv3.WithLease(lease.ID)), s.store.Bells.RingOp()).
			Commit()
	}
	if err != nil {
		return nil, err
	}
	return nil, &ClonedError{r.name, me, others}
}

// TellUnproven says that a host could not pull which cannot prove its name, because its own record is damaged. Nothing
// is said of a node that never registered or was given up, or while another host has its name.
func TellUnproven(ctx context.Context, s *Store, node string, me Alive, st Status) error {
	r, err := s.Presences.registration(ctx, node)
	if err != nil || r.nodeSeen == 0 || r.node.Decommissioned {
		return err
	}
	if r.seen != 0 && (!r.named || !r.holder.marked() || !r.holder.sameHost(me)) {
		return nil
	}
	_, err = s.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(s.Presences.AliveKey(node)), "=", r.seen)).
		Then(s.Statuses.Ops(node, Configured, Failed, st)...).
		Commit()
	return err
}

const (
	keptBoots = 8
	rivalTime = 90 * time.Second // at least: until the host that was refused pulls again
)

// booted reports that the holder of the name is this host, in an earlier boot or in this one. An earlier boot does not
// come back, and nothing of it was alive after this one began: a holder whose lease was renewed since is another host.
func (s *Presences) booted(ctx context.Context, r *registration, me Alive) (bool, error) {
	switch {
	case !r.holder.sameHost(me) || slices.Contains(r.node.Boots, me.Boot):
		return false, nil
	case r.holder.Boot == me.Boot || r.holder.Boot == "" || me.Boot == "" || me.Up == nil:
		return true, nil
	}
	for {
		age, err := s.LeaseAge(ctx, r.name)
		if err != nil {
			return false, err
		}
		booted, left := earlier(age, me.Up())
		if left == 0 {
			return booted, nil
		}
		if !Pause(ctx, left) {
			return false, ctx.Err()
		}
	}
}

// earlier reports that a lease of some age was left behind by an earlier boot of a host that is up for some time, or
// how long to wait to tell: one that works renews its lease meanwhile.
func earlier(age, up time.Duration) (yes bool, left time.Duration) {
	if age+bootSlack < up {
		return false, 0
	}
	left = max(0, renewEvery+bootSlack-age)
	return left == 0, left
}

// bootSlack is by how much two clocks that count seconds may differ, and a renewal may be late.
const bootSlack = 5 * time.Second
