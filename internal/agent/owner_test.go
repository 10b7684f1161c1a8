package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

// TestNameless: a host cannot pull whose name another one has, or whose own record cannot be read; else it can.
func TestNameless(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, err := state.Open(t.Context(), state.Config{Fleet: "f", Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var c Config
	c.Fleet, c.Node.Name, c.Paths.State = "f", "web1", dir
	nameless := func() error {
		local, err := c.ReadLocal()
		if err != nil {
			return err
		}
		return Nameless(t.Context(), c, local, store)
	}
	record := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "node.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	registers := func(owner string) {
		t.Helper()
		_, err := store.Presences.Register(t.Context(), state.Node{Name: "web1"}, state.Alive{Owner: owner}, nil, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
	}
	pulls := func(what string) {
		t.Helper()
		if err := nameless(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	pulls("before the first pull")
	record(`{"secret": "of this host"}`)
	pulls("nobody has the name")
	registers(ownerOf(c, "of this host"))
	pulls("it has the name")
	record(`{"secret": "of another host"}`)
	if err := nameless(); !errors.As(err, new(*state.NameTakenError)) {
		t.Errorf("another one has the name: %v", err)
	}
	record(`{`)
	if err := nameless(); err == nil || !strings.Contains(err.Error(), "node.json is damaged") {
		t.Errorf("a record that cannot be read: %v", err)
	}
}
