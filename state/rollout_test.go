package state

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// ofRole says who belongs to a roster of one role.
func ofRole(role string) Choose {
	return Belongs(func(_ string, m Member) (bool, string) { return m.Role == role, "" }).Always()
}

// TestFreezeRoster: everybody who asks at once gets one list, which stays whatever comes later.
func TestFreezeRoster(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for _, n := range []string{"a", "b", "gone", "db1"} {
		register(t, s, n, map[bool]string{true: "db", false: "web"}[n == "db1"], n, time.Minute)
	}
	_, err := s.Nodes.Decommission(ctx, "gone", "x", true)
	must(t, err)
	inventory := map[string]Member{"b": {Role: "web"}, "never": {Role: "web"}, "gone": {Role: "web"}, "db2": {Role: "db"}}
	lists := make([]*Roster, 10)
	atOnce(t, 10, func(i int) error {
		register(t, s, fmt.Sprint("late", i), "web", "x", time.Minute)
		var err error
		lists[i], err = s.Rosters.Freeze(ctx, s.Rosters.Key("v1", "web"), inventory, ofRole("web"))
		return err
	})
	for _, l := range lists {
		nodes := l.Nodes()
		if !slices.Equal(nodes, lists[0].Nodes()) || !slices.IsSorted(nodes) || l.Size != len(nodes) || !slices.Equal(l.Roles, []string{"web"}) {
			t.Errorf("lists differ or are not sorted: %+v, %q", l, nodes)
		}
		for _, n := range []string{"a", "b", "never"} {
			if !l.Has(n) || !slices.Contains(nodes, n) {
				t.Errorf("%q is not in %q", n, nodes)
			}
		}
		for _, n := range []string{"gone", "db1", "db2", "", "late", "neve", "ever"} {
			if l.Has(n) {
				t.Errorf("%q is in %q", n, nodes)
			}
		}
	}
	if n := len(history(t, s, s.Rosters.Key("v1", "web"))); n != 1 {
		t.Errorf("%d writes", n)
	}
	register(t, s, "later", "web", "x", time.Minute)
	freeze := func(rollout, role string) *Roster {
		t.Helper()
		l, err := s.Rosters.Freeze(ctx, s.Rosters.Key(rollout, role), nil, ofRole(role))
		must(t, err)
		return l
	}
	if l := freeze("v1", "web"); !slices.Equal(l.Nodes(), lists[0].Nodes()) {
		t.Errorf("it is not frozen: %q", l.Nodes())
	}
	if l := freeze("v2", "web"); !l.Has("later") {
		t.Errorf("another rollout asks anew: %q", l.Nodes())
	}
	if l := freeze("v1", "none"); l.Size != 0 || len(l.Nodes()) != 0 || len(freeze("v1", "none").Nodes()) != 0 {
		t.Errorf("nobody: %q", l.Nodes())
	}
}

// TestRosterLeavesOut: who is left out is kept with the list, with the reason.
func TestRosterLeavesOut(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	inventory := map[string]Member{"a": {Role: "web"}, "b": {Role: "web", Labels: map[string]string{"frozen": "yes"}}, "c": {Role: "web"}, "d": {Role: "db"}}
	for range 2 { // made, and read
		l, err := s.Rosters.Freeze(ctx, s.Steps.Key("v1", StepHash("x"), "roster"), inventory, Belongs(func(node string, m Member) (bool, string) {
			switch {
			case node == "c":
				return false, "disabled"
			case m.Labels["frozen"] != "":
				return false, "frozen"
			}
			return m.Role == "web", ""
		}).Always())
		must(t, err)
		if !slices.Equal(l.Nodes(), []string{"a"}) || !slices.Equal(l.Left, []string{"b (frozen)", "c (disabled)"}) {
			t.Errorf("%q, left out %q", l.Nodes(), l.Left)
		}
	}
}

// TestLargeRoster: it fits into one key, and is searched as it is.
func TestLargeRoster(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	inventory := map[string]Member{}
	for i := range 10_000 {
		inventory[fmt.Sprintf("node-with-a-long-name-%05d.example.org", i)] = Member{Role: "web"}
	}
	key := s.Rosters.Key("v1", "web")
	l, err := s.Rosters.Freeze(ctx, key, inventory, ofRole("web"))
	must(t, err)
	again, err := s.Rosters.Freeze(ctx, key, nil, ofRole("web"))
	must(t, err)
	if l.Size != 10_000 || again.Size != 10_000 || !again.Has("node-with-a-long-name-09999.example.org") || again.Has("node-with-a-long-name-0999") {
		t.Errorf("%d and %d nodes", l.Size, again.Size)
	}
}

// TestResume: it opens what is halted in the current rollout, one group or all, says what, and is recorded.
func TestResume(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	if opened, err := s.Rollouts.Resume(ctx, "op"); len(opened) != 0 || err != nil {
		t.Errorf("a new fleet: %v %v", opened, err)
	}
	propose(t, s, "v1")
	halt := func(rollout string, groups ...string) {
		t.Helper()
		for _, g := range groups {
			_, err := s.Client.Txn(ctx).Then(s.Rollouts.GateOp(rollout, g, Gate{State: Halted, Node: "x", Failed: []string{"x"}, Clock: true}), clientv3.OpPut(s.Rollouts.ClockKey(rollout, g), "")).Commit()
			must(t, err)
		}
	}
	halt("v1", "web", "db", AllGroups)
	halt("v0", "web")
	for _, c := range []struct {
		groups []string
		want   string
	}{{[]string{"web"}, "web"}, {[]string{"web"}, ""}, {nil, "* db"}, {nil, ""}} {
		opened, err := s.Rollouts.Resume(ctx, "op", c.groups...)
		var names []string
		for _, g := range opened {
			names = append(names, g.Group)
			if g.State != Halted || g.Node != "x" {
				t.Errorf("it is not the gate as it was: %+v", g)
			}
		}
		if strings.Join(names, " ") != c.want || err != nil {
			t.Errorf("%s: %q %v", c.groups, names, err)
		}
	}
	for rollout, want := range map[string]Gate{"v1": {State: "open", Resumed: "op"}, "v0": {State: Halted, Node: "x", Failed: []string{"x"}, Clock: true}} {
		g, _, err := s.Rollouts.Gate(ctx, rollout, "web")
		if (g.State == Halted) != g.At.IsZero() || (g.State == Halted) != (g.Seen == 0) {
			t.Errorf("%s: it says nothing of when it was resumed: %+v", rollout, g)
		}
		if g.At, g.Seen = want.At, want.Seen; !reflect.DeepEqual(g, want) || err != nil {
			t.Errorf("%s: %+v %v", rollout, g, err)
		}
	}
	if got, err := s.Client.Get(ctx, s.Rollouts.ClockKey("v1", ""), clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil || got.Count != 0 {
		t.Errorf("the deadline of before goes on: %v %v", got, err)
	}
}
