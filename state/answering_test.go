package state

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestUnanswering: those who do not answer are left out as long as half of the instances do.
func TestUnanswering(t *testing.T) {
	for _, c := range []struct{ all, alive, left string }{
		{"", "", ""}, {"a", "a", ""}, {"a", "", ""}, {"a b", "a", "b"}, {"a b", "", ""}, {"a b c", "a", ""}, {"a b c", "a c", "b"}, {"a b c d", "a b", "c d"},
		{"a b", "a x y z", "b"},
	} {
		instances, alive := map[string]Service{}, map[string]bool{}
		for _, node := range strings.Fields(c.all) {
			instances[node] = Service{}
		}
		for _, node := range strings.Fields(c.alive) {
			alive[node] = true
		}
		left := slices.Sorted(maps.Keys(Unanswering(instances, alive)))
		if got := strings.Join(left, " "); got != c.left {
			t.Errorf("of %q answer %q: left out %q, want %q", c.all, c.alive, got, c.left)
		}
	}
}

// TestSweepDNS: instances of nodes that do not answer leave DNS, their readers are woken, and who is back is there
// again. An instance whose node answers stays, and all stay where most are away.
func TestSweepDNS(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	nodes := map[string]*Presence{}
	for i := range 3 {
		name := fmt.Sprint("db", i)
		nodes[name] = register(t, s, name, "db", "x", time.Minute)
		must(t, s.Services.Announce(ctx, "db", name, Service{Address: fmt.Sprint("192.0.2.", i)}, false), s.Services.SetReady(ctx, "db", name, "a.example", true, ""))
	}
	standing := func(want string) {
		t.Helper()
		must(t, s.Services.SweepDNS(ctx, "db", "a.example"))
		var have []string
		for _, name := range []string{"db0", "db1", "db2"} {
			if strings.Contains(inDNS(t, s), "/db/"+name+"=") {
				have = append(have, name)
			}
		}
		if got := strings.Join(have, " "); got != want {
			t.Errorf("in DNS %q, want %q", got, want)
		}
	}
	standing("db0 db1 db2")
	before, _, err := s.Services.lastRung(ctx, []string{"db"})
	must(t, err)
	_, err = s.Client.Revoke(ctx, nodes["db1"].Lease)
	must(t, err)
	standing("db0 db2")
	must(t, s.Services.Await(ctx, []string{"db"}, before))
	register(t, s, "db1", "db", "x", time.Minute)
	standing("db0 db2")
	must(t, s.Services.SetReady(ctx, "db", "db1", "a.example", true, ""))
	standing("db0 db1 db2")
	for _, name := range []string{"db0", "db2"} {
		_, err = s.Client.Revoke(ctx, nodes[name].Lease)
		must(t, err)
	}
	standing("db0 db1 db2")
}
