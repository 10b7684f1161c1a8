package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/harness/rules"
)

// contains reports whether a line is within the stint.
func (s *stint) contains(line int) bool { return s.from < line && line < s.to && !s.vanished }

// overlaps reports whether one node held its claim when the claim of another was made. Its claim is older, and it works
// under it after the first step of the other began.
func (h *hold) overlaps(other *hold) bool {
	older := h.era < other.era || h.era == other.era && h.fence < other.fence
	return h.node != other.node && older && h.to > other.from
}

// countsInTotal reports whether a node had its slot in the total when another was admitted. A node that adopts its
// claim for another version may give that slot back in between: only its work for one version, before and after,
// counts.
func (h *hold) countsInTotal(other *hold) bool {
	for i, s := range h.stints {
		first := i == 0 || h.stints[0].version == s.version
		if s.to > other.from && (s.from < other.from && s.contains(other.from) || first && !s.vanished) {
			return true
		}
	}
	return false
}

// isDone reports whether a node had run a version to its end before a line.
func (l *Log) isDone(node string, v *rules.Version, before int) bool {
	return slices.ContainsFunc(l.stints, func(s *stint) bool {
		return s.node == node && s.version == v.ID && s.step == rules.Last && s.code == 0 && s.to < before
	})
}

// isExempt reports whether others need not wait for a node in a version: an operator decommissioned it, its lease ended
// and the rules release such nodes, or it has a host fault, of which a group tolerates some.
func (l *Log) isExempt(node string, v *rules.Version, before int) bool {
	return v.OnLost == "release" && l.wentSilent(node, v) || l.hasHostFault(node, v.ID, before) ||
		slices.ContainsFunc(l.marks["decommission"], func(m mark) bool { return m.what[0] == node && m.line < before })
}

// hasHostFault reports whether the host of a node had a fault since the fleet came to a version.
func (l *Log) hasHostFault(node, version string, before int) bool {
	for _, at := range l.facts["current"] {
		if at.what[0] == version {
			return slices.ContainsFunc(l.marks["sick"], func(m mark) bool {
				return m.what[0] == node && at.line < m.line &&
					m.line < before
			})
		}
	}
	return false
}

// wentSilent reports whether the lease of a node ended since the fleet came to a version, or had ended before. The log
// has the revision of that and not its place among the lines.
func (l *Log) wentSilent(node string, v *rules.Version) bool {
	for _, at := range l.facts["current"] {
		if at.what[0] == v.ID {
			return l.isSilentAt(node, at) || slices.ContainsFunc(l.facts["silent"], func(f fact) bool {
				return f.what[0] == node && (f.era > at.era || f.era == at.era && f.rev > at.rev)
			})
		}
	}
	return false
}

// isSilentAt reports whether a node had no lease at a fact.
func (l *Log) isSilentAt(node string, at fact) bool {
	last := func(what string) (rev int64) {
		for _, f := range l.facts[what] {
			if f.what[0] == node && l.has(at.era, f) && f.rev < at.rev {
				rev = max(rev, f.rev)
			}
		}
		return rev
	}
	return last("silent") > last("alive")
}

// lastLine returns the last line of a node before another line, or that line.
func (l *Log) lastLine(node string, before int) int {
	at := before
	for _, s := range l.stints {
		if s.node == node && s.from < before {
			at = s.from
			if s.to < before {
				at = s.to
			}
		}
	}
	return at
}

// baseVersion returns the version of a rollout. The rollout has a suffix if the version was set again.
func baseVersion(rollout string) string {
	version, _, _ := strings.Cut(rollout, ".")
	return version
}

// isCurrent reports whether the fleet was in a rollout when a claim was made.
func (l *Log) isCurrent(h *hold, rollout string) bool {
	now := ""
	for _, f := range l.facts["current"] {
		if l.has(h.era, f) && f.rev <= h.fence {
			now = f.what[1]
		}
	}
	return now == rollout
}

// asOf returns the last fact of a kind before a claim, or nil.
func (l *Log) asOf(what string, h *hold, of func([]string) bool) *fact {
	var found *fact
	for i, f := range l.facts[what] {
		if l.has(h.era, f) && f.rev < h.fence && of(f.what) {
			found = &l.facts[what][i]
		}
	}
	return found
}

