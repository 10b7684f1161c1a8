package datastore

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/pullet/pullet/state"
)

// TestMeter: what a request counts, and when it is too much.
func TestMeter(t *testing.T) {
	now := time.Now()
	put := &pb.PutRequest{Key: []byte("k"), Value: make([]byte, 1<<20-recordWeight-1)} // 1 MiB with its key
	op := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}}
	both := &pb.TxnRequest{Success: []*pb.RequestOp{op}, Failure: []*pb.RequestOp{op, op}}
	nested := &pb.TxnRequest{Success: []*pb.RequestOp{
		op, {Request: &pb.RequestOp_RequestTxn{RequestTxn: both}},
	}}
	for what, c := range map[string]struct {
		request any
		want    int
	}{
		"put": {put, 1 << 20}, "either branch": {both, 2 << 20}, "nested": {nested, 3 << 20},
		"lease": {&pb.LeaseGrantRequest{}, recordWeight}, "get": {&pb.RangeRequest{}, 0},
		"delete": {&pb.DeleteRangeRequest{}, 0},
	} {
		if got := grows(c.request); got != c.want {
			t.Errorf("%s: %d bytes, and should be %d", what, got, c.want)
		}
	}
	m := newMeter()
	who := func(name string) *x509.Certificate { return &x509.Certificate{Subject: pkix.Name{CommonName: name}} }
	for i := range 64 {
		if !m.admit(who("web1"), put, now) {
			t.Fatalf("%d MiB are too much", i+1)
		}
	}
	if m.admit(who("web1"), put, now) || !m.admit(who("web1"), &pb.RangeRequest{}, now) {
		t.Error("65 MiB at once, or reading")
	}
	if !m.admit(who("web2"), put, now) {
		t.Error("another name is held back, too")
	}
	if now = now.Add(8 * time.Second); !m.admit(who("web1"), put, now) || m.admit(who("web1"), put, now) {
		t.Error("one more in 8 seconds")
	}
	for range 100 {
		if !m.admit(who(keeperUser), put, now) {
			t.Fatal("the keeper is held back")
		}
	}
	if got := m.throttled(); !slices.Equal(got, []string{"web1"}) || len(m.throttled()) > 0 {
		t.Error(got)
	}
	if got := m.String(); got != "who wrote the most since the datastore started: web1 65 MiB, web2 1 MiB" {
		t.Error(got)
	}
}

// TestWritesTooMuch: a host that writes without end is held back, and told of; others write, and an operator publishes
// as many executables as are allowed at once.
func TestWritesTooMuch(t *testing.T) {
	t.Parallel()
	f := made(t)
	said := &strings.Builder{}
	f.Log.Logger.Out = said
	k := f.keeps()
	f.rounds(k)
	c := f.client("db1")
	value := strings.Repeat("x", 1<<20)
	var err error
	written := 0
	for ; err == nil && written < 200; written++ {
		_, err = c.Put(t.Context(), "/pullet/prod/service/db1/web", value)
	}
	if !errors.Is(err, rpctypes.ErrTooManyRequests) || written < 60 || written > 100 {
		t.Errorf("after %d MiB: %v", written, err)
	}
	s := f.store("admin")
	for i := range 7 {
		content := bytes.Repeat([]byte{byte('a' + i)}, state.MaxExtension)
		_, err := s.Extensions.Publish(t.Context(), "x", "admin", content)
		f.must(err)
	}
	f.rounds(k)
	if text := said.String(); !strings.Contains(text, "held back: they write more") || !strings.Contains(text, "names=db1") {
		t.Error(text)
	}
}
