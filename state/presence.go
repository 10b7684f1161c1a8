package state

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"
)

// Presence is a node's registration with its lease.
type Presence struct {
	Node     Node
	Lease    clientv3.LeaseID
	Time     time.Duration // to live of the lease
	Key      string        // alive/<node>
	Revision int64         // at which Key was written: comparing it proves that the lease lives

	Incarnation Incarnation // that etcd was in then

	Found   Found        // as the node registered
	renewed atomic.Int64 // by the boot clock
	lost    atomic.Bool  // etcd does not know the lease any more
	clock   func() time.Duration
	claimed atomic.Int64
	wrote   atomic.Int64
}

// Seen is what the node knows of the record that it knew before, now that it registered, and maybe made claims and was
// through with a version.
func (p *Presence) Seen(before Origin) Origin {
	before.Revision, before.Claimed = max(p.Revision, p.wrote.Load()), max(before.Claimed, p.claimed.Load())
	return before
}

// Claims notes the revision of a claim.
func (p *Presence) Claims(revision int64) { raise(&p.claimed, revision) }

// Wrote notes the revision at which the node's record was written behind the registration.
func (p *Presence) Wrote(revision int64) { raise(&p.wrote, revision) }

// raise makes a number not less than another.
func raise(n *atomic.Int64, to int64) {
	for {
		last := n.Load()
		if to <= last || n.CompareAndSwap(last, to) {
			return
		}
	}
}

// Lives is the condition that the lease of the registration lives, and nobody else has the name.
func (p *Presence) Lives() clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(p.Key), "=", p.Revision)
}

// Register writes the node's record and facts, and its lease of ttl. The version that the node says it runs counts only
// where its record cannot be read. It fails with a *NameTakenError while another state directory holds the name, and
// with a *ClonedError while a copy of this one does.
func (s *Presences) Register(
	ctx context.Context, n Node, owner Alive, facts any, ttl time.Duration,
) (*Presence, error) {
	key, runs := s.AliveKey(n.Name), n.Running
	var lease clientv3.LeaseID
	var began time.Duration
	for r := s.store.known.pop(n.Name); ; r = nil {
		var err error
		if r == nil {
			if r, err = s.registration(ctx, n.Name); err != nil {
				return nil, err
			}
		}
		if n.Boots, err = s.identify(ctx, r, owner); err != nil {
			return nil, err
		}
		if lease == 0 {
			began = s.store.clock()
			if lease, ttl, err = s.leaseFor(ctx, r, owner, ttl); err != nil {
				return nil, err
			}
		}
		old := r.node
		n.FirstSeen, n.Running, n.Format = n.LastSeen, old.Running, r.least.reads(n.Unproven)
		if r.nodeSeen != 0 && !r.unread {
			n.UUID = old.UUID
			if !old.FirstSeen.IsZero() { // it was given up before it ever came
				n.FirstSeen = old.FirstSeen
			}
		} else if r.unread {
			n.Running = runs
		}
		if n.UUID == "" {
			n.UUID = uuid.NewString()
		}
		first, err := s.store.Doubts.firstOps(ctx, r.incarnated)
		if err != nil {
			return nil, err
		}
		ops := []clientv3.Op{
			Put(key, owner, clientv3.WithLease(lease)),
			Put(s.store.Nodes.Key(n.Name), n),
			Put(s.store.key("facts", n.Name), facts),
			clientv3.OpDelete(s.store.Nodes.DecommissionedKey(n.Name)),
			clientv3.OpDelete(s.rivalKey(n.Name, owner.mark())),
			s.store.Statuses.provisionOp(n.Name, n.LastSeen),
		}
		done, err := s.store.Client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(key), "=", r.seen),
				clientv3.Compare(clientv3.ModRevision(s.store.Nodes.minimumKey()), "=", r.minimum),
				clientv3.Compare(clientv3.ModRevision(s.store.Nodes.Key(n.Name)), "=", r.nodeSeen)).
			Then(slices.Concat(s.store.Statuses.foundOps(n.Name, n.Role), ops, first,
				s.countOps(n.Name, old.Role, n.Role, lease))...).
			Commit()
		if errors.Is(err, rpctypes.ErrLeaseNotFound) { // somebody revoked it just now
			lease = 0
			continue
		}
		if err != nil {
			return nil, err
		}
		if done.Succeeded {
			p := &Presence{
				Node:        n,
				Lease:       lease,
				Time:        ttl,
				Key:         key,
				Revision:    done.Header.Revision,
				Incarnation: IncarnationOf(done.Header),
				Found:       s.store.Statuses.found(n.Name, n.Role, done.Responses),
				clock:       s.store.clock,
			}
			p.renewed.Store(int64(began))
			return p, nil
		}
	}
}

// keptLonger is by how much the lease of an earlier pull may be longer than the one that is wanted, as a share of that:
// single pulls do not come at quite the same times.
const keptLonger = 0.1

// leaseFor is a lease of about ttl, and how long it really is. A host whose pulls leave their leases behind renews the
// one of its last pull, if it is in the same boot and that lease is long enough: etcd writes nothing then. Others have
// one for each process: what a process leaves on it goes with it.
func (s *Presences) leaseFor(
	ctx context.Context,
	r *registration,
	me Alive,
	ttl time.Duration,
) (clientv3.LeaseID, time.Duration, error) {
	if me.Lasting && r.named && r.lease != 0 && r.holder.Owner == me.Owner && r.holder.mark() == me.mark() {
		bounded, cancel := context.WithTimeout(ctx, operationTimeout)
		defer cancel()
		kept, err := s.store.Client.KeepAliveOnce(bounded, r.lease)
		if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return 0, 0, err
		}
		if err == nil {
			if lasts := time.Duration(kept.TTL) * time.Second; lasts >= ttl.Truncate(time.Second) &&
				float64(lasts) <= (1+keptLonger)*float64(ttl) {
				return r.lease, lasts, nil
			}
		}
	}
	granted, err := s.store.Client.Grant(ctx, int64(ttl.Seconds()))
	if err != nil {
		return 0, 0, err
	}
	return granted.ID, ttl, nil
}

