// Package fleetnames has the names that the record of a fleet contains, and the error for one that it lacks. It is
// pure.
package fleetnames

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// Unknown returns the error for a name that the fleet does not have, with what was probably meant. Kind is what it
// should name, and look is the command that lists what there is.
func Unknown(kind, name string, known []string, look string) error {
	hint := Suggestion(name, known)
	return UnknownError(fmt.Sprintf("there is no %s %q in this fleet%s: see %s", kind, name, hint, look))
}

// UnknownError is a name that the fleet does not have.
type UnknownError string

func (e UnknownError) Error() string { return string(e) }

// Groups returns the groups that take turns: roles, and those that the rollout makes of them.
func Groups(o *state.Overview) []string {
	out := slices.AppendSeq(Roles(o), maps.Keys(o.Rosters))
	slices.Sort(out)
	return slices.Compact(out)
}

// Roles returns the roles of the fleet's nodes.
func Roles(o *state.Overview) []string {
	known := map[string]bool{}
	for _, n := range o.Nodes {
		known[state.GroupOf(n.Role)] = true
	}
	for _, role := range o.Listed {
		known[state.GroupOf(role)] = true
	}
	for _, roster := range o.Rosters {
		for _, role := range roster.Roles {
			known[role] = true
		}
	}
	return slices.Sorted(maps.Keys(known))
}

// Nodes returns the nodes that the fleet's record names: those that registered, and those that rosters wait for.
func Nodes(o *state.Overview) []string {
	known := map[string]bool{}
	for name := range o.Nodes {
		known[name] = true
	}
	for name := range o.Listed {
		known[name] = true
	}
	for _, roster := range o.Rosters {
		for _, name := range roster.Nodes() {
			known[name] = !o.Gone[name]
		}
	}
	maps.DeleteFunc(known, func(_ string, there bool) bool { return !there })
	return slices.Sorted(maps.Keys(known))
}

// Suggestion is a hint with the nearest known name.
func Suggestion(name string, known []string) string {
	if near := render.Nearest(name, known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}
