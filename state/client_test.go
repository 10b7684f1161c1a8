package state

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// endsEarly is a stream that ends before anything is sent, as often as it says.
type endsEarly struct {
	grpc.ClientStream
	left *atomic.Int32
}

func (s endsEarly) SendMsg(m any) error {
	if s.left.Add(-1) >= 0 {
		return errors.Join(s.CloseSend(), io.EOF)
	}
	return s.ClientStream.SendMsg(m)
}

// TestStreamEnded: a lease is renewed though the member that is asked just stops: another stream is tried. etcd's
// client alone gives up, which is why the interceptor is there.
func TestStreamEnded(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	var left atomic.Int32
	ends := func(ctx context.Context, of *grpc.StreamDesc, conn *grpc.ClientConn, method string, begin grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := begin(ctx, of, conn, method, opts...)
		return endsEarly{stream, &left}, err
	}
	client := func(chain ...grpc.StreamClientInterceptor) *clientv3.Client {
		t.Helper()
		c, err := clientv3.New(clientv3.Config{
			Endpoints: s.Client.Endpoints(), DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(chain...)},
		})
		must(t, err)
		t.Cleanup(func() { must(t, c.Close()) })
		return c
	}
	bare, ours := client(ends), client(telling, ends)
	lease, err := ours.Grant(ctx, 60)
	must(t, err)
	left.Store(3)
	if _, err := ours.KeepAliveOnce(ctx, lease.ID); err != nil {
		t.Errorf("the lease is not renewed: %v", err)
	}
	left.Store(1)
	if _, err := bare.KeepAliveOnce(ctx, lease.ID); !errors.Is(err, io.EOF) {
		t.Errorf("etcd's client tries again by itself: the interceptor is not needed any more (%v)", err)
	}
}
