package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// TestRestoredInMidRun: that the record went back in time is noticed at the next look, nothing is done there any more,
// and a node that joins anew goes by what is there.
func TestRestoredInMidRun(t *testing.T) {
	t.Parallel()
	dir, saved := filepath.Join(t.TempDir(), "etcd"), filepath.Join(t.TempDir(), "saved")
	first, err := Open(ctx, Config{Fleet: "f", Dir: dir})
	must(t, err)
	must(t, first.Close(), os.CopyFS(saved, os.DirFS(dir)))
	second, err := Open(ctx, Config{Fleet: "f", Dir: dir})
	must(t, err)
	node, err := Open(ctx, Config{Fleet: "f", Endpoints: second.endpoints})
	must(t, err)
	defer node.Close()
	_, err = node.Doubts.Guard(ctx, "n1", Origin{})
	must(t, err)
	for range 10 {
		_, err := node.Client.Put(ctx, node.key("x"), "")
		must(t, err)
	}
	must(t, second.Close(), os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(saved)))
	server := open(t, dir)
	var back *WentBackError
	_, err = node.Client.Get(ctx, node.key("x"))
	if !errors.As(err, &back) || back.Is.Revision >= back.Seen.Revision || Unanswered(err) {
		t.Fatalf("%v", err)
	}
	if _, err := node.Client.Put(ctx, node.key("y"), ""); !errors.As(err, &back) || count(t, server, server.key("y")) != 0 {
		t.Errorf("it is written to: %v", err)
	}
	if _, err := node.Doubts.Guard(ctx, "n1", Origin{}); err != nil {
		t.Errorf("it joins anew: %v", err)
	}
	if _, err := node.Client.Put(ctx, node.key("y"), ""); err != nil || count(t, server, server.key("y")) != 1 {
		t.Errorf("%v", err)
	}
}

// TestAnswersOvertake: of operations that are on their way at once, one with an older answer may end last: nothing went
// back.
func TestAnswersOvertake(t *testing.T) {
	var o monotonic
	o.begin(Origin{})
	answer := func(revision int64, meanwhile func() error) error {
		return o.note(ctx, "/etcdserverpb.KV/Range", nil, &pb.RangeResponse{}, nil,
			func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
				reply.(*pb.RangeResponse).Header = &pb.ResponseHeader{ClusterId: 1, Revision: revision}
				return meanwhile()
			})
	}
	nothing := func() error { return nil }
	must(t, answer(5, nothing), answer(6, func() error { return answer(9, nothing) }))
	var back *WentBackError
	if err := answer(8, nothing); !errors.As(err, &back) || back.Seen.Revision != 9 {
		t.Errorf("%v", err)
	}
}
