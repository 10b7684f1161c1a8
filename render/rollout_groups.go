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

// idlePatterns warns of patterns that match no role of the inventory: the group takes in nobody by them.
func (c *compiler) idlePatterns(doc *document) {
	if len(c.inventory) == 0 {
		return
	}
	groups, roles := c.fleet.Rollout.GroupMappings, slices.Collect(maps.Keys(c.roles()))
	named := slices.DeleteFunc(slices.Clone(roles), func(role string) bool { return role == "" })
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		for _, p := range groups[group] {
			matches := func(role string) bool { return p.re == nil || p.re.MatchString(role) }
			if slices.ContainsFunc(roles, matches) {
				continue
			}
			e := doc.errorAt(doc.find("rollout", "groupMappings", group), "groupMappings: no node of the inventory has a role that matches %q", shortened(p.text))
			e.Severity, e.Hint = Warning, didYouMean(p.text, slices.Clone(named))
			c.warned = append(c.warned, e)
		}
	}
}

// claims are the groups that take in a role, by name.
func (r Rollout) claims(role string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.GroupMappings)), func(g string) bool { return !r.GroupMappings[g].match(role) })
}

func inTwoGroups(role string, groups []string) string {
	return fmt.Sprintf("the role %q is in two groups, %s and %s: a role takes turns in one", role, groups[0], groups[1])
}

// Against holds rules against the nodes of a fleet that has no inventory to check them with. A role in two groups is an error. A role or a pattern
// that stands for none of the nodes is a warning: such nodes may still come.
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
	roles := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(role string) bool { return role == "" })
	for _, group := range slices.Sorted(maps.Keys(r.GroupMappings)) {
		for _, p := range r.GroupMappings[group] {
			if !slices.ContainsFunc(roles, func(role string) bool { return p.re != nil && p.re.MatchString(role) }) {
				warnings = append(warnings, fmt.Sprintf("groupMappings: no node has a role that matches %q", shortened(p.text)))
			}
		}
	}
	for _, role := range r.unknownRoles(known) {
		text := fmt.Sprintf("no node has the role %q", role)
		if near := didYouMean(role, slices.Clone(roles)); near != "" {
			text += " (" + near + ")"
		}
		warnings = append(warnings, text)
	}
	return warnings, nil
}

// unknownRoles are the roles that limits and dependencies name and that are neither known, nor groups of the rules.
func (r Rollout) unknownRoles(known map[string]bool) []string {
	named := slices.Collect(maps.Keys(r.RollingRules.Roles))
	for role, deps := range r.RoleDependencies {
		named = append(append(named, role), deps...)
	}
	slices.Sort(named)
	return slices.DeleteFunc(slices.Compact(named), func(role string) bool {
		_, group := r.GroupMappings[role]
		return known[role] || group || r.Canary != nil && role == CanaryGroup
	})
}

// shortened is a text as messages quote it.
func shortened(text string) string {
	const most = 60
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
