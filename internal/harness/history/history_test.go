package history

import (
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestLostWriteIsSeen: a write that etcd acknowledged and that its history does not have is a breach.
func TestLostWriteIsSeen(t *testing.T) {
	t.Parallel()
	const written = "/written"
	write := func(rev int64, value string) []*clientv3.Event {
		return []*clientv3.Event{{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte(written), Value: []byte(value), ModRevision: rev}}}
	}
	for _, c := range []struct {
		history [][]*clientv3.Event
		want    string
	}{
		{[][]*clientv3.Event{write(2, "0"), write(3, "1")}, ""},
		{[][]*clientv3.Event{write(2, "0")}, "revision 2: etcd acknowledged 1 at revision 3, and its history does not have it"},
		{[][]*clientv3.Event{write(2, "0"), write(3, "2")}, "revision 3: etcd acknowledged 1 at revision 3, and its history does not have it"},
	} {
		j := newJudge(Fleet{Written: written, Acked: map[int64]string{2: "0", 3: "1"}})
		j.replay(c.history)
		if got := strings.Join(j.breaches, "; "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
