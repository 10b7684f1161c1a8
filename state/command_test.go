package state

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// TestPendingCommands: nodes read what they may have to do something about, without what others wrote; people read it all.
func TestPendingCommands(t *testing.T) {
	s := open(t, t.TempDir())
	opened := func(want ...string) {
		t.Helper()
		all, _, err := s.PendingCommands(ctx)
		must(t, err)
		var ids []string
		for _, c := range all {
			ids = append(ids, c.ID)
			for _, r := range c.Results {
				if r.Output != "" {
					t.Errorf("%s reads the output of %s", c.ID, r.Node)
				}
			}
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%q, want %q", ids, want)
		}
	}
	opened()
	for _, id := range []string{"c1", "c2"} {
		must(t, s.Give(ctx, Command{ID: id, Stages: [][]string{{"n1"}, {"n2"}}, At: time.Now(), Until: time.Now().Add(time.Hour)}))
	}
	opened("c1", "c2")
	for stage, node := range []string{"n1", "n2"} {
		begun, err := s.BeginCommand(ctx, "c1", CommandResult{Node: node, State: Running})
		if must(t, err); !begun {
			t.Fatal(node)
		}
		must(t, s.EndCommand(ctx, "c1", CommandResult{Node: node, State: Ran, Output: "from " + node}, stage))
		if node == "n1" {
			opened("c1", "c2")
		}
	}
	opened("c2")
	c, _, err := s.Command(ctx, "c1")
	must(t, err)
	if got := slices.Sorted(maps.Keys(c.Results)); !slices.Equal(got, []string{"n1", "n2"}) || c.Results["n2"].Output != "from n2" || c.Results["n1"].State != Ran {
		t.Errorf("%+v", c)
	}
	must(t, s.ForgetCommands(ctx, time.Now().Add(2*keptCommands)))
	if all, _, err := s.Commands(ctx); err != nil || len(all) != 0 || count(t, s, s.key("command_output")) != 0 {
		t.Errorf("%+v %v", all, err)
	}
}

// TestManyCommands: more are pending than etcd answers in one transaction.
func TestManyCommands(t *testing.T) {
	s := open(t, t.TempDir())
	n := 2*bellsAtOnce + 1
	for i := range n {
		must(t, s.Give(ctx, Command{ID: fmt.Sprintf("c%03d", i), Stages: [][]string{{"n1"}}, At: time.Now(), Until: time.Now().Add(time.Hour)}))
	}
	if all, _, err := s.PendingCommands(ctx); err != nil || len(all) != n || all[n-1].ID != "c200" || !all[n-1].Open {
		t.Errorf("%d %v", len(all), err)
	}
}

// TestHaltedCommands: nodes look at a command that failed only as long as it runs somewhere, and none begins with it afterwards.
func TestHaltedCommands(t *testing.T) {
	s := open(t, t.TempDir())
	must(t, s.Give(ctx, Command{ID: "c1", Stages: [][]string{{"n1", "n2", "n3"}}, At: time.Now(), Until: time.Now().Add(time.Hour)}))
	for _, node := range []string{"n1", "n2"} {
		begun, err := s.BeginCommand(ctx, "c1", CommandResult{Node: node, State: Running})
		if must(t, err); !begun {
			t.Fatal(node)
		}
	}
	pending := func(want int) {
		t.Helper()
		if all, _, err := s.PendingCommands(ctx); err != nil || len(all) != want {
			t.Errorf("%+v %v, want %d", all, err, want)
		}
	}
	must(t, s.EndCommand(ctx, "c1", CommandResult{Node: "n1", State: Failed}, 0))
	pending(1) // n2 is at it
	must(t, s.EndCommand(ctx, "c1", CommandResult{Node: "n2", State: Ran}, 0))
	pending(0)
	if begun, err := s.BeginCommand(ctx, "c1", CommandResult{Node: "n3", State: Running}); begun || err != nil {
		t.Errorf("n3 begins: %v %v", begun, err)
	}
}
