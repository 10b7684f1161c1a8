package datastore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/internal/tier"
)

// TestEndedMember: a call that breaks on the record of a member which stopped by itself has its client ask another
// member, and the process lives. Where the member did not stop, a call that breaks ends the process.
func TestEndedMember(t *testing.T) {
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: keeperUser}, NotAfter: time.Now().Add(time.Hour),
	}
	state := tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	ctx := peer.NewContext(t.Context(), &peer.Peer{AuthInfo: credentials.TLSInfo{State: state}})
	g, ends := newGuard(), make(chan struct{})
	calls, end := 0, func() {}
	breaks := func(context.Context, any) (any, error) {
		calls++
		end()
		panic("the record is closed")
	}
	g.revoke(nil)
	call := func() (broke any, err error) {
		defer func() { broke = recover() }()
		_, err = g.call(ctx, nil, &grpc.UnaryServerInfo{}, breaks)
		return nil, err
	}
	if broke, _ := call(); broke == nil {
		t.Error("a member that is not known to stop hides what broke")
	}
	g.follows(ends)
	if broke, _ := call(); broke == nil {
		t.Error("a member that serves hides what broke")
	}
	calls, end = 0, func() { close(ends) }
	for range 2 { // the second one would hang on a lock that the first one left
		if broke, err := call(); broke != nil || !errors.Is(err, errBegins) || calls != 1 {
			t.Errorf("a member that stopped: %v, %v, %d calls on its record", broke, err, calls)
		}
	}
}

// TestStopOfEndedMember: a call that hangs on the record of a member which stopped by itself does not keep the member
// from ending.
func TestStopOfEndedMember(t *testing.T) {
	t.Parallel()
	tier.Long(t, "a call hangs for as long as a member waits")
	f := made(t)
	keys, err := readKeys(f.Config, f.Fleet)
	f.must(err)
	f.must(keys.believe())
	begun, ends := make(chan struct{}, 1), make(chan struct{})
	t.Cleanup(func() { close(ends) })
	hangs := grpc.UnaryInterceptor(func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
		begun <- struct{}{}
		<-ends
		return nil, errBegins
	})
	m, err := startMember(f.Context(), f.Config, f.Node, []grpc.ServerOption{hangs})
	f.must(err)
	credentials, err := os.ReadFile(f.file(keeperFile))
	f.must(err)
	client, err := f.connect(credentials)
	f.must(err)
	t.Cleanup(func() { _ = client.Close() })
	go func() { _, _ = client.Status(f.Context(), f.Endpoint()) }() // the end of the test ends it
	<-begun
	m.server.Server.HardStop()
	stopped := make(chan struct{})
	go func() { defer close(stopped); m.stop() }()
	select {
	case <-stopped:
	case <-time.After(patience.Stretch(4 * stopTime)):
		t.Error("the member waits for a call that hangs")
	}
}
