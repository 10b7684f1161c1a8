package state

import (
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// TestInOrder: the keys below a prefix are told in the order in which they were written, whatever was written elsewhere
// since.
func TestInOrder(t *testing.T) {
	keys := map[string]*mvccpb.KeyValue{}
	for key, revision := range map[string]int64{"took/n1/a": 3, "took/n1/b": 7, "took/n1/c": 5, "took/n2/a": 9, "place/0": 1, "count": 20} {
		keys[key] = &mvccpb.KeyValue{ModRevision: revision}
	}
	for prefix, want := range map[string]string{"took/n1/": "took/n1/a took/n1/c took/n1/b", "took/n2/": "took/n2/a", "took/n3/": ""} {
		if got := strings.Join(inOrder(keys, prefix), " "); got != want {
			t.Errorf("%s: %q, want %q", prefix, got, want)
		}
	}
}
