package lock

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/state"
)

// busy is why there is no place: who holds them, and who is away.
func (v View) busy() *Wait {
	w := &Wait{Kind: v.Kind, Gate: fmt.Sprintf("%s (%d at a time)", v.Name, v.Limit)}
	var parts []string
	for _, i := range slices.Sorted(maps.Keys(v.Claims)) {
		parts = append(parts, w.held(v, v.Claims[i], !v.Dead[i]))
	}
	guests := map[int]state.Claim{}
	for i, g := range v.Guests {
		guests[-1-i] = g.Claim
		parts = append(parts, w.heldAs(v, g)+" and counts here, too")
	}
	if v.lost() > 0 {
		for _, node := range v.Away {
			parts, w.Holders = append(parts, node+" does not answer"), append(w.Holders, state.Holder{Node: node, Seen: true, Away: true})
		}
	}
	if w.clears(v.Claims, guests); v.lost() > 0 && v.More > 0 {
		parts = append(parts, fmt.Sprintf("nodes that do not answer: %d", v.More))
		w.Remedy = state.Act("see pullet nodes --missing: start them again, or give them up with pullet decommission")
	}
	w.Reason = strings.Join(parts, ", ")
	return w
}

// busyFleet is why there is no place in the whole fleet: who holds them, of all groups.
func (v View) busyFleet() *Wait {
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
		parts = append(parts, w.held(v, c, !dead))
	}
	w.Reason = strings.Join(parts, ", ")
	w.clears(unread)
	return w
}

// held adds the holder of a claim, and says who it is. One that cannot be read is somebody's.
func (w *Wait) held(v View, c state.Claim, alive bool) string {
	if c.Unread != nil {
		return fmt.Sprintf("etcd key %s cannot be read (%s)", c.Unread.Key, c.Unread.Why)
	}
	h := v.holder(c, alive)
	w.Holders = append(w.Holders, h)
	return held(h)
}

// heldAs is held for a claim in another group.
func (w *Wait) heldAs(v View, g Held) string {
	h := v.holder(g.Claim, !g.Dead)
	w.Holders = append(w.Holders, h)
	return heldAs(h, g.Name)
}

// clears says what frees a place.
func (w *Wait) clears(all ...map[int]state.Claim) {
	w.Remedy = remedyFor(w.Holders)
	for _, claims := range all {
		for _, i := range slices.Sorted(maps.Keys(claims)) {
			if bad := claims[i].Unread; bad != nil {
				w.Remedy = state.Act(bad.Clear)
			}
		}
	}
}

// holder is who has a claim, as far as it is known how that one is.
func (v View) holder(c state.Claim, alive bool) state.Holder {
	h := state.Holder{Node: c.Node, Step: c.Step, Since: c.Since, Alive: alive}
	if found, ok := v.Trouble[c.Node]; ok {
		h.Alive, h.Off, h.Failed, h.Parked = found.Alive, found.Off, found.Failed, found.Parked
	}
	return h
}

// held says since when and where a node holds a place.
func held(h state.Holder) string { return heldAs(h, "it") }

// heldAs is the same of a place with a name.
func heldAs(h state.Holder, name string) string {
	at := ""
	if h.Step != "" {
		at = " in step " + h.Step
	}
	return fmt.Sprintf("%s holds %s since %s%s (%s)", h.Node, name, h.Since.Local().Format(time.TimeOnly), at, life(h))
}

// behind is why there is no place yet for who queues behind another node. Where a holder does not answer, that one is
// in the way of both.
func (v View) behind() *Wait {
	w := &Wait{
		Kind:   state.WaitQueue,
		Gate:   v.Name,
		Reason: v.Ahead.String() + " comes first in the queue",
		Ahead:  v.Ahead.Node,
	}
	for _, i := range slices.Sorted(maps.Keys(v.Claims)) {
		if c := v.Claims[i]; v.Dead[i] {
			w.Reason += ", and " + w.held(v, c, false)
		}
	}
	if w.Remedy = remedyFor(w.Holders); w.Itself() && v.Ahead.Unread != nil {
		w.Remedy = state.Act(v.Ahead.Unread.Clear)
	}
	return w
}
