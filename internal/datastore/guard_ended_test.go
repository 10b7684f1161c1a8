package datastore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// TestEndedMember: a call that breaks on the record of a member which stopped by itself has its client ask another
// member, and the process lives. Where the member did not stop, a call that breaks ends the process.
func TestEndedMember(t *testing.T) {
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: keeperUser}, NotAfter: time.Now().Add(time.Hour),
	}
	state := tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	ctx := peer.NewContext(t.Context(), &peer.Peer{AuthInfo: credentials.TLSInfo{State: state}})
	breaks := func(context.Context, any) (any, error) { panic("the record is closed") }
	g, ends := newGuard(), make(chan struct{})
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
	close(ends)
	if broke, err := call(); broke != nil || !errors.Is(err, errBegins) {
		t.Errorf("a member that stopped: %v, %v", broke, err)
	}
}
