package render

import (
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Rollout says how a new version spreads.
type Rollout struct {
	// propose newer commits by itself; default true
	Follow       *bool        `yaml:"follow"`
	RollingRules RollingRules `yaml:"rollingRules"` // how many nodes change at a time
	// role -> the roles that must be done before it
	RoleDependencies map[string]Strings `yaml:"roleDependencies"`
	// the older name of roleDependencies
	RoleOrder map[string]Strings `yaml:"roleOrder"`
	// group -> patterns over roles, which then take turns as one
	GroupMappings map[string]RolePatterns `yaml:"groupMappings"`
	// failures that a group survives; default 0
	MaxFailures int `yaml:"maxFailures" least:"0"`
	// hosts of a group that may fail by faults of their own: 2, or a share such as 10%, which is at least 1; default 10%
	MaxHostFailures Limit   `yaml:"maxHostFailures"`
	Canary          *Canary `yaml:"canary"` // nodes that go first
	// what becomes of a node that stops to answer while others wait for it; default hold
	OnLost string `yaml:"onLost" words:"hold release fail"`
	// a group in which nobody finished for so long halts; 0 is never; default 30m
	ProgressDeadline *Duration `yaml:"progressDeadline"`
	Windows          []Window  `yaml:"windows"` // when upgrades may begin; none: always

	limitsInstructed bool
}

// LimitsInstructed reports that instructions said how many nodes change at a time, in the place of the repository.
func (r Rollout) LimitsInstructed() bool { return r.limitsInstructed }

// RollingRules limit how many nodes of a role change at a time.
type RollingRules struct {
	Global Limit            `yaml:"global"`          // for every role without a rule of its own; default 1
	Roles  map[string]Limit `yaml:"roles"`           // by role, or group
	Total  int              `yaml:"total" least:"0"` // of all roles together; 0 is any number; default 0
}

// Canary are the nodes that go first.
type Canary struct {
	Target Selector `yaml:"target,required"` // which nodes: canary=true
	Soak   Duration `yaml:"soak"`            // how long they are watched before others follow; default 0
}

// CanaryGroup is the group of the canaries, whatever their role.
const CanaryGroup = "canary"

// defaultProgress is the progress deadline of fleets that do not say.
const defaultProgress = 30 * time.Minute

// Progress is how long a group may be without a node that finished; 0 is any time.
func (r Rollout) Progress() time.Duration {
	if r.ProgressDeadline == nil {
		return defaultProgress
	}
	return r.ProgressDeadline.Std()
}

// defaultHostFailures is the share of a group that may fail by faults of the hosts, in fleets that do not say.
const defaultHostFailures = "10%"

// HostFailuresFor is how many hosts of a roster of n may fail by faults of their own before their group halts.
func (r Rollout) HostFailuresFor(n int) int {
	limit := r.MaxHostFailures
	if limit.Text == "" {
		limit.Text = defaultHostFailures
	}
	hosts, _ := limit.Of(n)
	return hosts
}

// HasCanaries reports canaries that go first. Frozen ones would never be through.
func (r Rollout) HasCanaries() bool { return r.Canary != nil && r.LimitFor(CanaryGroup, 1) > 0 }

// Follows reports that newer commits are proposed without being asked for.
func (r Rollout) Follows() bool { return r.Follow == nil || *r.Follow }

// Limit is a number of nodes, or a percentage of a roster: "3", "25%". The zero Limit is not set; a literal 0 freezes.
type Limit struct {
	Text string
}

func (l *Limit) decode(d *decoder, n *yaml.Node) {
	l.Text = n.Value
	if _, ok := l.Of(1); !ok || n.Kind != yaml.ScalarNode {
		d.failf(
			n,
			"%s is not a limit: write a number of nodes such as 2, or a share of the role such as 25%%",
			kindName(n),
		)
	}
}

// Of is the limit in nodes for a roster of n: a percentage is rounded down, but to no less than 1.
func (l Limit) Of(n int) (int, bool) {
	text, percent := strings.CutSuffix(l.Text, "%")
	value := 0
	if text == "" || len(text) > 6 {
		return 0, false
	}
	for _, r := range text {
		if r < '0' || r > '9' {
			return 0, false
		}
		value = value*10 + int(r-'0')
	}
	if !percent {
		return value, true
	}
	return max(1, n*value/100), value > 0 && value <= 100
}

// LimitFor is how many nodes of a group may change at a time, out of a roster of n.
func (r Rollout) LimitFor(group string, n int) int {
	limit, ok := r.RollingRules.Roles[group]
	if !ok {
		limit = r.RollingRules.Global
	}
	if limit.Text == "" {
		return 1
	}
	nodes, _ := limit.Of(n)
	return nodes
}

// Group is the group in which a node takes turns: that of the canaries, one that its role is mapped to, or its role; ""
// without a role.
func (r Rollout) Group(name string, labels map[string]string) string {
	if r.Canary != nil && r.Canary.Target.Matches(name, labels) {
		return CanaryGroup
	}
	return r.RoleGroup(labels["role"])
}

func (r Rollout) RoleGroup(role string) string {
	for _, group := range slices.Sorted(maps.Keys(r.GroupMappings)) {
		if r.GroupMappings[group].match(role) {
			return group
		}
	}
	return role
}

// Depends are the groups that must be through before a group starts: the canaries, and those of the roles that its
// roles depend on.
func (r Rollout) Depends(group string) []string {
	if r.Canary != nil && group == CanaryGroup {
		return nil
	}
	seen := map[string]bool{}
	for role, deps := range r.RoleDependencies {
		if role != group && r.RoleGroup(role) != group {
			continue
		}
		for _, dep := range deps {
			if g := r.RoleGroup(dep); g != group {
				seen[g] = true
			}
		}
	}
	if r.Canary != nil {
		seen[CanaryGroup] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// Stage is how many groups, one after another, come before a group. Canaries are stage 0.
func (r Rollout) Stage(group string) int { return r.stage(group, map[string]int{}) }

// stage remembers what it worked out: many roles that depend on many would be looked at again for every way between
// them.
func (r Rollout) stage(group string, known map[string]int) int {
	stage, ok := known[group]
	if ok {
		return stage
	}
	for _, g := range r.Depends(group) { // without a cycle: that is refused
		stage = max(stage, r.stage(g, known)+1)
	}
	known[group] = stage
	return stage
}

// checkRoles refuses rules that could never be met, or that contradict each other.
func (c *compiler) checkRoles(doc *document) {
	r := &c.fleet.Rollout
	if len(r.RoleOrder) > 0 {
		if len(r.RoleDependencies) > 0 {
			c.fail(
				doc.errorAt(
					doc.find("rollout", "roleOrder"),
					"roleOrder and roleDependencies say the same thing: keep roleDependencies",
				),
			)
			r.RoleDependencies, r.RoleOrder = nil, nil // unchecked, they may be a circle
			return
		}
		r.RoleDependencies, r.RoleOrder = r.RoleOrder, nil
	}
	c.checkMappings(doc)
	c.warnStall(doc)
	if loop := cycle(r.byGroup()); loop != nil {
		c.fail(
			doc.errorAt(
				doc.find("rollout", "roleDependencies", loop[0]),
				"the roles wait for each other: %s",
				strings.Join(loop, " -> "),
			),
		)
		r.RoleDependencies = nil
	}
	c.checkRoleNames(doc)
}

// byGroup are the dependencies between groups.
func (r Rollout) byGroup() map[string]Strings {
	out := map[string]Strings{}
	for role, deps := range r.RoleDependencies {
		group := r.RoleGroup(role)
		for _, dep := range deps {
			out[group] = append(out[group], r.RoleGroup(dep))
		}
	}
	return out
}

// checkMappings refuses patterns that are none, and roles that two groups claim.
func (c *compiler) checkMappings(doc *document) {
	groups := c.fleet.Rollout.GroupMappings
	names := slices.Sorted(maps.Keys(groups))
	for _, group := range names {
		at := doc.find("rollout", "groupMappings", group)
		if strings.ContainsAny(group, "/ \t") || group == "" || len(group) > 128 {
			c.fail(
				doc.errorAt(
					at,
					"groupMappings: %q is not a name for a group: no slashes and blanks, at most 128 letters",
					group,
				),
			)
		}
		for _, p := range groups[group] {
			if p.bad != nil {
				c.fail(doc.errorAt(at, "groupMappings: %q is not a pattern: %v", shortened(p.text), p.bad))
			}
		}
	}
	for _, role := range slices.Sorted(maps.Keys(c.roles())) {
		if in := c.fleet.Rollout.claims(role); len(in) > 1 {
			c.fail(doc.errorAt(doc.find("rollout", "groupMappings", in[1]), "groupMappings: %s", inTwoGroups(role, in)))
		}
	}
}

// roles are those of the inventory, and this node's.
func (c *compiler) roles() map[string]bool {
	known := map[string]bool{}
	for _, n := range c.inventory {
		known[n.Role()] = true
	}
	if role := c.scope.in.Node.Role(); role != "" {
		known[role] = true
	}
	return known
}

// checkRoleNames finds roles and patterns that no node of the inventory has. A pattern is no mistake: such nodes may
// still come.
func (c *compiler) checkRoleNames(doc *document) {
	if len(c.inventory) == 0 {
		return
	}
	for _, p := range c.fleet.Rollout.unmatchedPatterns(c.roles()) {
		e := doc.errorAt(
			doc.find("rollout", "groupMappings", p.group),
			"groupMappings: no node of the inventory has a role that matches %q",
			p.text,
		)
		e.Severity, e.Hint = Warning, p.hint
		c.warned = append(c.warned, e)
	}
	known := map[string]bool{}
	for _, n := range c.inventory {
		known[n.Role()] = true
	}
	for _, u := range c.fleet.Rollout.unknownRoles(known) {
		at := doc.find("rollout", u.rule, u.at)
		if u.rule == "rollingRules" {
			at = doc.find("rollout", u.rule, "roles", u.at)
		}
		err := doc.errorAt(at, "%s: no node of the inventory has the role %q", u.rule, u.role)
		err.Hint = u.hint
		c.fail(err)
	}
}
