package state

import (
	"context"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// answers is how long etcd took for what it was asked.
type answers struct {
	mu   sync.Mutex
	n    int
	took time.Duration
}

// note is an interceptor for the operations of a client. What failed was no answer, and leases are asked beside pulls.
func (a *answers) note(
	ctx context.Context,
	method string,
	req, reply any,
	conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	began := time.Now()
	err := invoke(ctx, method, req, reply, conn, opts...)
	if err == nil && strings.HasPrefix(method, "/etcdserverpb.KV/") {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.n++
		a.took += time.Since(began)
	}
	return err
}

// AnswerTime is how long an answer of etcd took, in the mean since this was asked last; 0: there was none.
func (s *Store) AnswerTime() time.Duration {
	a := &s.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	n, took := a.n, a.took
	a.n, a.took = 0, 0
	return took / time.Duration(max(1, n))
}
