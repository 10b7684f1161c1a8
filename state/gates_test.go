package state

import (
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// TestLastOf: of the keys below a prefix the one counts that was written last, whatever was written elsewhere since.
func TestLastOf(t *testing.T) {
	keys := map[string]*mvccpb.KeyValue{}
	for key, revision := range map[string]int64{"took/n1/a": 3, "took/n1/b": 7, "took/n1/c": 5, "took/n2/a": 9, "place/0": 1, "count": 20} {
		keys[key] = &mvccpb.KeyValue{ModRevision: revision}
	}
	for prefix, want := range map[string]string{"took/n1/": "took/n1/b", "took/n2/": "took/n2/a", "took/n3/": ""} {
		if got := lastOf(keys, prefix); got != want {
			t.Errorf("%s: %q, want %q", prefix, got, want)
		}
	}
}
