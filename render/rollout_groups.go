package render

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v4"
)

// RolePatterns are regular expressions over roles; a single one is a list of one. Each has to match a role as a whole.
type RolePatterns []rolePattern

type rolePattern struct {
	text string
	re   *regexp.Regexp
	bad  error // why it is none
}

// maxInstructions bounds a regular expression as it is executed: each is looked at for every letter.
const maxInstructions = 5000

func (v *RolePatterns) decode(d *decoder, n *yaml.Node) {
	var list Strings
	list.decode(d, n)
	for _, text := range list {
		p := rolePattern{text: text}
		var size int
		switch size, p.bad = programSize(text); {
		case p.bad == nil && size > maxInstructions:
			p.bad = fmt.Errorf("it is too large")
		case p.bad == nil:
			p.re, p.bad = regexp.Compile("^(?:" + text + ")$")
		}
		*v = append(*v, p)
	}
}

func (v *RolePatterns) shape() *Shape { return (*Strings)(nil).shape() }

// match reports a role that one of the patterns matches.
func (v RolePatterns) match(role string) bool {
	return slices.ContainsFunc(v, func(p rolePattern) bool { return p.re != nil && p.re.MatchString(role) })
}

// unmatched is a pattern of a group that matches no role.
type unmatched struct {
	group, text string
	hint        string // the role that it most likely means; "" where none is near
}

// unmatchedPatterns are the patterns by which a group takes in no node with one of these roles. Those that cannot be
// read are left out.
func (r Rollout) unmatchedPatterns(roles map[string]bool) (out []unmatched) {
	known := slices.Sorted(maps.Keys(roles))
	for _, group := range slices.Sorted(maps.Keys(r.GroupMappings)) {
		for _, p := range r.GroupMappings[group] {
			if p.re != nil && !slices.ContainsFunc(known, p.re.MatchString) {
				out = append(out, unmatched{group, shortened(p.text), DidYouMean(p.text, named(known))})
			}
		}
	}
	return out
}

// named are the roles less that of nodes without one.
func named(roles []string) []string {
	return slices.DeleteFunc(slices.Clone(roles), func(role string) bool { return role == "" })
}

// claims are the groups that take in a role, by name.
func (r Rollout) claims(role string) []string {
	return slices.DeleteFunc(
		slices.Sorted(maps.Keys(r.GroupMappings)),
		func(g string) bool { return !r.GroupMappings[g].match(role) },
	)
}

func inTwoGroups(role string, groups []string) string {
	return fmt.Sprintf("the role %q is in two groups, %s and %s: a role takes turns in one", role, groups[0], groups[1])
}

// Against holds rules against the nodes of a fleet that has no inventory to check them with. A role in two groups is an
// error. A role or a pattern that stands for none of the nodes is a warning: such nodes may still come.
func (r Rollout) Against(nodes map[string]Node) (warnings []string, err error) {
	known := map[string]bool{}
	for _, n := range nodes {
		known[n.Role()] = true
	}
	for _, role := range slices.Sorted(maps.Keys(known)) {
		if in := r.claims(role); len(in) > 1 {
			return nil, errors.New(inTwoGroups(role, in))
		}
	}
	for _, p := range r.unmatchedPatterns(known) {
		warnings = append(
			warnings,
			fmt.Sprintf("groupMappings: no node has a role that matches %q%s", p.text, inBrackets(p.hint)),
		)
	}
	for _, u := range r.unknownRoles(known) {
		warnings = append(warnings, fmt.Sprintf("no node has the role %q%s", u.role, inBrackets(u.hint)))
	}
	slices.Sort(warnings)
	return slices.Compact(warnings), nil // several rules may name a role
}

// unknownRole is a role that a rule names and that no node has.
type unknownRole struct {
	rule string // of rollout
	at   string // under which key of the rule
	role string
	hint string // the role or group that it most likely means; "" where none is near
}

// unknownRoles are the roles that limits and dependencies name and that are neither known, nor groups of the rules.
func (r Rollout) unknownRoles(known map[string]bool) (out []unknownRole) {
	names := named(slices.Sorted(maps.Keys(known)))
	names = append(names, slices.Sorted(maps.Keys(r.GroupMappings))...)
	note := func(rule, at, role string, names []string) {
		_, group := r.GroupMappings[role]
		if !known[role] && !group && (r.Canary == nil || role != CanaryGroup) {
			out = append(out, unknownRole{rule, at, role, DidYouMean(role, slices.Clone(names))})
		}
	}
	for _, role := range slices.Sorted(maps.Keys(r.RoleDependencies)) {
		for _, name := range append([]string{role}, r.RoleDependencies[role]...) {
			note("roleDependencies", role, name, names)
		}
	}
	if r.Canary != nil { // in roleDependencies it would say nothing: everybody comes after the canaries
		names = append(names, CanaryGroup)
	}
	for _, role := range slices.Sorted(maps.Keys(r.RollingRules.Roles)) {
		note("rollingRules", role, role, names)
	}
	return out
}

// shortened is a text as messages quote it.
func shortened(text string) string {
	const most = 60
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
