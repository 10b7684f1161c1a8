package lock

import (
	"slices"

	"github.com/pullet/pullet/state"
)

// Refresh updates the nodes for which a status says that its node waits, as the record has them now: now is their
// condition, left are those that it still waits for, and news says in words which conditions changed.
func Refresh(o *state.Overview, said state.StatusLine) (now, left []state.Holder, news []string) {
	if o.Current == nil {
		return said.Holders, said.Holders, nil
	}
	for _, h := range said.Holders {
		is := h
		if fillCondition(&is, o.BlockersOf(h.Node), o.Switches, o.Current.ID); is.Away {
			is.Off = "" // to enable it is not enough
		}
		over := over(o, said, is)
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
func over(o *state.Overview, said state.StatusLine, h state.Holder) string {
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
	case said.Kind == state.WaitRole && o.Runs(h.Node):
		return "upgraded"
	case (said.Kind == state.WaitSlot || said.Kind == state.WaitTotal) && !h.Away && h.Node != "" && !holds():
		return "it holds none"
	}
	return overInRun(o, said, h)
}

// overInRun is over for a wait at a step: the other's pull ended well since, or is at the same barrier.
func overInRun(o *state.Overview, said state.StatusLine, h state.Holder) string {
	if !slices.Contains([]state.WaitKind{state.WaitSerialize, state.WaitBarrier, state.WaitResult}, said.Kind) {
		return ""
	}
	since := func(st state.StatusLine) bool { return st.Version == o.Current.ID && st.Revision > said.Revision }
	result, waits := o.Statuses[h.Node][state.Configured], o.Statuses[h.Node][state.Rollout]
	switch {
	case result.State == state.Success && since(result):
		return "its pull ended well"
	case said.Kind == state.WaitBarrier && waits.Kind == said.Kind && waits.Gate == said.Gate && since(waits):
		return "it is there"
	}
	return ""
}

// conditionTextOf is Condition, also for a node that nobody waits for any more.
func conditionTextOf(over string, h state.Holder) string {
	if over != "" {
		return over
	}
	return Condition(h)
}
