package render

import (
	"maps"
	"slices"
)

// warnStall warns of groups in which failures that do not halt can take all places: a failed node keeps its own.
func (c *compiler) warnStall(doc *document) {
	r := c.fleet.Rollout
	if r.MaxFailures <= 0 {
		return
	}
	sizes := map[string]int{}
	for name, n := range c.inventory {
		sizes[r.Group(name, n.Labels)]++
	}
	for group := range r.RollingRules.Roles {
		sizes[group] += 0
	}
	if len(sizes) == 0 {
		sizes[""] = 0
	}
	for _, group := range slices.Sorted(maps.Keys(sizes)) {
		places := r.LimitFor(group, sizes[group])
		if places == 0 || places > r.MaxFailures || sizes[group] == 1 {
			continue
		}
		what := "a role"
		if group != "" {
			what = "role " + group
		}
		e := doc.errorAt(
			doc.find("rollout", "maxFailures"),
			"maxFailures: %s halts at failure %d, and a failed node keeps its place: with %d at a time the others wait "+
				"without a halt",
			what,
			r.MaxFailures+1,
			places,
		)
		e.Severity, e.Hint = Warning, "lower maxFailures, or let more nodes change at a time than may fail"
		c.warned = append(c.warned, e)
	}
}
