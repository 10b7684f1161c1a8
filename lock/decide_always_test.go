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

// names are those of the nodes of random views.
var names = []string{"me", "alfa", "bravo", "charlie", "delta", "echo"}

func drawNames(t *rapid.T, what string) []string {
	return slices.Sorted(slices.Values(rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, what)))
}

func drawClaims(t *rapid.T, what string) map[int]state.Claim {
	out := map[int]state.Claim{}
	places := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6}).Draw(t, what)
	for i, node := range drawNames(t, what) {
		version := rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, what)
		out[places[i]] = state.Claim{
			Node: node, Version: version, Rollout: version, Since: time.Unix(int64(i), 0), Idle: rapid.Bool().Draw(t, "idle"),
		}
	}
	return out
}

// drawSlots makes claims of other groups for nodes that hold none in this one.
func drawSlots(t *rapid.T, own map[int]state.Claim) (out []Held) {
	for i, node := range drawNames(t, "slots") {
		if node != "me" && !slices.ContainsFunc(slices.Collect(maps.Values(own)), func(c state.Claim) bool { return c.Node == node }) {
			c := state.Claim{Node: node, Rollout: "v1", Since: time.Unix(int64(i), 0), Idle: rapid.Bool().Draw(t, "idle")}
			out = append(out, Held{Key: "slot/other/" + node, Fence: int64(100 + i), Group: "other", Name: "slot other", Claim: c, Dead: rapid.Bool().Draw(t, "dead")})
		}
	}
	return out
}

// drawView makes any view that a store could show.
func drawView(t *rapid.T) View {
	gates := rapid.SampledFrom([]state.Gate{{}, {State: "open"}, {State: "open", Failed: []string{"x"}, Clock: true}, halt, mine, {State: state.Halted, Clock: true, Reason: "stop"},
		{State: "open", Hosts: []string{"alfa", "bravo"}}, {State: "open", Hosts: []string{"charlie", "me"}, Failed: []string{"alfa"}}, {State: state.Halted, Hosts: []string{"delta", "me"}}})
	v := View{
		Node: "me", Name: "slot web", Scope: "role web", Rollout: "v2",
		Limit: rapid.IntRange(0, 4).Draw(t, "limit"), MaxHostFaults: rapid.IntRange(0, 2).Draw(t, "spares"), Claims: drawClaims(t, "claims"), Dead: map[int]bool{},
		Ahead: rapid.SampledFrom([]*Predecessor{nil, nil, {Node: "alfa"}}).Draw(t, "ahead"),
		Total: rapid.IntRange(0, 3).Draw(t, "total"), Totals: drawClaims(t, "totals"),
		Gate: gates.Draw(t, "gate"), All: rapid.SampledFrom([]state.Gate{{}, {}, halt, mine}).Draw(t, "all"),
		Switch: rapid.SampledFrom([]*Switched{nil, nil, nil, off("pause"), off("host me"), off("role web"), off("global")}).Draw(t, "switch"),
		Closed: rapid.SampledFrom([]string{"", "", "Mon 22:00 UTC"}).Draw(t, "closed"),
		OnLost: rapid.SampledFrom([]string{"", Hold, Release, Fail}).Draw(t, "onLost"),
		Timed:  rapid.Bool().Draw(t, "timed"), Ticking: rapid.Bool().Draw(t, "ticking"),
	}
	v.Slots = drawSlots(t, v.Claims)
	for _, h := range v.Slots {
		if rapid.Bool().Draw(t, "guest") {
			v.Guests = append(v.Guests, h)
		}
	}
	for _, n := range drawNames(t, "away") {
		if !slices.ContainsFunc(slices.Collect(maps.Values(v.Claims)), func(c state.Claim) bool { return c.Node == n }) && n != "me" &&
			!slices.ContainsFunc(v.Guests, func(h Held) bool { return h.Node == n }) {
			v.Away = append(v.Away, n)
		}
	}
	v.More = rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "more")
	for i := range v.Claims {
		v.Dead[i] = rapid.Bool().Draw(t, "dead")
	}
	if rapid.Bool().Draw(t, "only places") { // else hardly any view comes so far
		v.Switch, v.Closed, v.Gate.State, v.All, v.Limit = nil, "", "open", state.Gate{}, max(1, v.Limit)
		return v
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "depends") {
		v.Depends = append(v.Depends, Dependency{
			Group: fmt.Sprint("dep", i), Closed: rapid.SampledFrom([]bool{true, true, false}).Draw(t, "through"),
			Soaking: rapid.SampledFrom([]bool{false, false, true}).Draw(t, "soaking"), Gate: rapid.SampledFrom([]state.Gate{{}, {}, halt}).Draw(t, "dep gate"),
		})
	}
	return v
}

// shut reports a view in which a rule other than places keeps newcomers out.
func shut(v View) bool {
	out := v.Switch != nil || v.Limit == 0 || v.Closed != ""
	for _, g := range []state.Gate{v.Gate, v.All} {
		out = out || g.State == state.Halted && !slices.Contains(g.Failed, v.Node) && !slices.Contains(g.Hosts, v.Node)
	}
	for _, d := range v.Depends {
		out = out || d.Gate.State == state.Halted || !d.Closed || d.Soaking
	}
	return out
}

