package state

import (
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
		must(t, s.BeginCommand(ctx, "c1", CommandResult{Node: node, State: Running}))
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
