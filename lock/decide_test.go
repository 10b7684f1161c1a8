package lock

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pullet/pullet/state"
)

// set makes a set of names.
func set(names ...string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}

func claims(nodes ...string) map[int]state.Claim {
	out := map[int]state.Claim{}
	for i, n := range nodes {
		node, version, _ := strings.Cut(n, "@")
		if node != "" {
			out[i] = state.Claim{Node: node, Version: version}
		}
	}
	return out
}

// TestDecide: the node is "me", the version "v2"; a claim is written node@version, "" is a free index.
func TestDecide(t *testing.T) {
	all := []string{"me", "a", "b", "c"}
	halt := state.Gate{State: state.Halted, Node: "x", Reason: "it broke"}
	for _, c := range []struct {
		name string
		view View
		want string // the index, or parts of the reason to wait, divided by |
	}{
		{"nobody there", View{Limit: 1}, "0"},
		{"the first free index", View{Limit: 3, Claims: claims("a@v2", "", "b@v2")}, "1"},
		{"full", View{Limit: 2, Claims: claims("a@v2", "b@v2"), Alive: set("a", "b")}, "slot web (2 at a time)|a holds it|b holds it|alive|goes on by itself"},
		{"full of an older version", View{Limit: 1, Claims: claims("a@v1"), Alive: set("a")}, "a holds it"},
		{"a dead holder", View{Limit: 1, Claims: claims("a@v2"), Known: set("a")}, "a holds it|not answering|pullet decommission a"},
		{"a dead node counts", View{Limit: 1, Known: set("a")}, "a does not answer|pullet decommission a"},
		{"a dead node and a claim", View{Limit: 2, Known: set("a", "b"), Alive: set("b"), Claims: claims("b@v2")}, "a does not answer|b holds it|pullet decommission a"},
		{"a dead node leaves room", View{Limit: 2, Known: set("a")}, "0"},
		{"a dead holder counts once", View{Limit: 2, Known: set("a"), Claims: claims("a@v1")}, "1"},
		{"a dead node outside the roster", View{Limit: 1, Known: set("z")}, "0"},
		{"a node never seen costs nothing", View{Limit: 1, Known: set("me"), Alive: set("me")}, "0"},
		{"itself never counts", View{Limit: 1, Known: set("me")}, "0"},
		{"its own claim", View{Limit: 1, Claims: claims("me@v2")}, "0"},
		{"its own claim, at a limit of 0", View{Limit: 0, Claims: claims("", "me@v2")}, "1"},
		{"its own claim, halted", View{Limit: 1, Claims: claims("me@v2"), Gate: halt}, "0"},
		{"its own claim, others over the limit", View{Limit: 1, Claims: claims("a@v2", "me@v2")}, "1"},
		{"its own older claim", View{Limit: 1, Claims: claims("", "", "me@v1")}, "2"},
		{"its own older claim, halted", View{Limit: 1, Claims: claims("me@v1"), Gate: halt}, "role web (halted)|x failed: it broke|push a commit"},
		{"its own older claim, frozen", View{Limit: 0, Claims: claims("me@v1")}, "frozen"},
		{"its own older claim, what it depends on", View{Limit: 1, Claims: claims("me@v1"), Depends: []Dependency{{Group: "db", Roster: []string{"d"}}}}, "role db|d (never seen)"},
		{"halted", View{Limit: 5, Gate: halt}, "role web (halted)"},
		{"frozen", View{Limit: 0}, "its limit is 0|raise rollout.rollingRules"},
		{"lowered", View{Limit: 1, Claims: claims("", "", "", "a@v1"), Alive: set("a")}, "a holds it"},
		{"a dependency is done", View{Limit: 1, Depends: []Dependency{{Group: "db", Roster: []string{"d", "e"}, Done: set("d", "e")}}}, "0"},
		{"a dependency of nobody", View{Limit: 1, Depends: []Dependency{{Group: "db"}}}, "0"},
		{"a dependency is not done", View{Limit: 1, Known: set("e"), Alive: set("d"), Depends: []Dependency{{Group: "db", Roster: []string{"d", "e", "f", "g"}, Done: set("g")}}},
			"role db|d (alive)|e (not answering)|f (never seen)"},
		{"many are not done", View{Limit: 1, Depends: []Dependency{{Group: "db", Roster: strings.Fields("a b c d e f g h")}}}, "a (never seen)|e (never seen)|3 more"},
		{"a dependency is halted", View{Limit: 1, Depends: []Dependency{{Group: "db", Roster: []string{"d"}, Gate: halt}}}, "role db (halted)|x failed"},
		{"a dependency is done and halted", View{Limit: 1, Depends: []Dependency{{Group: "db", Roster: []string{"d"}, Done: set("d"), Gate: halt}}}, "role db (halted)"},
		{"the second dependency", View{Limit: 1, Depends: []Dependency{{Group: "db"}, {Group: "lb", Roster: []string{"l"}}}}, "role lb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.view.Node, c.view.Group, c.view.Version, c.view.Roster = "me", "web", "v2", all
			index, wait := Decide(c.view)
			got := fmt.Sprint(index)
			if wait != nil {
				got = wait.Error()
			}
			for part := range strings.SplitSeq(c.want, "|") {
				if wait == nil && got != part || !strings.Contains(got, part) {
					t.Errorf("got  %s\nwant %s", got, part)
				}
			}
		})
	}
}

