package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/harness/rules"
)

// checkLimits checks an admission against the limit of the group of its node and that of the whole fleet. A node counts
// in the groups that it had when it made its claim, and in those that it has now: a canary has that of its role, too.
func (j *judge) checkLimits(h *hold) {
	v := j.versions[h.version]
	if v == nil {
		return // known says so
	}
	group, home := v.Groups[h.node], v.Homes[h.node]
	limit := v.Limits[group]
	inGroup, inRole, inFleet := []*hold{h}, []*hold{h}, []*hold{h}
	for _, o := range j.holds {
		// A host fault leaves room for another host.
		if !o.overlaps(h) || j.isUnknown(o, h) || j.isReclaimed(o, h) || j.hasHostFault(o.node, o.version, h.from) {
			continue
		}
		before, waits := j.groupsBefore(o, h)
		counts := append(before, v.Groups[o.node], v.Homes[o.node])
		if slices.Contains(counts, group) {
			inGroup = append(inGroup, o)
		}
		if !waits && slices.Contains(counts, home) {
			inRole = append(inRole, o)
		}
		if !waits && o.countsInTotal(h) {
			inFleet = append(inFleet, o)
		}
	}
	j.seen["admissions"]++
	j.seen["most of a group at a time"] = max(j.seen["most of a group at a time"], len(inGroup))
	if len(inGroup) > limit {
		j.breach("limit", holdLines(inGroup, h),
			"%s is admitted to version %d as one of %s, where %d may change at a time: %s", h.node, v.Number, group, limit,
			holders(inGroup))
	}
	if home != group && len(inRole) > v.Limits[home] { // a canary is a host of its role
		j.breach("limit", holdLines(inRole, h),
			"the canary %s is admitted to version %d as one of %s, where %d may change at a time: %s", h.node, v.Number, home,
			v.Limits[home], holders(inRole))
	}
	if v.Total > 0 && len(inFleet) > v.Total {
		j.breach("total", holdLines(inFleet, h),
			"%s is admitted to version %d, where %d of the whole fleet may change at a time: %s", h.node, v.Number, v.Total,
			holders(inFleet))
	}
}

// groupsBefore returns the groups in which a holder counts in addition to its current ones when another node is
// admitted: those at the version with which it made its claim. While the holder waits for other groups it counts in its
// current ones only, and from then on in those with which it continues.
func (j *judge) groupsBefore(o, admitted *hold) (before []string, waits bool) {
	version := o.version
	for _, f := range j.facts["idle"] {
		if f.what[0] != o.node || !j.has(admitted.era, f) || f.rev <= o.fence || f.rev >= admitted.fence {
			continue
		}
		if waits && f.what[1] == "off" {
			version = j.versionAt(admitted.era, f.rev, version)
		}
		waits = f.what[1] == "on"
	}
	if was := j.versions[version]; was != nil && !waits && !o.back {
		before = []string{was.Groups[o.node], was.Homes[o.node]}
	}
	return before, waits
}

// isUnknown reports whether a restored etcd has lost a claim, and another node is admitted before any node or operator
// reports the loss (I16).
func (j *judge) isUnknown(o, admitted *hold) bool {
	if j.has(admitted.era, fact{era: o.era, rev: o.fence}) {
		return false
	}
	doubted := j.asOf("switch", admitted, func(w []string) bool { return w[0] == "store" })
	return (doubted == nil || doubted.era < admitted.era) && !slices.ContainsFunc(j.marks["accepted"], func(m mark) bool {
		return m.line < admitted.from && slices.ContainsFunc(j.marks["restored"], func(r mark) bool {
			return r.what[0] == fmt.Sprint(admitted.era) && r.line < m.line
		})
	})
}

// holders names the nodes of claims.
func holders(holds []*hold) string {
	var names []string
	for _, h := range holds {
		names = append(names, fmt.Sprintf("%s (claim %d)", h.node, h.fence))
	}
	return strings.Join(names, ", ")
}

