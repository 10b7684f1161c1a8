package agent

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pullet/pullet/state"
)

// TestEndpoints: a host reaches the members that it knew last beside those that its configuration names, over TLS
// alone, and only in a fleet with a datastore of its own.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	e := Etcd{
		Endpoints: []string{"https://db1:2379"}, Renew: true,
		TLS: state.TLS{CA: filepath.Join(t.TempDir(), "ca.pem")},
	}
	reaches := func(want ...string) {
		t.Helper()
		if got := e.reached(); !slices.Equal(got, want) {
			t.Errorf("it reaches %v, and has to reach %v", got, want)
		}
	}
	reaches("https://db1:2379")
	for _, now := range [][]string{nil, {"https://db2:2379", "https://db3:2379"}, nil} { // nobody says more
		if err := e.remember(now); err != nil {
			t.Fatal(err)
		}
	}
	reaches("https://db1:2379", "https://db2:2379", "https://db3:2379")
	if err := e.remember([]string{"https://db1:2379", "http://db2:2379", "unix:///etc", "::", "https://db4:2379"}); err != nil {
		t.Fatal(err)
	}
	reaches("https://db1:2379", "https://db4:2379")

	if err := os.Chmod(e.known(), 0o666); err != nil { // somebody else may write it
		t.Fatal(err)
	}
	reaches("https://db1:2379")
	if err := os.Chmod(e.known(), 0o600); err != nil {
		t.Fatal(err)
	}
	e.Renew = false
	reaches("https://db1:2379")
	e.Renew, e.Endpoints = true, nil // a host by itself, whose record is embedded
	reaches()
}
