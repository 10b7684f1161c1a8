package etcdmodel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// script is a list of things to do with an etcd, drawn once and done to several.
type script struct {
	rng       *rand.Rand
	steps     []step
	watched   bool // some watch begins in the past: etcd reads it later, and a compaction could come first or not
	compacted bool
}

// step does a thing and says what came of it.
type step func(r *runner) string

// opened is an operation once it is known where the revisions begin.
type opened func(r *runner) clientv3.Op

// runner does scripts. What depends on the etcd is counted from where the script began.
type runner struct {
	ctx     context.Context
	client  *clientv3.Client
	prefix  string
	base    int64
	leases  []clientv3.LeaseID
	watches []running
}

// running is a watch of a script; it ends with the put, or the delete, of its key at the end.
type running struct {
	channel clientv3.WatchChan
	deletes bool
}

const farRevision = 40 // scripts speak of revisions up to here

// strange is a lease that nobody granted.
const strange = clientv3.LeaseID(4711)

var (
	keys     = []string{"a", "b", "c", "d/1", "d/2", "d/3", "e"}
	prefixes = []string{"", "d/", "x/"}
)

func newScript(seed uint64) *script {
	s := &script{rng: rand.New(rand.NewPCG(seed, 1))}
	for range 10 + s.rng.IntN(20) {
		s.steps = append(s.steps, s.step())
	}
	return s
}

func (s *script) one(of []string) string { return of[s.rng.IntN(len(of))] }
func (s *script) odds(n int) bool        { return s.rng.IntN(n) == 0 }

func (s *script) step() step {
	switch n := s.rng.IntN(100); {
	case n < 12:
		return do(s.get())
	case n < 32:
		return do(s.put())
	case n < 40:
		return do(s.delete())
	case n < 70:
		return s.txn()
	case n < 78:
		ttl := []int64{300, 600, maxTTL + 1}[s.rng.IntN(3)] // long enough for a slow etcd
		return func(r *runner) string { return r.grant(ttl) }
	case n < 88:
		return s.lease()
	case n < 94:
		return s.compact()
	}
	return s.watch()
}

// lease does something with a lease.
func (s *script) lease() step {
	n, what := s.rng.IntN(3), s.rng.IntN(3)
	return func(r *runner) string {
		switch id := r.lease(n); what {
		case 0:
			return r.revoke(id)
		case 1:
			got, err := r.client.KeepAliveOnce(r.ctx, id)
			if err != nil {
				return r.failed(err)
			}
			return fmt.Sprint("renewed ", got.TTL, r.relative(got.Revision))
		default:
			return r.timeToLive(id)
		}
	}
}

func (s *script) compact() step {
	if s.watched {
		return do(s.get())
	}
	s.compacted = true
	at := 1 + s.rng.Int64N(farRevision/4)
	return func(r *runner) string {
		got, err := r.client.Compact(r.ctx, r.base+at)
		if err != nil {
			return r.failed(err)
		}
		return "compacted" + r.relative(got.Header.Revision)
	}
}

func (s *script) watch() step {
	key, rangeOption := s.target()
	opts := []clientv3.OpOption{rangeOption}
	filter := s.rng.IntN(8)
	past, from := s.odds(5), 1+s.rng.Int64N(farRevision/2)
	if s.compacted && s.odds(2) {
		past, from = true, 1+s.rng.Int64N(3)
	}
	s.watched = s.watched || past
	switch filter {
	case 0:
		opts = append(opts, clientv3.WithFilterPut())
	case 1:
		opts = append(opts, clientv3.WithFilterDelete())
	}
	return func(r *runner) string {
		opts := slices.Clone(opts)
		if past {
			opts = append(opts, clientv3.WithRev(r.base+from))
		}
		r.watches = append(r.watches, running{r.client.Watch(r.ctx, r.prefix+key, opts...), filter == 0})
		return "watch"
	}
}

// target is a key, or a range of them, as the option says.
func (s *script) target() (string, clientv3.OpOption) {
	if s.odds(3) {
		return s.one(prefixes), clientv3.WithPrefix()
	}
	return s.one(keys), func(*clientv3.Op) {}
}

