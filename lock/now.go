package lock

import (
	"slices"

	"github.com/pullet/pullet/state"
)

// Now judges, by the record of now, nodes for which one waits: now is how they are, and left are those that it waits
// for still, as far as the record says. News are in words those that are otherwise than when it looked.
func Now(o *state.Overview, kind state.WaitKind, was []state.Holder) (now, left []state.Holder, news []string) {
	if o.Current == nil {
		return was, was, nil
	}
	for _, h := range was {
		is := h
		if judge(&is, o.BlockersOf(h.Node), o.Switches, o.Current.ID); is.Away {
			is.Off = "" // to enable it is not enough
		}
		over := over(o, kind, is)
		if now = append(now, is); over == "" {
			left = append(left, is)
		}
		if life := lifeOf(over, is); h.Node != "" && life != lifeOf("", h) {
			news = append(news, h.Node+" ("+life+")")
		}
	}
	return now, left, news
}

// over is why nobody waits for a node any more; "" where it is waited for still, or the overview does not say.
func over(o *state.Overview, kind state.WaitKind, h state.Holder) string {
	holds := func() bool {
		for _, claims := range o.Slots {
			for _, c := range claims {
				if c.Node == h.Node || c.Unread != nil {
					return true
				}
			}
		}
		return false
	}
	switch {
	case h.Gone && len(h.Took) == 0:
		return "decommissioned"
	case h.Away && h.Alive:
		return "alive"
	case kind == state.WaitRole && o.Running[h.Node] == o.Current.ID:
		return "upgraded"
	case slices.Contains([]state.WaitKind{state.WaitSlot, state.WaitTotal}, kind) && !h.Away && h.Node != "" && !holds():
		return "it holds none"
	}
	return ""
}

// lifeOf is how a node is, in words, where it is not waited for any more too.
func lifeOf(over string, h state.Holder) string {
	if over != "" {
		return over
	}
	return life(h)
}
