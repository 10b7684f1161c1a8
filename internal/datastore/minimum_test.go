package datastore

import (
	"strings"
	"testing"

	"github.com/pullet/pullet/state"
)

// TestTooHighMinimum: the datastore serves the record whatever the fleet's minimum is, also when it starts anew: else
// nobody could lower it. A host cannot raise it by hand. A pullet etcd counts among those who read the record.
func TestTooHighMinimum(t *testing.T) {
	t.Parallel()
	f := created(t)
	store := f.store("admin")
	host, operator := f.client("db1"), f.client("admin")
	const key, value = "/pullet/prod/minimum", `{"format": 9999, "release": "v9.0.0"}`
	if _, err := host.Put(t.Context(), key, value); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("a host sets the minimum: %v", err)
	}
	f.until("the keeper is counted", func() bool {
		_, readers, err := store.Nodes.Readers(t.Context())
		f.must(err)
		for _, r := range readers {
			if r.Program == state.KeeperProgram {
				return r.Node == "db1" && r.Format == state.Format
			}
		}
		return false
	})
	_, err := operator.Put(t.Context(), key, value)
	f.must(err)
	f.end()
	f.serve()
	operator = f.client("admin")
	if got, err := operator.Get(t.Context(), key); err != nil || got.Count != 1 {
		t.Errorf("it serves %v, %v", got, err)
	}
}
