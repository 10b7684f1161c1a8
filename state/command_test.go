package state

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// give gives a command to stages of nodes.
func give(t *testing.T, s *Store, id string, stages ...[]string) Command {
	t.Helper()
	c := Command{ID: id, Stages: stages, At: time.Now(), Until: time.Now().Add(time.Hour)}
	must(t, s.Commands.Give(ctx, c))
	return c
}

// begins lets nodes begin with a command.
func begins(t *testing.T, s *Store, c Command, nodes ...string) {
	t.Helper()
	for _, node := range nodes {
		if begun, err := s.Commands.Begin(ctx, c, CommandResult{Node: node, State: Running}); !begun || err != nil {
			t.Fatalf("%s begins: %v %v", node, begun, err)
		}
	}
}

// pendingFor checks which commands a node may have to do something about.
func pendingFor(t *testing.T, s *Store, node string, want ...string) []PendingCommand {
	t.Helper()
	all, err := pendingCommands(s, node)
	must(t, err)
	var ids []string
	for _, c := range all {
		ids = append(ids, c.ID)
	}
	if !slices.Equal(ids, want) {
		t.Errorf("%q, want %q", ids, want)
	}
	return all
}

// pendingCommands are the commands that a node may have to do something about.
func pendingCommands(s *Store, node string) ([]PendingCommand, error) {
	o, err := s.Switches.Orders(ctx, &Presence{Node: Node{Name: node}}, "", nil, nil)
	if err != nil {
		return nil, err
	}
	return s.Commands.For(ctx, node, o.Commands)
}

// TestPendingCommands: nodes read what they may have to do something about, and nothing that others wrote; people read
// it all. What is forgotten leaves nothing behind.
func TestPendingCommands(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	pendingFor(t, s, "n1")
	before := count(t, s, s.prefix)
	c1 := give(t, s, "c1", []string{"n1"}, []string{"n2"})
	give(t, s, "c2", []string{"n1"})
	for stage, node := range []string{"n1", "n2"} {
		if c := pendingFor(t, s, node, "c1", "c2")[0]; c.Stage != stage || c.Own.State != "" || !c.Open || c.Halted {
			t.Errorf("%s: %+v", node, c)
		}
		begins(t, s, c1, node)
		if begun, err := s.Commands.Begin(ctx, c1, CommandResult{Node: node}); begun || !errors.Is(err, errBegun) {
			t.Errorf("%s begins twice: %v %v", node, begun, err)
		}
		must(t, s.Commands.End(ctx, "c1", CommandResult{Node: node, State: Ran, Output: "from " + node}, stage))
	}
	pendingFor(t, s, "n1", "c2")
	c, _, err := s.Commands.Get(ctx, "c1")
	must(t, err)
	if got := slices.Sorted(maps.Keys(c.Results)); !slices.Equal(got, []string{"n1", "n2"}) || c.Results["n2"].Output != "from n2" || c.Results["n1"].State != Ran {
		t.Errorf("%+v", c)
	}
	for _, what := range []string{"queue", "claim", "mark"} {
		must(t, put(s, s.Commands.Prefix("c1", what)+"0"))
	}
	must(t, put(s, s.Rollouts.GateKey("c1", "command-c1")))
	must(t, s.Commands.Forget(ctx, time.Now().Add(2*keptCommands)))
	if all, _, err := s.Commands.List(ctx); err != nil || len(all) != 0 {
		t.Errorf("%+v %v", all, err)
	}
	if left := count(t, s, s.prefix) - before; left != 2 { // the two bells
		t.Errorf("%d keys are left", left)
	}
}

// TestCommandsReadNoOthers: what a command costs a node does not grow with the fleet: it reads and begins beside what
// nobody could read.
func TestCommandsReadNoOthers(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	c := give(t, s, "c1", []string{"n1", "n2", "n3"})
	for _, key := range []string{s.Commands.resultKey("c1", "n2"), s.Commands.Prefix("c1", "output") + "n2"} {
		must(t, put(s, key))
	}
	pendingFor(t, s, "n1", "c1")
	begins(t, s, c, "n1")
	must(t, s.Commands.End(ctx, "c1", CommandResult{Node: "n1", State: Ran}, 0))
	if own := pendingFor(t, s, "n1", "c1")[0].Own; own.State != Ran {
		t.Errorf("%+v", own)
	}
}

// TestCommandStages: each node counts once in its stage, also one whose agent was killed; who was decommissioned is not
// waited for.
func TestCommandStages(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	c := Command{ID: "c1", Stages: [][]string{{"n1", "n2", "n3"}, {"n4"}}, MaxFailures: 1, At: time.Now(), Until: time.Now().Add(time.Hour)}
	must(t, s.Commands.Give(ctx, c))
	stage := func(want int) {
		t.Helper()
		if got := pendingFor(t, s, "n4", "c1")[0]; got.Stage != want {
			t.Errorf("stage %d, want %d", got.Stage, want)
		}
	}
	begins(t, s, c, "n1", "n2")
	for range 3 {
		must(t, s.Commands.End(ctx, "c1", CommandResult{Node: "n1", State: Ran}, 0))
	}
	stage(0)
	must(t, s.Commands.Abandon(ctx, "c1", CommandResult{Node: "n2", State: Unknown}, 0))
	stage(0)
	register(t, s, "n3", "web", "secret", time.Minute)
	_, err := s.Nodes.Decommission(ctx, "n3", "op", true)
	must(t, err)
	stage(1)
}

// TestManyCommands: more are pending than etcd answers in one transaction.
func TestManyCommands(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	n := 2*opsAtOnce + 1
	for i := range n {
		give(t, s, fmt.Sprintf("c%03d", i), []string{"n1"})
	}
	if all, err := pendingCommands(s, "n1"); err != nil || len(all) != n || all[n-1].ID != "c200" || !all[n-1].Open {
		t.Errorf("%d %v", len(all), err)
	}
}

// TestHaltedCommands: nobody begins with a command that failed, and nodes look at it only as long as it runs somewhere.
func TestHaltedCommands(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	c := give(t, s, "c1", []string{"n1", "n2", "n3"})
	begins(t, s, c, "n1", "n2")
	refused := func() {
		t.Helper()
		if begun, err := s.Commands.Begin(ctx, c, CommandResult{Node: "n3", State: Running}); begun || err != nil {
			t.Errorf("n3 begins: %v %v", begun, err)
		}
	}
	must(t, s.Commands.End(ctx, "c1", CommandResult{Node: "n1", State: Failed}, 0))
	if got := pendingFor(t, s, "n3", "c1")[0]; !got.Halted { // n2 is at it
		t.Errorf("%+v", got)
	}
	refused()
	must(t, s.Commands.End(ctx, "c1", CommandResult{Node: "n2", State: Ran}, 0))
	pendingFor(t, s, "n3")
	refused()
	late := give(t, s, "c2", []string{"n3"})
	end(t, s, s.Commands.openKey("c2"))
	if begun, err := s.Commands.Begin(ctx, late, CommandResult{Node: "n3", State: Running}); begun || err != nil {
		t.Errorf("it expired: %v %v", begun, err)
	}
}
