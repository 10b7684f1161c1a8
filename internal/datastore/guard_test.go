package datastore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// TestGuardBegins: until a member knows who was revoked it answers its keeper alone. Others wait a moment, and are sent
// to another member then, which is not the same as a refusal.
func TestGuardBegins(t *testing.T) {
	t.Parallel()
	g := newGuard()
	calls := func(name string, number int64) error {
		cert := &x509.Certificate{
			Subject: pkix.Name{CommonName: name}, SerialNumber: big.NewInt(number), NotAfter: time.Now().Add(time.Hour),
		}
		info := credentials.TLSInfo{State: tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}}
		ctx := peer.NewContext(t.Context(), &peer.Peer{AuthInfo: info})
		_, err := g.call(ctx, nil, nil, func(context.Context, any) (any, error) { return nil, nil })
		return err
	}
	if err := calls(keeperUser, 1); err != nil {
		t.Error(err)
	}
	if err := calls("web1", 2); status.Code(err) != codes.Unavailable {
		t.Error(err)
	}
	begins := time.AfterFunc(answerTime/10, func() { g.revoke([]string{"3"}) })
	defer begins.Stop()
	if err := calls("web1", 2); err != nil {
		t.Error("it does not wait: ", err)
	}
	if err := calls("web2", 3); status.Code(err) != codes.PermissionDenied {
		t.Error(err)
	}
}
