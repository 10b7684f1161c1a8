package lock

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/state"
)

// View is what an admission is decided from, read at one revision.
type View struct {
	Node    string
	Group   string
	Limit   int      // nodes of the group that may change at a time; 0 freezes
	Roster  []string // of the group, frozen
	Claims  map[int]state.Claim
	Version string          // that the node wants to change to
	Known   map[string]bool // nodes that were ever registered
	Alive   map[string]bool
	Gate    state.Gate
	Depends []Dependency
}

// Dependency is a group that must be done before this one starts.
type Dependency struct {
	Group  string
	Roster []string
	Done   map[string]bool // nodes that run the version
	Gate   state.Gate
}

// Wait says why a node is not admitted, in terms of who and what.
type Wait struct {
	Gate   string    // "slot web", "role canary"
	Reason string    // who holds it, and how that one is
	Clear  string    // the command or act that clears it
	Since  time.Time // when this node began to wait
}

func (w *Wait) Error() string {
	return fmt.Sprintf("waiting for %s: %s; %s", w.Gate, w.Reason, w.Clear)
}

// Decide says whether the node of a view may change now: an index to claim, or why not. It is a pure function.
//
// The limit bounds nodes that are changing or away: a node counts when it holds a claim, or was registered and does not live. A
// node never seen costs nothing, and the one that asks is not counted.
//
// A node that holds a claim keeps its index. One for the same version is retried inside also while the group is halted; one of an
// older version still has to wait for what the new version depends on.
func Decide(v View) (index int, wait *Wait) {
	own, holds := v.own()
	switch {
	case holds && v.Claims[own].Version == v.Version:
		return own, nil
	case v.Gate.State == state.Halted && !slices.Contains(v.Gate.Failed, v.Node): // one that failed may try again
		return 0, halted(v.Group, v.Gate)
	case v.Limit == 0:
		return 0, &Wait{Gate: "slot " + v.Group, Reason: "the role is frozen: its limit is 0", Clear: "raise rollout.rollingRules in pullet.yaml"}
	}
	for _, d := range v.Depends {
		if w := d.wait(v); w != nil {
			return 0, w
		}
	}
	if holds {
		return own, nil
	}
	away := v.unavailable()
	if len(away) >= v.Limit {
		return 0, &Wait{
			Gate:   fmt.Sprintf("slot %s (%d at a time)", v.Group, v.Limit),
			Reason: strings.Join(away, ", "), Clear: v.clear(),
		}
	}
	for i := range v.Limit {
		if _, taken := v.Claims[i]; !taken {
			return i, nil
		}
	}
	// Claims with a higher index than a limit that was lowered drain before anybody else is let in.
	return 0, &Wait{Gate: "slot " + v.Group, Reason: "the limit was lowered: older claims drain first", Clear: "see pullet status"}
}

// own is the index of the node's own claim.
func (v View) own() (int, bool) {
	for i, c := range v.Claims {
		if c.Node == v.Node {
			return i, true
		}
	}
	return 0, false
}

func halted(group string, g state.Gate) *Wait {
	return &Wait{
		Gate:   "role " + group + " (halted)",
		Reason: fmt.Sprintf("the upgrade of %s failed: %s", g.Node, g.Reason),
		Clear:  "push a commit that mends it, or, when it was the host: pullet rollout resume",
	}
}

// wait says which nodes of the group are not done yet.
func (d Dependency) wait(v View) *Wait {
	var missing []string
	for _, n := range d.Roster {
		if !d.Done[n] {
			missing = append(missing, n+" ("+v.life(n)+")")
		}
	}
	switch {
	case d.Gate.State == state.Halted: // also when only a node that joined later failed: nobody follows into a halt
		return halted(d.Group, d.Gate)
	case len(missing) == 0:
		return nil
	case len(missing) > 5:
		missing = append(missing[:5], fmt.Sprintf("%d more", len(missing)-5))
	}
	return &Wait{Gate: "role " + d.Group, Reason: "not upgraded yet: " + strings.Join(missing, ", "), Clear: d.clear(v)}
}

// clear is what an operator can do about the nodes of the group that are not done.
func (d Dependency) clear(v View) string {
	for _, n := range d.Roster {
		switch {
		case d.Done[n] || v.Alive[n]:
		case v.Known[n]:
			return fmt.Sprintf("start %s again, or give it up: pullet decommission %s", n, n)
		default:
			return fmt.Sprintf("start %s, or remove it from nodes/ in the repository", n)
		}
	}
	return "it goes on by itself"
}

// unavailable describes the nodes of the roster that count against the limit.
func (v View) unavailable() []string {
	holders := map[string]state.Claim{}
	for _, c := range v.Claims {
		holders[c.Node] = c
	}
	var out []string
	for node, c := range holders {
		if node != v.Node {
			out = append(out, fmt.Sprintf("%s holds it since %s (%s)", node, c.Since.Local().Format(time.TimeOnly), v.life(node)))
		}
	}
	for _, node := range v.Roster {
		if _, holds := holders[node]; !holds && node != v.Node && v.Known[node] && !v.Alive[node] {
			out = append(out, node+" does not answer")
		}
	}
	slices.Sort(out)
	return out
}

// clear is what an operator can do about the nodes in the way.
func (v View) clear() string {
	for _, i := range slices.Sorted(maps.Keys(v.Claims)) {
		if c := v.Claims[i]; !v.Alive[c.Node] && c.Node != v.Node {
			return fmt.Sprintf("start %s again, or give it up: pullet decommission %s", c.Node, c.Node)
		}
	}
	for _, node := range v.Roster {
		if v.Known[node] && !v.Alive[node] && node != v.Node {
			return fmt.Sprintf("start %s again, or give it up: pullet decommission %s", node, node)
		}
	}
	return "it goes on by itself"
}

// life is how a node is, in a word.
func (v View) life(node string) string {
	switch {
	case v.Alive[node]:
		return "alive"
	case v.Known[node]:
		return "not answering"
	}
	return "never seen"
}
