package state

import (
	"context"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// monotonic notices in the middle of a pull that the fleet's record went back in time: what was claimed since may be
// forgotten there. From then on nothing is read or written any more, until the node joins anew and Guard judges.
type monotonic struct {
	mu   sync.Mutex
	era  int // counts the times that the node joined; 0: it did not
	seen Origin
	back *WentBackError
}

// begin forgets what was seen before, but for an answer that the node joins with.
func (o *monotonic) begin(seen Origin) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen, o.back = seen, nil
	o.era++
}

// Monotonic is the interceptor for the operations of the store's client that notices a record which went back in time.
// Open installs it; a client that Over is given needs it as well.
func (s *Store) Monotonic() grpc.UnaryClientInterceptor { return s.monotonic.note }

// note is an interceptor for the operations of a client. Reads are linearizable, at whatever endpoint: an answer is
// never older than those that were there before it was asked for. Of several that are asked at once an older one may
// well come last.
func (o *monotonic) note(
	ctx context.Context,
	method string,
	req, reply any,
	conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	if !strings.HasPrefix(method, "/etcdserverpb.KV/") { // leases are answered by one member from what it has
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	before, era, back := o.before()
	if back != nil {
		return back
	}
	err := invoke(ctx, method, req, reply, conn, opts...)
	answer, ok := reply.(interface{ GetHeader() *pb.ResponseHeader })
	if err != nil || !ok || answer.GetHeader() == nil {
		return err
	}
	if back := o.see(before, era,
		Origin{Cluster: answer.GetHeader().ClusterId, Revision: answer.GetHeader().Revision}); back != nil {
		return back
	}
	return nil
}

// before is what was seen before an operation, and in which era.
func (o *monotonic) before() (Origin, int, *WentBackError) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen, o.era, o.back
}

// see files an answer to what was asked after a moment. Where the node joined anew meanwhile it says nothing about the
// record that it joined.
func (o *monotonic) see(before Origin, era int, is Origin) *WentBackError {
	o.mu.Lock()
	defer o.mu.Unlock()
	back := &WentBackError{before, is}
	went := before.Revision != 0 && (is.Cluster != before.Cluster || is.Revision < before.Revision)
	switch {
	case era == 0:
		return nil
	case era != o.era && went:
		return back
	case era != o.era:
		return nil
	case went:
		o.back = back
	case is.Revision > o.seen.Revision:
		o.seen = is
	}
	return o.back
}
