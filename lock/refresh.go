package lock

import (
	"slices"

	"github.com/pullet/pullet/state"
)

// Refresh updates the nodes that a node waits for, as the record has them now: now is their condition, left are those
// that it still waits for, and news says in words which conditions changed.
func Refresh(o *state.Overview, kind state.WaitKind, was []state.Holder) (now, left []state.Holder, news []string) {
	if o.Current == nil {
		return was, was, nil
	}
	for _, h := range was {
		is := h
		if fillCondition(&is, o.BlockersOf(h.Node), o.Switches, o.Current.ID); is.Away {
			is.Off = "" // to enable it is not enough
		}
		over := over(o, kind, is)
		if now = append(now, is); over == "" {
			left = append(left, is)
		}
		if life := conditionTextOf(over, is); h.Node != "" && life != conditionTextOf("", h) {
			news = append(news, h.Node+" ("+life+")")
		}
	}
	return now, left, news
}

// over says why nobody waits for a node any more; "" where it is still waited for, or the overview does not say.
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

// conditionTextOf is conditionText, also for a node that nobody waits for any more.
func conditionTextOf(over string, h state.Holder) string {
	if over != "" {
		return over
	}
	return conditionText(h)
}
