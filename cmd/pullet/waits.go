package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// waitGroup are the nodes that wait for the same thing.
type waitGroup struct {
	Kind   state.WaitKind `json:"kind"`
	Gate   string         `json:"gate"`
	Reason string         `json:"reason"`
	state.Remedy
	Holders []state.Holder `json:"holders,omitempty"`
	Since   time.Time      `json:"since"` // the first of them
	Nodes   []string       `json:"nodes"`

	said int64          // the revision of etcd at which Holders were said
	left []state.Holder // those for whom the nodes wait still
}

// waitsOf groups the waiting nodes by gate, those with most nodes first.
func waitsOf(o *state.Overview, nodes []nodeStatus) []waitGroup {
	groups := map[string]*waitGroup{}
	for _, n := range nodes {
		if n.State != waiting {
			continue
		}
		key := gateName(n.Gate)
		if key == "" {
			key = n.Why
		}
		g := groups[key]
		if g == nil {
			g = &waitGroup{Since: n.Since}
			groups[key] = g
		}
		// the latest look, by etcd: clocks differ
		if g.Gate == "" || len(n.Holders) > 0 && (n.said > g.said || len(g.Holders) == 0) {
			g.Kind, g.Gate, g.Reason = n.Kind, n.Gate, strings.TrimPrefix(n.Why, n.Gate+": ")
			g.Remedy, g.Holders, g.said, g.left = n.Remedy, n.Holders, n.said, n.left
		}
		if n.Since.Before(g.Since) {
			g.Since = n.Since
		}
		g.Nodes = append(g.Nodes, n.Node)
	}
	out := []waitGroup{}
	for key, g := range groups {
		g.refresh(o, key)
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b waitGroup) int {
		return cmp.Or(cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.Gate+a.Reason, b.Gate+b.Reason))
	})
	return out
}

// gateName is a gate without its limit.
func gateName(gate string) string {
	if strings.HasSuffix(gate, "at a time)") {
		gate, _, _ = strings.Cut(gate, " (")
	}
	return gate
}

// refresh takes the holders as they are now, where the record has them: reasons are as old as the last look of who
// waits.
func (g *waitGroup) refresh(o *state.Overview, name string) {
	g.Holders = g.left
	if slot, ok := strings.CutPrefix(name, "slot "); ok {
		claims := o.Slots[slot]
		if len(claims) > 0 {
			g.Holders = nil
		}
		for _, i := range slices.Sorted(maps.Keys(claims)) {
			c := claims[i]
			g.Holders = append(g.Holders, state.Holder{Node: c.Node, Step: c.Step, Since: c.Since})
		}
	}
	g.Holders, _, _ = lock.Refresh(o, state.StatusLine{Status: state.Status{Kind: g.Kind, Holders: g.Holders}})
	for _, h := range g.Holders {
		if !h.Alive && g.held() {
			g.Remedy = state.Act(startAgain(h.Node))
		}
	}
}

// held reports a wait for places that nodes hold.
func (g waitGroup) held() bool {
	switch g.Kind {
	case state.WaitSlot, state.WaitTotal, state.WaitQueue, state.WaitSerialize:
		return true
	}
	return false
}

// startAgain is what helps against a node that does not answer.
func startAgain(node string) string {
	return "start it again, or give it up: pullet decommission " + node
}

// line says: how many nodes wait for what, who holds it, and what clears it.
func (g waitGroup) line(w io.Writer) string {
	who, wait := count(len(g.Nodes), "node"), "wait"
	if len(g.Nodes) == 1 {
		who, wait = g.Nodes[0], "waits"
	}
	line := who + " " + wait
	if g.Gate != "" {
		line += " for " + g.Gate
	}
	if g.held() && len(g.Holders) > 0 {
		line += ": " + heldBy(w, g.Holders)
	} else {
		line += ": " + g.Reason
	}
	switch {
	case g.Since.IsZero():
	case len(g.Nodes) == 1:
		line += " (" + during(w, g.Since) + ")"
	default:
		line += " (the first " + during(w, g.Since) + ")"
	}
	if g.Clear != "" {
		line += "; " + g.Clear
	}
	return line
}

// heldBy names holders with where they are and how.
func heldBy(w io.Writer, holders []state.Holder) string {
	var parts []string
	for i, h := range holders {
		if i == 5 {
			parts = append(parts, fmt.Sprintf("%d more", len(holders)-i))
			break
		}
		parts = append(parts, holderText(w, h))
	}
	return "held by " + strings.Join(parts, ", ")
}

func holderText(w io.Writer, h state.Holder) string {
	text := h.Node
	if h.Step != "" {
		text += " in step " + h.Step
	}
	if !h.Since.IsZero() {
		text += " " + during(w, h.Since)
	}
	return text + " (" + lock.Condition(h) + ")"
}
