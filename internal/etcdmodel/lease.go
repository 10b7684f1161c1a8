package etcdmodel

import (
	"maps"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// maxTTL is the longest lease that etcd gives, in seconds.
const maxTTL = 9_000_000_000

// lease is a lease, also one that ended: a restore can bring it back.
type lease struct {
	id, ttl  int64
	granted  int64 // the revision when it was granted
	ended    int64 // the revision when it was revoked or had expired; 0: it lives
	deadline time.Time
	end      time.Time // when etcd notices the deadline
	timer    *time.Timer
	keys     map[string]bool
}

// detach takes a key off its lease.
func (s *store) detach(kv *mvccpb.KeyValue) {
	if l := s.leases[kv.Lease]; l != nil {
		delete(l.keys, string(kv.Key))
	}
}

// lease is a lease that lives.
func (s *store) lease(id int64) (*lease, error) {
	if l := s.leases[id]; l != nil && l.ended == 0 {
		return l, nil
	}
	return nil, rpctypes.ErrGRPCLeaseNotFound
}

// revoke ends a lease and deletes its keys, in one revision.
func (s *store) revoke(id int64) (*pb.LeaseRevokeResponse, error) {
	l, err := s.lease(id)
	if err != nil {
		return nil, err
	}
	l.timer.Stop()
	for _, key := range slices.Sorted(maps.Keys(l.keys)) {
		s.deleteRange(&pb.DeleteRangeRequest{Key: []byte(key)})
	}
	l.ended = s.current()
	return &pb.LeaseRevokeResponse{Header: s.header()}, nil
}

// rewind makes the lease what it was when the store's revision was its present one; the term of one that lives begins
// anew.
func (l *lease) rewind(s *store) {
	l.timer.Stop()
	switch {
	case l.granted > s.revision:
		delete(s.leases, l.id)
	case l.ended == 0 || l.ended > s.revision:
		l.ended = 0
	}
}

// grant gives a lease of ttl seconds.
func (c *Cluster) grant(r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	if r.TTL > maxTTL {
		return nil, rpctypes.ErrGRPCLeaseTTLTooLarge
	}
	id := r.ID
	if id == 0 {
		id = int64(c.rng.Uint64()>>1 | 1)
	}
	if _, err := c.lease(id); err == nil {
		return nil, rpctypes.ErrGRPCLeaseExist
	}
	l := &lease{id: id, ttl: max(r.TTL, 1), granted: c.revision, keys: map[string]bool{}}
	c.leases[id] = l
	c.renew(l)
	return &pb.LeaseGrantResponse{Header: c.header(), ID: id, TTL: l.ttl}, nil
}

// renew begins the term of a lease. etcd notices the end up to a second late, never early.
func (c *Cluster) renew(l *lease) {
	l.deadline = time.Now().Add(time.Duration(l.ttl) * time.Second)
	c.instants.free(l.end)
	l.end = c.instants.at(time.Until(l.deadline) + time.Duration(c.rng.Int64N(int64(time.Second))))
	end := time.Until(l.end)
	if l.timer == nil {
		l.timer = time.AfterFunc(end, func() { c.expire(l) })
	} else {
		l.timer.Reset(end)
	}
}

// expire takes a lease back whose term is over.
func (c *Cluster) expire(l *lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || l.ended != 0 || c.leases[l.id] != l || time.Now().Before(l.deadline) {
		return
	}
	c.by = ""
	_, _ = c.revoke(l.id) // it lives, as was seen
	c.notify(c.commit())
}

// keepAlive renews a lease; a time to live of 0 says that there is none. One whose term is over is not saved by it.
func (c *Cluster) keepAlive(id int64) *pb.LeaseKeepAliveResponse {
	out := &pb.LeaseKeepAliveResponse{Header: c.header(), ID: id}
	if l, err := c.lease(id); err == nil && time.Now().Before(l.deadline) {
		c.renew(l)
		out.TTL = l.ttl
	}
	return out
}

func (c *Cluster) timeToLive(r *pb.LeaseTimeToLiveRequest) *pb.LeaseTimeToLiveResponse {
	out := &pb.LeaseTimeToLiveResponse{Header: c.header(), ID: r.ID, TTL: -1}
	l, err := c.lease(r.ID)
	if err != nil {
		return out
	}
	out.TTL, out.GrantedTTL = int64(time.Until(l.deadline).Seconds()), l.ttl
	if r.Keys {
		for _, key := range slices.Sorted(maps.Keys(l.keys)) {
			out.Keys = append(out.Keys, []byte(key))
		}
	}
	return out
}

func (c *Cluster) listLeases() *pb.LeaseLeasesResponse {
	out := &pb.LeaseLeasesResponse{Header: c.header()}
	for _, id := range slices.Sorted(maps.Keys(c.leases)) {
		if c.leases[id].ended == 0 {
			out.Leases = append(out.Leases, &pb.LeaseStatus{ID: id})
		}
	}
	return out
}
