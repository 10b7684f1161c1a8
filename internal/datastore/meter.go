package datastore

import (
	"context"
	"crypto/x509"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
)

// What one name may write: as much as eight of the largest executables at once, and one in a minute for good. The
// history of two hours, which etcd keeps at most, is then half of the default quota for somebody who writes one record
// again and again.
const (
	writtenAtOnce   = 64 << 20 // bytes
	writtenASecond  = 8 << 20 / 60.0
	recordWeight    = 256 // bytes that a record takes beside its key and its value, as etcd counts them
	electionService = "/v3electionpb."
	lockService     = "/v3lockpb."
)

// meter counts what each name writes, and holds it back where it is too much. Names are those of certificates: there
// are as many as were let in.
type meter struct {
	mu      sync.Mutex
	writers map[string]*writer
}

type writer struct {
	*rate.Limiter
	written   int64 // bytes, since the datastore started
	throttled bool  // since people were told last
}

func newMeter() *meter { return &meter{writers: map[string]*writer{}} }

// admit reports a request for which there is room. One of the keeper is never too much.
func (m *meter) admit(cert *x509.Certificate, request any, now time.Time) bool {
	bytes, name := grows(request), cert.Subject.CommonName
	if bytes == 0 || name == keeperUser {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.writers[name]
	if w == nil {
		w = &writer{Limiter: rate.NewLimiter(writtenASecond, writtenAtOnce)}
		m.writers[name] = w
	}
	if !w.AllowN(now, bytes) {
		w.throttled = true
		return false
	}
	w.written += int64(bytes)
	return true
}

// grows is how many bytes a request adds to the datastore.
func grows(request any) int {
	switch r := request.(type) {
	case *pb.PutRequest:
		return recordWeight + len(r.Key) + len(r.Value)
	case *pb.TxnRequest:
		return max(grow(r.Success), grow(r.Failure))
	case *pb.LeaseGrantRequest:
		return recordWeight
	}
	return 0
}

func grow(ops []*pb.RequestOp) (sum int) {
	for _, op := range ops {
		if put := op.GetRequestPut(); put != nil {
			sum += grows(put)
		}
		if txn := op.GetRequestTxn(); txn != nil {
			sum += grows(txn)
		}
	}
	return sum
}

// call holds back who writes too much, in the words of an etcd with too much to do: pullet waits a moment then, and
// tries again. The locks and elections of etcd's own, which write past this, are closed: nothing of pullet's uses them.
func (m *meter) call(ctx context.Context, request any, i *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if strings.HasPrefix(i.FullMethod, lockService) || strings.HasPrefix(i.FullMethod, electionService) {
		return nil, rpctypes.ErrGRPCPermissionDenied
	}
	if cert := presented(ctx); cert != nil && !m.admit(cert, request, time.Now()) {
		return nil, rpctypes.ErrGRPCRequestTooManyRequests
	}
	return handle(ctx, request)
}

// String names who wrote the most.
func (m *meter) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	written := map[string]int64{}
	for name, w := range m.writers {
		written[name] = w.written
	}
	return "who wrote the most since the datastore started: " + heaviest(written)
}

// throttled are those who were held back since this was asked last.
func (m *meter) throttled() (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.writers)) {
		if w := m.writers[name]; w.throttled {
			names, w.throttled = append(names, name), false
		}
	}
	return names
}

// tell says who writes more than pullet does.
func (m *meter) tell(log *logrus.Entry) {
	if names := m.throttled(); len(names) > 0 {
		log.WithField("names", strings.Join(names, ", ")).Warn(
			"held back: they write more to the datastore than 64 MiB at once and 8 MiB a minute")
	}
}
