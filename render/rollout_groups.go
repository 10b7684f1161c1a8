package render

import (
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

// shortened is a text as messages quote it.
func shortened(text string) string {
	const most = 60
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