// names are those of the nodes of random views.
var names = []string{"me", "alfa", "bravo", "charlie", "delta", "echo"}

func drawSet(t *rapid.T, what string) map[string]bool {
	return set(rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, what)...)
}

// drawView makes any view that a store could show.
func drawView(t *rapid.T) View {
	gates := rapid.SampledFrom([]state.Gate{{}, {State: "open"}, {State: "open", Failed: []string{"x"}}, {State: state.Halted, Node: "x", Reason: "broke"}})
	v := View{
		Node: "me", Group: "web", Version: "v2", Limit: rapid.IntRange(0, 4).Draw(t, "limit"), Claims: map[int]state.Claim{},
		Roster: slices.Sorted(maps.Keys(drawSet(t, "roster"))), Known: drawSet(t, "known"), Alive: drawSet(t, "alive"), Gate: gates.Draw(t, "gate"),
	}
	if !slices.Contains(v.Roster, "me") {
		v.Roster = append(v.Roster, "me")
	}
	indices := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6}).Draw(t, "indices")
	for i, node := range slices.Sorted(maps.Keys(drawSet(t, "holders"))) {
		version := rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "claimed")
		v.Claims[indices[i]] = state.Claim{Node: node, Version: version, Since: time.Unix(int64(i), 0)}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "depends") {
		v.Depends = append(v.Depends, Dependency{
			Group: fmt.Sprint("dep", i), Roster: slices.Sorted(maps.Keys(drawSet(t, "dep roster"))), Done: drawSet(t, "done"), Gate: gates.Draw(t, "dep gate"),
		})
	}
	return v
}

// blockers are the other nodes that change or are away, counted anew.
func blockers(v View) []string {
	out := map[string]bool{}
	for _, c := range v.Claims {
		out[c.Node] = true
	}
	for _, n := range v.Roster {
		if v.Known[n] && !v.Alive[n] {
			out[n] = true
		}
	}
	delete(out, v.Node)
	return slices.Sorted(maps.Keys(out))
}

// closed reports a view in which a rule other than the limit keeps newcomers out.
func closed(v View) bool {
	shut := v.Gate.State == state.Halted || v.Limit == 0
	for _, d := range v.Depends {
		shut = shut || d.Gate.State == state.Halted
		for _, n := range d.Roster {
			shut = shut || !d.Done[n]
		}
	}
	return shut
}

// TestDecideAlways holds random views against the rules, told in another way than Decide has them.
func TestDecideAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t)
		index, wait := Decide(v)
		own, holds := -1, false
		for i, c := range v.Claims {
			if c.Node == v.Node {
				own, holds = i, true
			}
		}
		retried, away := holds && v.Claims[own].Version == v.Version, blockers(v)
		admitted := retried || !closed(v) && (holds || len(away) < v.Limit)
		switch {
		case (wait == nil) != admitted:
			t.Fatalf("admitted %v, want %v; away %q; %v", wait == nil, admitted, away, wait)
		case wait == nil && holds && index != own:
			t.Fatalf("index %d, and it holds %d", index, own)
		case wait == nil && !holds:
			if _, taken := v.Claims[index]; taken || index < 0 || index >= v.Limit {
				t.Fatalf("index %d of %d, taken %v", index, v.Limit, taken)
			}
		case wait != nil && !closed(v):
			for _, n := range away {
				if !strings.Contains(wait.Reason, n) {
					t.Fatalf("%q stands in the way and is not named: %v", n, wait)
				}
			}
		}
		for range 3 { // maps are walked in another order each time
			again, w := Decide(v)
			if again != index || fmt.Sprint(w) != fmt.Sprint(wait) {
				t.Fatalf("not the same twice: %d %v, %d %v", index, wait, again, w)
			}
		}
	})
}
