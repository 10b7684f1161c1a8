package lock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/pullet/pullet/state"
)

var errCut = errors.New("cut off")

// withoutDeletes is the fleet's store as one sees it whose deletes never arrive, and their number.
func (f *fleet) withoutDeletes() (s *state.Store, asked *int) {
	f.t.Helper()
	asked = new(int)
	cut := func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if strings.HasSuffix(method, "/DeleteRange") {
			*asked++
			return errCut
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: member.Client.Endpoints(), Logger: zap.NewNop(), DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(cut)}})
	f.must(err)
	f.t.Cleanup(func() { client.Close() })
	began := time.Now()
	return state.Over(client, strings.Split(f.Versions.CurrentKey(), "/")[2], func() time.Duration { return time.Since(began) }), asked
}

// TestLeaveFails: who cannot give its place in the queue up says so beside the reason to leave, unless its time was
// over: then the wait is the answer.
func TestLeaveFails(t *testing.T) {
	for name, end := range map[string]func(f *fleet, cancel func()){
		"superseded":       func(f *fleet, _ func()) { f.propose("v2") },
		"its time is over": func(_ *fleet, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			f.mustTry(f.request("holder", "web"))
			store, asked := f.withoutDeletes()
			q := f.request("me", "web")
			waits := make(chan struct{}, 100)
			q.Waiting = func(*Wait) { waits <- struct{}{} }
			ctx, cancel := context.WithCancel(f.ctx)
			defer cancel()
			left := make(chan error, 1)
			go func() { left <- NewTurn(store, q).Acquire(ctx) }()
			<-waits
			end(f, cancel)
			err := <-left
			if over := asWait(err) != nil; over != (name != "superseded") || errors.Is(err, ErrSuperseded) == over || errors.Is(err, errCut) == over || *asked == 0 {
				t.Errorf("%v; %d deletes", err, *asked)
			}
		})
	}
}

// TestLeaveWithoutATicket: who is not in the queue asks nothing of etcd to leave it.
func TestLeaveWithoutATicket(t *testing.T) {
	f := newFleet(t)
	store, asked := f.withoutDeletes()
	turn := NewTurn(store, f.request("me", "web"))
	if wait, err := turn.Try(f.ctx); wait != nil || err != nil {
		t.Fatalf("%v %v", wait, err)
	}
	if err := turn.Leave(f.ctx); err != nil || *asked != 0 {
		t.Errorf("%v; %d deletes", err, *asked)
	}
}

// TestReleaseUnanswered: a claim whose release was not answered is not forgotten: it can be released again.
func TestReleaseUnanswered(t *testing.T) {
	f := newFleet(t)
	turn := f.mustTry(f.request("me", "web"))
	over, cancel := context.WithCancel(f.ctx)
	cancel()
	if err := turn.Release(over); !errors.Is(err, context.Canceled) || !turn.Holds() {
		t.Errorf("%v, holds: %v", err, turn.Holds())
	}
	f.must(turn.Release(f.ctx))
	f.mustTry(f.request("other", "web"))
}
