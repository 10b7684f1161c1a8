package etcdmodel

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// kvClient is the server's key-value service as etcd's client calls it. Methods that the model lacks panic.
type kvClient struct {
	pb.KVClient
	n *Conn
}

func (k *kvClient) Range(ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	return call(ctx, k.n, operationLimit, false, func() (*pb.RangeResponse, error) {
		if err := wellFormedRange(r); err != nil {
			return nil, err
		}
		return k.n.cluster.read(r)
	})
}

func (k *kvClient) Put(ctx context.Context, r *pb.PutRequest, _ ...grpc.CallOption) (*pb.PutResponse, error) {
	return call(ctx, k.n, operationLimit, true, func() (*pb.PutResponse, error) {
		if err := wellFormedPut(r); err != nil {
			return nil, err
		}
		if k.n.wrong().NoSpace {
			return nil, rpctypes.ErrGRPCNoSpace
		}
		if err := k.n.cluster.leased(r); err != nil {
			return nil, err
		}
		return k.n.cluster.put(r), nil
	})
}

func (k *kvClient) DeleteRange(
	ctx context.Context, r *pb.DeleteRangeRequest, _ ...grpc.CallOption,
) (*pb.DeleteRangeResponse, error) {
	return call(ctx, k.n, operationLimit, true, func() (*pb.DeleteRangeResponse, error) {
		if err := hasKey(r.Key); err != nil {
			return nil, err
		}
		return k.n.cluster.deleteRange(r), nil
	})
}

func (k *kvClient) Txn(ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	return call(ctx, k.n, operationLimit, writes(r), func() (*pb.TxnResponse, error) {
		if err := wellFormed(r, maxOps); err != nil {
			return nil, err
		}
		for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
			if _, err := overlaps(ops); err != nil {
				return nil, err
			}
		}
		if k.n.wrong().NoSpace && grows(r) {
			return nil, rpctypes.ErrGRPCNoSpace
		}
		return k.n.cluster.txn(r)
	})
}

func (k *kvClient) Compact(
	ctx context.Context, r *pb.CompactionRequest, _ ...grpc.CallOption,
) (*pb.CompactionResponse, error) {
	return call(ctx, k.n, operationLimit, true, func() (*pb.CompactionResponse, error) {
		if err := k.n.cluster.store.compact(r.Revision); err != nil {
			return nil, err
		}
		return &pb.CompactionResponse{Header: k.n.cluster.header()}, nil
	})
}

// leaseClient is the server's part for leases. Renewals are made by leaser.
type leaseClient struct {
	pb.LeaseClient
	n *Conn
}

func (l *leaseClient) LeaseGrant(
	ctx context.Context, r *pb.LeaseGrantRequest, _ ...grpc.CallOption,
) (*pb.LeaseGrantResponse, error) {
	return call(ctx, l.n, operationLimit, true, func() (*pb.LeaseGrantResponse, error) {
		if l.n.wrong().NoSpace {
			return nil, rpctypes.ErrGRPCNoSpace
		}
		return l.n.cluster.grant(r)
	})
}

func (l *leaseClient) LeaseRevoke(
	ctx context.Context, r *pb.LeaseRevokeRequest, _ ...grpc.CallOption,
) (*pb.LeaseRevokeResponse, error) {
	return call(ctx, l.n, operationLimit, true, func() (*pb.LeaseRevokeResponse, error) {
		return l.n.cluster.revoke(r.ID)
	})
}

func (l *leaseClient) LeaseTimeToLive(
	ctx context.Context, r *pb.LeaseTimeToLiveRequest, _ ...grpc.CallOption,
) (*pb.LeaseTimeToLiveResponse, error) {
	return call(ctx, l.n, operationLimit, false, func() (*pb.LeaseTimeToLiveResponse, error) {
		return l.n.cluster.timeToLive(r), nil
	})
}

func (l *leaseClient) LeaseLeases(
	ctx context.Context, _ *pb.LeaseLeasesRequest, _ ...grpc.CallOption,
) (*pb.LeaseLeasesResponse, error) {
	return call(ctx, l.n, operationLimit, false, func() (*pb.LeaseLeasesResponse, error) {
		return l.n.cluster.listLeases(), nil
	})
}

// leaser is etcd's client for leases, but for the renewals, which need streams.
type leaser struct {
	clientv3.Lease
	n *Conn
}

// KeepAliveOnce renews a lease. As etcd's client it tries again for as long as ctx lives when the server cannot be
// reached.
func (l *leaser) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	for {
		got, err := call(ctx, l.n, streamLimit, false, func() (*pb.LeaseKeepAliveResponse, error) {
			return l.n.cluster.keepAlive(int64(id)), nil
		})
		switch code := status.Code(err); {
		case err == nil:
			out := &clientv3.LeaseKeepAliveResponse{ResponseHeader: got.Header, ID: id, TTL: got.TTL}
			if got.TTL <= 0 {
				return out, rpctypes.ErrLeaseNotFound
			}
			return out, nil
		case ctx.Err() != nil || code != codes.Unavailable && code != codes.DeadlineExceeded:
			// A stream has no deadline of its own.
			return nil, clientv3.ContextError(ctx, err)
		}
	}
}

// KeepAlive renews a lease until ctx ends, the lease is gone, or nothing was heard for as long as it lives: then the
// channel is closed.
func (l *leaser) KeepAlive(ctx context.Context, id clientv3.LeaseID) (<-chan *clientv3.LeaseKeepAliveResponse, error) {
	out := make(chan *clientv3.LeaseKeepAliveResponse, clientv3.LeaseResponseChSize)
	if l.n.isDead() {
		close(out)
		return out, clientv3.ErrKeepAliveHalted{Reason: context.Canceled}
	}
	l.n.cluster.mu.Lock()
	begin := l.n.instants.at(l.n.latency()) // an instant of its own: the caller goes on at this one
	l.n.cluster.mu.Unlock()
	go l.renew(ctx, id, begin, out)
	return out, nil
}

func (l *leaser) renew(
	ctx context.Context, id clientv3.LeaseID, next time.Time, out chan<- *clientv3.LeaseKeepAliveResponse,
) {
	defer close(out)
	patience := 6 * time.Second // as etcd's client has it in the product until it knows better
	for l.n.wait(ctx, &luck{}, next, nil) == nil {
		one, cancel := context.WithTimeout(ctx, patience)
		got, err := l.KeepAliveOnce(one, id)
		cancel()
		if err != nil {
			return
		}
		select {
		case out <- got:
		default: // nobody reads: the client goes on
		}
		ttl := time.Duration(got.TTL) * time.Second
		next, patience = time.Now().Add((ttl / 3).Truncate(time.Microsecond)), ttl-ttl/3
	}
}

// Close ends the connection.
func (l *leaser) Close() error {
	l.n.Kill()
	return l.Lease.Close()
}
