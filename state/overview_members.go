package state

import "slices"

// Members are the nodes of a group, sorted: those of its roster, or of the role where nobody asked for a roster yet.
func (o *Overview) Members(group string) (out []string) {
	if roster := o.Rosters[group]; roster != nil {
		return roster.Nodes()
	}
	for node := range o.Nodes {
		if o.In(node, group) {
			out = append(out, node)
		}
	}
	for node, role := range o.Listed {
		if _, known := o.Nodes[node]; !known && GroupOf(role) == group {
			out = append(out, node)
		}
	}
	slices.Sort(out)
	return out
}