func (s *script) get() opened {
	key, rangeOption := s.target()
	opts := []clientv3.OpOption{rangeOption}
	upTo := s.odds(8)
	if upTo {
		key, opts = s.one(keys), nil
	}
	if s.odds(3) {
		opts = append(opts, clientv3.WithLimit(1+s.rng.Int64N(3)))
	}
	if s.odds(3) {
		opts = append(opts, clientv3.WithKeysOnly())
	} else if s.odds(4) {
		opts = append(opts, clientv3.WithCountOnly())
	}
	if s.odds(4) {
		order := []clientv3.SortOrder{clientv3.SortAscend, clientv3.SortDescend}[s.rng.IntN(2)]
		opts = append(opts, clientv3.WithSort(clientv3.SortByKey, order))
	}
	least := int64(0)
	if s.odds(4) {
		least = 1 + s.rng.Int64N(farRevision/4)
	}
	rev := int64(-1)
	if s.odds(3) {
		rev = s.rng.Int64N(farRevision / 2)
	}
	return func(r *runner) clientv3.Op {
		opts := slices.Clone(opts)
		if rev >= 0 {
			opts = append(opts, clientv3.WithRev(r.base+rev))
		}
		if least > 0 {
			opts = append(opts, clientv3.WithMinModRev(r.base+least))
		}
		if upTo {
			opts = append(opts, clientv3.WithRange(r.prefix+"d/3"))
		}
		return clientv3.OpGet(r.prefix+key, opts...)
	}
}

func (s *script) put() opened {
	key, value := s.one(keys), fmt.Sprint("v", s.rng.IntN(3))
	lease, before := -1, s.odds(3)
	if s.odds(3) {
		lease = s.rng.IntN(3)
	}
	return func(r *runner) clientv3.Op {
		var opts []clientv3.OpOption
		if lease >= 0 {
			opts = append(opts, clientv3.WithLease(r.lease(lease)))
		}
		if before {
			opts = append(opts, clientv3.WithPrevKV())
		}
		return clientv3.OpPut(r.prefix+key, value, opts...)
	}
}

func (s *script) delete() opened {
	key, rangeOption := s.target()
	opts := []clientv3.OpOption{rangeOption}
	if s.odds(3) {
		opts = append(opts, clientv3.WithPrevKV())
	}
	return func(r *runner) clientv3.Op { return clientv3.OpDelete(r.prefix+key, opts...) }
}

// op is an operation of a transaction.
func (s *script) op(depth int) opened {
	switch n := s.rng.IntN(10); {
	case n < 3:
		return s.get()
	case n < 7 || depth == 2:
		return s.put()
	case n < 9:
		return s.delete()
	}
	cmps, yes, no := s.branches(depth + 1)
	return func(r *runner) clientv3.Op { return clientv3.OpTxn(r.compares(cmps), r.ops(yes), r.ops(no)) }
}

func (s *script) branches(depth int) (cmps []func(r *runner) clientv3.Cmp, yes, no []opened) {
	for range s.rng.IntN(3) {
		cmps = append(cmps, s.compare())
	}
	for range s.rng.IntN(4) {
		yes = append(yes, s.op(depth))
	}
	for range s.rng.IntN(3) {
		no = append(no, s.op(depth))
	}
	if s.odds(60) { // one too many
		for range maxOps + s.rng.IntN(2) {
			no = append(no, s.get())
		}
	}
	return cmps, yes, no
}

func (s *script) txn() step {
	cmps, yes, no := s.branches(0)
	return func(r *runner) string {
		got, err := r.client.Txn(r.ctx).If(r.compares(cmps)...).Then(r.ops(yes)...).Else(r.ops(no)...).Commit()
		if err != nil {
			return r.failed(err)
		}
		return r.txn((*pb.TxnResponse)(got))
	}
}

func (s *script) compare() func(r *runner) clientv3.Cmp {
	key, ranged := s.one(keys), s.odds(3)
	if ranged {
		key = s.one(prefixes)
	}
	result := s.one([]string{"=", "!=", "<", ">"})
	what, rev, n := s.rng.IntN(5), s.rng.Int64N(farRevision/2), s.rng.IntN(4)
	return func(r *runner) clientv3.Cmp {
		key, at := r.prefix+key, rev
		if rev > 0 {
			at += r.base
		}
		var c clientv3.Cmp
		switch what {
		case 0:
			c = clientv3.Compare(clientv3.Value(key), result, fmt.Sprint("v", n))
		case 1:
			c = clientv3.Compare(clientv3.Version(key), result, n)
		case 2:
			c = clientv3.Compare(clientv3.CreateRevision(key), result, at)
		case 3:
			c = clientv3.Compare(clientv3.ModRevision(key), result, at)
		default: // leases have no order that two etcds share
			c = clientv3.Compare(clientv3.LeaseValue(key), []string{"=", "!="}[n%2], r.lease(n))
		}
		if ranged {
			c = c.WithPrefix()
		}
		return c
	}
}

func do(o opened) step {
	return func(r *runner) string {
		got, err := r.client.Do(r.ctx, o(r))
		switch {
		case err != nil:
			return r.failed(err)
		case got.Get() != nil:
			return r.got((*pb.RangeResponse)(got.Get()))
		case got.Put() != nil:
			return r.wrote((*pb.PutResponse)(got.Put()))
		}
		return r.deleted((*pb.DeleteRangeResponse)(got.Del()))
	}
}