// Count is how many nodes the fleet has. It is read beside writes and rarely: etcd counts keys one by one.
func (s *Presences) Count(ctx context.Context) (int, error) {
	got, err := s.store.Client.Get(ctx, s.store.Nodes.Key(""), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return int(got.Count), nil
}

// countOps move a node to its role where nodes are counted: those that were ever seen, and those that live.
func (s *Presences) countOps(node, from, to string, lease clientv3.LeaseID) []clientv3.Op {
	ops := []clientv3.Op{
		clientv3.OpPut(s.store.Nodes.SeenKey(to, node), ""),
		clientv3.OpPut(s.store.Nodes.LiveKey(to, node), "", clientv3.WithLease(lease)),
	}
	if GroupOf(from) != GroupOf(to) {
		ops = append(
			ops, clientv3.OpDelete(s.store.Nodes.SeenKey(from, node)), clientv3.OpDelete(s.store.Nodes.LiveKey(from, node)),
		)
	}
	return ops
}

// SeenKey is there for a node of a role that was ever registered; with an empty node it is the prefix of all.
func (s *Nodes) SeenKey(role, node string) string { return s.store.key("seen", GroupOf(role), node) }

// LiveKey is on the lease of a node of a role; with an empty node it is the prefix of all.
func (s *Nodes) LiveKey(role, node string) string { return s.store.key("live", GroupOf(role), node) }

// Relabel changes the labels in a node's record.
func (s *Presences) Relabel(ctx context.Context, p *Presence, labels map[string]string) error {
	from := p.Node.Role
	p.Node.Labels, p.Node.Role = labels, labels["role"]
	return s.store.Statuses.Tell(
		ctx,
		p,
		append(s.countOps(p.Node.Name, from, p.Node.Role, p.Lease), Put(s.store.Nodes.Key(p.Node.Name), p.Node))...)
}

// ErrLeaseLost says that the node's lease ended, or that another host took its name: it counts as dead until it
// registers again.
var ErrLeaseLost = errors.New("the lease of this node ended: the next pull registers anew")

// KeepAlive renews the lease while wanted says so, at a third of its time, at least every 20 seconds, and sooner after
// a failure, until ctx ends or the lease does. A node that hangs stops wanting it, and counts as dead. It calls renewed
// behind each renewal. The record is doubtful when etcd is in another incarnation than before, or its revision went
// back, which a member that lags shows as well; and when etcd does not know the lease any more: it stops then.
func (s *Presences) KeepAlive(ctx context.Context, p *Presence, wanted func() bool, renewed func(doubtful bool)) {
	go func() {
		var err error
		for seen, last := p.Incarnation, p.Revision; wanted(); {
			next := min(p.Time/3, renewEvery)
			if err != nil {
				next = min(p.Time/20, renewEvery/5)
			}
			Pause(ctx, next)
			var is *pb.ResponseHeader
			is, err = s.renew(ctx, p)
			if ctx.Err() != nil {
				return
			}
			switch {
			case errors.Is(err, rpctypes.ErrLeaseNotFound):
				renewed(true)
				return
			case err != nil:
				continue
			}
			renewed(!IncarnationOf(is).Continues(seen) || is.Revision < last)
			seen, last = IncarnationOf(is), is.Revision
		}
	}()
}

// renewEvery is the longest time between two renewals while a node is at work: a node that renewed nothing for longer
// does nothing. So soon it also learns that etcd does not know its lease any more.
const renewEvery = 20 * time.Second

// LeaseAge is how long ago a node that answers registered or renewed its lease, by the clock of etcd.
func (s *Presences) LeaseAge(ctx context.Context, node string) (time.Duration, error) {
	got, err := s.store.Client.Get(ctx, s.AliveKey(node)) // its key alone would come without the lease
	if err != nil || len(got.Kvs) == 0 {
		return 0, err
	}
	left, err := s.store.Client.TimeToLive(ctx, clientv3.LeaseID(got.Kvs[0].Lease))
	if err != nil {
		return 0, err
	}
	return time.Duration(left.GrantedTTL-left.TTL) * time.Second, nil
}

// renew renews the lease. It returns the incarnation that answered: the one that was seen before where none did.
func (s *Presences) renew(ctx context.Context, p *Presence) (*pb.ResponseHeader, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Time/6)
	defer cancel()
	began := s.store.clock()
	got, err := s.store.Client.KeepAliveOnce(ctx, p.Lease)
	if err != nil {
		p.lost.Store(errors.Is(err, rpctypes.ErrLeaseNotFound))
		return nil, err
	}
	p.renewed.Store(int64(began))
	return got.ResponseHeader, nil
}

// CutOff reports that the lease was not renewed for so long that it may be about to end. It is counted by the boot
// clock, which goes on while the host is suspended and which nobody sets.
func (s *Presences) CutOff(p *Presence) bool {
	return s.store.clock()-time.Duration(p.renewed.Load()) > p.Time*2/3
}

// Left is how long the lease lives where it is not renewed any more, as far as this node knows.
func (p *Presence) Left() time.Duration {
	if p.lost.Load() {
		return 0
	}
	return p.Time - (p.clock() - time.Duration(p.renewed.Load()))
}

// bootClock is the time since the host booted, suspended times included.
func bootClock() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil { // every Linux since 2.6.39 has it
		return 0
	}
	return time.Duration(t.Nano())
}