// holdLines returns the lines that show the claims: for each node the last line before the admission and the first one
// after it.
func holdLines(holds []*hold, admitted *hold) (out []int) {
	for _, h := range holds {
		before, after := h.from, h.to
		for _, s := range h.stints {
			if s.from <= admitted.from {
				before = s.from
			}
			if s.to >= admitted.from {
				after = min(after, s.to)
			}
		}
		if out = append(out, before); h != admitted {
			out = append(out, after)
		}
	}
	return out
}

// checkOrder checks that all groups on which the group of a node depends are done.
func (j *judge) checkOrder(h *hold) {
	v := j.versions[h.version]
	if v == nil {
		return
	}
	for _, group := range v.Depends[v.Groups[h.node]] {
		for _, node := range slices.Sorted(maps.Keys(v.Groups)) {
			if v.Groups[node] != group || j.isDone(node, v, h.from) || j.isExempt(node, v, h.from) {
				continue
			}
			j.breach("dependencies", []int{h.from, j.lastLine(node, h.from)},
				"%s is admitted to version %d as one of %s before %s of %s is done", h.node, v.Number, v.Groups[h.node], node,
				group)
		}
		j.seen["admissions after other groups"]++
	}
}

// checkStops checks that nothing prevented an admission: a halt, a pause, a restore, a switch, a maintenance window, or
// the soak time of canaries.
func (j *judge) checkStops(h *hold) {
	v := j.versions[h.version]
	if v == nil {
		return
	}
	group := v.Groups[h.node]
	for _, scope := range []string{group, "*"} {
		if f := j.asOf("gate", h, func(w []string) bool {
			return baseVersion(w[0]) == h.version && j.isCurrent(h, w[0]) &&
				w[1] == scope
		}); f != nil && f.what[2] == "halted" && !j.hasFailed(h) {
			j.breach("halt", []int{f.line, h.from},
				"%s is admitted to version %d at revision %d although %s is halted there since revision %d", h.node, v.Number,
				h.fence, scope, f.rev)
		}
	}
	if f := j.asOf("switch", h, func(w []string) bool { return w[0] == "pause" }); f != nil && f.what[1] == "off" {
		j.breach("pause", []int{f.line, h.from}, "%s is admitted at revision %d in a pause since revision %d", h.node,
			h.fence, f.rev)
	}
	if f := j.asOf("switch", h, func(w []string) bool { return w[0] == "store" }); f != nil && f.what[1] == "off" &&
		f.era == h.era {
		j.breach("restore", []int{f.line, h.from},
			"%s is admitted at revision %d although etcd was restored and nobody accepted it since revision %d", h.node, h.fence,
			f.rev)
	}
	if f := j.disablingSwitch(h, v.Roles[h.node]); f != nil {
		j.breach("disable", []int{f.line, h.from}, "%s is admitted at revision %d although %s is disabled since revision %d",
			h.node, h.fence, f.what[0], f.rev)
	}
	if v.Closed && group != "canary" {
		j.breach("window", []int{h.from}, "%s is admitted to version %d outside of its maintenance window", h.node, v.Number)
	}
	for _, before := range v.Depends[group] {
		if f := j.asOf("soak", h, func(w []string) bool { return j.isCurrent(h, w[0]) && w[1] == before }); f != nil &&
			f.what[2] == "on" {
			j.breach("soak", []int{f.line, h.from}, "%s is admitted at revision %d while %s is watched since revision %d",
				h.node, h.fence, before, f.rev)
		}
	}
}

// hasFailed reports whether something of the version failed on the node before: such a node may try again during a
// halt.
func (j *judge) hasFailed(h *hold) bool {
	return slices.ContainsFunc(j.stints, func(s *stint) bool {
		bad := s.code != 0 || s.step == rules.Last && j.versions[h.version].Bad == "validation"
		return s.node == h.node && s.version == h.version && s.from < h.from && bad
	})
}
