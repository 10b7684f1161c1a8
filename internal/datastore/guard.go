package datastore

import (
	"context"
	"crypto/x509"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// guard ends what goes on with a certificate that counts no more. etcd itself asks for a certificate when a connection
// is opened and for a user when a watch begins, and never again: a host that was shut out would see each change of the
// record as long as it kept its connection, and could act on it again as soon as another host had the name.
type guard struct {
	meter   *meter
	mu      sync.Mutex
	begun   chan struct{}                                    // closed when it is known who was revoked
	revoked map[string]bool                                  // by the number of the certificate; nil: not known yet
	open    map[string]map[*guardedStream]context.CancelFunc // what goes on, by the number of its certificate
	paused  bool                                             // the member stops
	ends    <-chan struct{}                                  // closed when etcd stops, also by itself; nil: not known
}

func newGuard() *guard {
	return &guard{meter: newMeter(), begun: make(chan struct{}), open: map[string]map[*guardedStream]context.CancelFunc{}}
}

// options are for a member that starts.
func (g *guard) options() []grpc.ServerOption {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paused, g.ends = false, nil
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(g.call, g.meter.call), grpc.ChainStreamInterceptor(g.stream)}
}

// pause has who watches, or keeps a lease, go on at another member: etcd would wait for them before it stops.
func (g *guard) pause() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paused = true
	for _, some := range g.open {
		for _, end := range some {
			end()
		}
	}
}

func (g *guard) pauses() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.paused
}

// revoke shuts out who has these certificates, and nobody else.
func (g *guard) revoke(numbers []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.revoked == nil {
		close(g.begun)
	}
	g.revoked = map[string]bool{}
	for _, number := range numbers {
		g.revoked[number] = true
		for _, end := range g.open[number] {
			end()
		}
	}
}

// follows notes what is closed when etcd stops.
func (g *guard) follows(ends <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ends = ends
}

// ended reports that etcd stops.
func (g *guard) ended() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stops()
}

// stops is ended for a caller that holds mu.
func (g *guard) stops() bool {
	select {
	case <-g.ends:
		return true
	default:
		return false
	}
}

// unlessEnded has a call ask another member that the end of etcd broke. A member that was removed stops by itself, and
// calls that are in the middle panic on the record that is closed by then. They leave its locks locked: no other call
// begins (refuses), and stop does not wait for those that hang. Any other panic goes on.
func (g *guard) unlessEnded(err *error) {
	if broke := recover(); broke != nil {
		if !g.ended() {
			panic(broke)
		}
		*err = errBegins
	}
}

func (g *guard) call(
	ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (answer any, err error) {
	defer g.unlessEnded(&err)
	cert := presented(ctx)
	g.await(ctx, cert)
	g.mu.Lock()
	err = g.refuses(cert)
	g.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return handle(ctx, request)
}

// guardedStream ends with its certificate.
type guardedStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *guardedStream) Context() context.Context { return s.ctx }

func (g *guard) stream(
	server any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler,
) (err error) {
	defer g.unlessEnded(&err)
	guarded, end, err := g.begin(s)
	if err != nil {
		return err
	}
	defer end()
	if err = handle(server, guarded); g.pauses() {
		return errBegins
	}
	return err
}

// begin begins a stream. End has to be called behind it.
func (g *guard) begin(s grpc.ServerStream) (guarded *guardedStream, end func(), err error) {
	cert := presented(s.Context())
	g.await(s.Context(), cert)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.refuses(cert); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithDeadline(s.Context(), cert.NotAfter)
	guarded, number := &guardedStream{s, ctx}, cert.SerialNumber.Text(16)
	if g.open[number] == nil {
		g.open[number] = map[*guardedStream]context.CancelFunc{}
	}
	g.open[number][guarded] = cancel
	return guarded, func() {
		cancel()
		g.mu.Lock()
		defer g.mu.Unlock()
		if delete(g.open[number], guarded); len(g.open[number]) == 0 {
			delete(g.open, number)
		}
	}, nil
}

// errBegins has clients of etcd ask another member, or again in a moment, also for what may not be done twice: they
// know it by these words.
var errBegins = status.Error(codes.Unavailable, "there is no connection available")

// await waits a moment until it is known who was revoked: the keeper looks when etcd serves.
func (g *guard) await(ctx context.Context, cert *x509.Certificate) {
	if cert == nil || cert.Subject.CommonName == keeperUser {
		return
	}
	select {
	case <-g.begun:
	case <-time.After(answerTime):
	case <-ctx.Done():
	}
}

// refuses says why a certificate does not count. Until it is known who was revoked, that of a keeper alone does.
func (g *guard) refuses(cert *x509.Certificate) error {
	switch {
	case cert == nil || g.revoked[cert.SerialNumber.Text(16)] || time.Now().After(cert.NotAfter):
		return rpctypes.ErrGRPCPermissionDenied
	case g.paused, g.stops(), g.revoked == nil && cert.Subject.CommonName != keeperUser:
		return errBegins
	}
	return nil
}

// presented is the certificate that the client of a call presented when it connected.
func presented(ctx context.Context) *x509.Certificate {
	p, _ := peer.FromContext(ctx)
	if p == nil {
		return nil
	}
	info, _ := p.AuthInfo.(credentials.TLSInfo)
	if len(info.State.PeerCertificates) == 0 {
		return nil
	}
	return info.State.PeerCertificates[0]
}
