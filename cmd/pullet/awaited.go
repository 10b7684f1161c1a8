package main

import (
	"maps"
	"slices"

	"github.com/pullet/pullet/state"
)

// absentNode is a node of the inventory that never registered.
func absentNode(name, role string) nodeStatus {
	return nodeStatus{
		Node: name, Role: role, State: missing, Why: "it is listed under nodes/ and was never seen",
		Remedy: state.Act("start it, remove it there, or give it up: pullet decommission " + name),
	}
}

// awaited are the nodes that the fleet waits for and that never registered, by name: those of the inventory and of
// frozen rosters.
func awaited(o *state.Overview) []nodeStatus {
	roles := map[string]string{}
	for group, roster := range o.Rosters {
		role := group
		if len(roster.Roles) == 1 {
			role = roster.Roles[0]
		}
		for _, name := range roster.Nodes() {
			roles[name] = role
		}
	}
	maps.Copy(roles, o.Listed)
	var out []nodeStatus
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		if _, known := o.Nodes[name]; !known && !o.Gone[name] {
			out = append(out, absentNode(name, roles[name]))
		}
	}
	return out
}

// stillListed are the decommissioned nodes that the inventory lists.
func stillListed(o *state.Overview) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(o.Listed)) {
		if o.Gone[name] {
			out = append(out, name)
		}
	}
	return out
}
