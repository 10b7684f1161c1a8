package lock

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/state"
)

// busyWait says that all places are taken: by whom, and which nodes are away.
func (v View) busyWait() *Wait {
	w := &Wait{Kind: v.Kind, Gate: fmt.Sprintf("%s (%d at a time)", v.Name, v.Limit)}
	var parts []string
	for _, i := range slices.Sorted(maps.Keys(v.Claims)) {
		parts = append(parts, w.addHolder(v, v.Claims[i], !v.Dead[i]))
	}
	guests := map[int]state.Claim{}
	for i, g := range v.Guests {
		guests[-1-i] = g.Claim
		text := w.addHolderAs(v, g)
		if g.Group != v.Group {
			text += " and counts here, too"
		}
		parts = append(parts, text)
	}
	if v.countAway() > 0 {
		for _, node := range v.Away {
			parts, w.Holders = append(parts, node+" does not answer"),
				append(w.Holders, state.Holder{Node: node, Seen: true, Away: true})
		}
	}
	if w.setRemedy(v.Claims, guests); v.countAway() > 0 && v.More > 0 {
		parts = append(parts, fmt.Sprintf("nodes that do not answer: %d", v.More))
		w.Remedy = state.Act("see pullet nodes --missing: start them again, or give them up with pullet decommission")
	}
	w.Reason = strings.Join(parts, ", ")
	return w
}

// fleetBusyWait says that all places of the fleet are taken, and by whom.
func (v View) fleetBusyWait() *Wait {
	w := &Wait{Kind: state.WaitTotal, Gate: fmt.Sprintf("slots of the fleet (%d at a time)", v.Total)}
	var parts []string
	var holders []state.Claim
	for _, i := range slices.Sorted(maps.Keys(v.Totals)) {
		holders = append(holders, v.Totals[i])
	}
	for _, h := range v.uncounted() {
		holders = append(holders, h.Claim)
	}
	unread := map[int]state.Claim{}
	for i, c := range holders {
		dead := slices.ContainsFunc(v.Slots, func(h Held) bool { return h.Node == c.Node && h.Dead })
		unread[i] = c
		parts = append(parts, w.addHolder(v, c, !dead))
	}
	w.Reason = strings.Join(parts, ", ")
	w.setRemedy(unread)
	return w
}

// addHolder adds the holder of a claim and returns a text about it. A claim that cannot be read has an unknown holder.
func (w *Wait) addHolder(v View, c state.Claim, alive bool) string {
	if c.Unread != nil {
		return fmt.Sprintf("etcd key %s cannot be read (%s)", c.Unread.Key, c.Unread.Why)
	}
	h := v.holder(c, alive)
	w.Holders = append(w.Holders, h)
	return holdsText(h)
}

// addHolderAs is addHolder for a claim in another group.
func (w *Wait) addHolderAs(v View, g Held) string {
	h := v.holder(g.Claim, !g.Dead)
	w.Holders = append(w.Holders, h)
	return holdsTextAs(h, g.Name)
}

// setRemedy sets what frees a place.
func (w *Wait) setRemedy(all ...map[int]state.Claim) {
	w.Remedy = RemedyFor(w.Holders...)
	for _, claims := range all {
		for _, i := range slices.Sorted(maps.Keys(claims)) {
			if bad := claims[i].Unread; bad != nil {
				w.Remedy = state.Act(bad.Clear)
			}
		}
	}
}

// holder is the node that has a claim, and its condition as far as it is known.
func (v View) holder(c state.Claim, alive bool) state.Holder {
	h := state.Holder{Node: c.Node, Step: c.Step, Since: c.Since, Alive: alive}
	if found, ok := v.Conditions[c.Node]; ok {
		h.Alive, h.Off, h.Failed, h.Parked = found.Alive, found.Off, found.Failed, found.Parked
	}
	return h
}

// holdsText says since when a node holds a place, and at which step.
func holdsText(h state.Holder) string { return holdsTextAs(h, "it") }

// holdsTextAs is holdsText for a place with a name.
func holdsTextAs(h state.Holder, name string) string {
	at := ""
	if h.Step != "" {
		at = " in step " + h.Step
	}
	since := h.Since.Local().Format(time.TimeOnly)
	return fmt.Sprintf("%s holds %s since %s%s (%s)", h.Node, name, since, at, Condition(h))
}

// queueWait says that another node is ahead in the queue. A holder that does not answer blocks both.
func (v View) queueWait() *Wait {
	w := &Wait{
		Kind:   state.WaitQueue,
		Gate:   v.Name,
		Reason: v.Ahead.String() + " comes first in the queue",
		Ahead:  v.Ahead.Node,
	}
	for _, i := range slices.Sorted(maps.Keys(v.Claims)) {
		if c := v.Claims[i]; v.Dead[i] {
			w.Reason += ", and " + w.addHolder(v, c, false)
		}
	}
	if w.Remedy = RemedyFor(w.Holders...); w.Itself() && v.Ahead.Unread != nil {
		w.Remedy = state.Act(v.Ahead.Unread.Clear)
	}
	return w
}