// model is a decision's view counted anew: what the node holds, who is in its way, and whether the fleet has a place
// for it.
type model struct {
	own, total int  // -1 is none
	retried    bool // its claim is of this rollout
	idle       bool // and it gave its place in the total away
	counts     bool // in the total, by its own claim
	away       []string
	beside     int // of those, hosts whose own fault does not count
	fleetRoom  bool
	gives      bool // lost nodes are given up
}

func modelOf(v View) model {
	m := model{own: -1, total: -1, gives: v.OnLost == Release || v.OnLost == Fail}
	for i, c := range v.Claims {
		if c.Node == v.Node {
			m.own, m.retried, m.idle, m.counts = i, c.Rollout == v.Rollout, c.Rollout == v.Rollout && c.Idle, !c.Idle
		} else {
			m.away = append(m.away, c.Node)
			if m.beside < v.MaxHostFaults && slices.Contains(v.Gate.Hosts, c.Node) {
				m.beside++
			}
		}
	}
	for _, h := range v.Guests {
		m.away = append(m.away, h.Node)
	}
	changing := map[string]bool{}
	for i, c := range v.Totals {
		if changing[c.Node] = true; c.Node == v.Node {
			m.total = i
		}
	}
	for _, h := range v.Slots {
		changing[h.Node] = changing[h.Node] || !h.Idle
	}
	n := 0
	for _, yes := range changing {
		if yes {
			n++
		}
	}
	if !m.gives {
		m.away = append(m.away, v.Away...)
		for range v.More {
			m.away = append(m.away, "nodes that do not answer")
		}
	}
	m.fleetRoom = v.Total == 0 || m.total >= 0 || m.counts || n < v.Total
	return m
}

// admitted is what the rules say, told in another way than Decide has them.
func (m model) admitted(v View) bool {
	switch {
	case v.Switch != nil && v.Switch.What != "pause":
		return false
	case m.retried:
		return !m.idle || m.fleetRoom
	case shut(v) || !m.fleetRoom:
		return false
	}
	return m.own >= 0 || v.Ahead == nil && len(m.away)-m.beside < v.Limit
}

// places holds an admission against the places that are free.
func (m model) places(t *rapid.T, v View, d Decision) {
	if _, taken := v.Claims[d.Index]; m.own >= 0 && d.Index != m.own || m.own < 0 && (taken || d.Index < 0 || d.Index >= v.Limit+m.beside) {
		t.Fatalf("place %d of %d, taken %v; it holds %d", d.Index, v.Limit, taken, m.own)
	}
	_, taken := v.Totals[d.Total]
	switch {
	case v.Total == 0 || m.retried && !m.idle:
		if d.Total != -1 {
			t.Fatalf("place %d in the fleet, and none is needed", d.Total)
		}
	case m.total >= 0 && d.Total != m.total || m.total < 0 && (taken || d.Total < 0):
		t.Fatalf("place %d of %d in the fleet, taken %v; it holds %d", d.Total, v.Total, taken, m.total)
	}
	if d.Reclaim != nil || d.ReclaimElsewhere != nil || d.Stalled || d.StopClock || d.StartClock || d.LeaveQueue {
		t.Fatalf("admitted, and something is to be put in order: %v", d)
	}
}

// waits holds a wait against who is in the way, and what may be put in order meanwhile.
func (m model) waits(t *rapid.T, v View, d Decision) {
	full := !shut(v) && (m.own >= 0 || v.Ahead == nil) ||
		m.idle && (v.Switch == nil || v.Switch.What == "pause") // then it is for places
	for _, n := range m.away {
		if full && (m.fleetRoom || m.own < 0 && len(m.away)-m.beside >= v.Limit) && !strings.Contains(d.Wait.Reason, n) {
			t.Fatalf("%q stands in the way and is not named: %v", n, d)
		}
	}
	for _, i := range d.Reclaim {
		if c, claimed := v.Claims[i]; !claimed || !v.Dead[i] || c.Node == v.Node || !m.gives {
			t.Fatalf("place %d is taken back: %v", i, d)
		}
	}
	for _, h := range d.ReclaimElsewhere {
		if !h.Dead || h.Node == v.Node || !m.gives {
			t.Fatalf("%s is taken back: %v", h.Key, d)
		}
	}
	late := full && v.Timed && len(v.Claims) > 0 && v.Gate.State != state.Halted
	if d.Stalled != (late && v.Gate.Clock && !v.Ticking) || d.StartClock != (late && !v.Gate.Clock) {
		t.Fatalf("late %v, clock %v, ticking %v: %v", late, v.Gate.Clock, v.Ticking, d)
	}
	if d.StopClock && (full || !v.Gate.Clock || v.Gate.State == state.Halted || d.LeaveQueue) || d.Wait.Clear == "" || d.Wait.Gate == "" {
		t.Fatalf("%v", d)
	}
}

func TestDecideAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t)
		d, m := Decide(v), modelOf(v)
		if want := m.admitted(v); (d.Wait == nil) != want {
			t.Fatalf("admitted %v, want %v; %+v: %v", d.Wait == nil, want, m, d)
		}
		if d.Wait == nil {
			m.places(t, v, d)
		} else {
			m.waits(t, v, d)
		}
		for range 3 { // maps are walked in another order each time
			if again := Decide(v); again.Index != d.Index || again.Total != d.Total || fmt.Sprint(again.Wait, again.Reclaim) != fmt.Sprint(d.Wait, d.Reclaim) {
				t.Fatalf("not the same twice: %v, %v", d, again)
			}
		}
	})
}