// disablingSwitch returns the switch of an operator that prevented the claim of a node, or nil. The switch of the host
// comes first, then the one of the role, then the global one.
func (l *Log) disablingSwitch(h *hold, role string) *fact {
	for _, scope := range []string{"host/" + h.node, "role/" + role, "global"} {
		f := l.asOf("switch", h, func(w []string) bool { return w[0] == scope })
		switch {
		case f == nil || f.what[1] == "-":
		case f.what[1] == "off":
			return f
		case f.what[1] == "on" || f.what[1] == h.version:
			return nil
		default:
			return f
		}
	}
	return nil
}

// isReclaimed reports whether the claim of a node was reclaimed before another one was made. The node finishes the step
// that it is in.
func (l *Log) isReclaimed(h, before *hold) bool {
	for _, f := range l.facts["lost"] {
		if l.has(before.era, f) && f.rev < before.fence && f.what[0] == h.node && f.what[1] == fmt.Sprint(h.fence) {
			return true
		}
	}
	for _, m := range l.marks["decommission"] {
		if m.what[0] == h.node && m.line < before.from && m.line > h.from {
			return true
		}
	}
	return false
}

// isReleased reports whether the slot of a stint was reclaimed while its node was in the step.
func (l *Log) isReleased(o, by *stint) bool {
	for _, f := range l.facts["lost"] {
		if f.what[0] == o.node && f.line > o.from {
			return true
		}
	}
	return slices.ContainsFunc(l.marks["decommission"], func(m mark) bool {
		return m.what[0] == o.node &&
			m.line > o.from && m.line < by.from
	})
}

// hasArrived reports whether a node arrived at the barrier before a step after it.
func (l *Log) hasArrived(node string, behind *stint) bool {
	return slices.ContainsFunc(l.stints, func(s *stint) bool {
		return s.node == node && s.version == behind.version && s.step == rules.Meet && s.code == 0 && s.to < behind.from
	})
}

// wasDisabled reports whether a node was disabled at some time since the version was pushed, and had begun nothing of
// it before.
func (l *Log) wasDisabled(node string, v *rules.Version, before int) bool {
	began := math.MaxInt
	for _, s := range l.stints {
		if s.node == node && s.version == v.ID && s.fence != 0 {
			began = min(began, s.from)
		}
	}
	for i, f := range l.facts["switch"] {
		hits := f.what[0] == "host/"+node || f.what[0] == "role/"+v.Roles[node] || f.what[0] == "global"
		if hits && f.what[1] != "on" && f.what[1] != "-" && f.line < before && f.line < began && !l.isLifted(i, v) {
			return true
		}
	}
	return false
}

// isLifted reports whether a switch was lifted before the fleet came to a version.
func (l *Log) isLifted(at int, v *rules.Version) bool {
	off := l.facts["switch"][at]
	for _, came := range l.facts["current"] {
		if came.what[0] != v.ID {
			continue
		}
		return slices.ContainsFunc(l.facts["switch"][at+1:], func(f fact) bool {
			return f.what[0] == off.what[0] && f.era == came.era && f.rev < came.rev && f.what[1] != "off"
		})
	}
	return false
}

// isForgotten reports whether etcd was restored while the fleet was at a version, and has lost its record of it.
func (l *Log) isForgotten(version string) bool {
	for _, m := range l.marks["restored"] {
		at := ""
		for _, f := range l.facts["current"] {
			if f.line < m.line {
				at = f.what[0]
			}
		}
		if at == version {
			return true
		}
	}
	return false
}

// wasRestored reports whether etcd was restored between two lines, and may have lost its record of the first.
func (l *Log) wasRestored(from, to int) bool {
	return slices.ContainsFunc(l.marks["restored"], func(m mark) bool { return from < m.line && m.line < to })
}

// wasReverted reports whether a host lost its state between two lines.
func (l *Log) wasReverted(host string, from, to int) bool {
	return slices.ContainsFunc(l.marks["reverted"], func(m mark) bool {
		return m.what[0] == host && from < m.line &&
			m.line < to
	})
}
