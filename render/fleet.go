package render

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Fleet is pullet.yaml: what holds for all nodes.
type Fleet struct {
	Metadata *Metadata `yaml:"metadata"` // names the file; it changes nothing
	Rollout  Rollout   `yaml:"rollout"`  // how a new version spreads
}

// Rollout says how a new version spreads.
type Rollout struct {
	RollingRules     RollingRules       `yaml:"rollingRules"`     // how many nodes change at a time
	RoleDependencies map[string]Strings `yaml:"roleDependencies"` // role -> the roles that must be done before it
	RoleOrder        map[string]Strings `yaml:"roleOrder"`        // the older name of roleDependencies
	MaxFailures      int                `yaml:"maxFailures"`      // failures that a group survives; default 0
}

// RollingRules limit how many nodes of a role change at a time.
type RollingRules struct {
	Global Limit            `yaml:"global"` // for every role without a rule of its own; default 1
	Roles  map[string]Limit `yaml:"roles"`  // by role
}

// Limit is a number of nodes, or a percentage of a roster: "3", "25%". The zero Limit is not set; a literal 0 freezes.
type Limit struct {
	Text string
}

func (l *Limit) decode(d *decoder, n *yaml.Node) {
	l.Text = n.Value
	if _, ok := l.Of(1); !ok || n.Kind != yaml.ScalarNode {
		d.failf(n, "%s is not a limit: write a number of nodes such as 2, or a share of the role such as 25%%", kindName(n))
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

// LimitFor is how many nodes of a role may change at a time, out of a roster of n.
func (r Rollout) LimitFor(role string, n int) int {
	limit, ok := r.RollingRules.Roles[role]
	if !ok {
		limit = r.RollingRules.Global
	}
	if limit.Text == "" {
		return 1
	}
	nodes, _ := limit.Of(n)
	return nodes
}

// Inventory are the nodes that must exist, by name.
type Inventory map[string]Node

// inventoryFile is one file under nodes/.
type inventoryFile struct {
	Metadata *Metadata                `yaml:"metadata"`       // names the file; it changes nothing
	Nodes    map[string]inventoryNode `yaml:"nodes,required"` // by host name
}

// inventoryNode is a host that must exist.
type inventoryNode struct {
	Labels map[string]string `yaml:"labels"` // whatever the host's own configuration says; role is the group of its rollouts
}

// compileFleet reads pullet.yaml, of the last layer that has one, and the inventory of all layers. Neither is a template.
func (c *compiler) compileFleet() {
	c.inventory = Inventory{}
	for _, path := range c.repo.list("nodes") {
		doc := c.plainDocument(path)
		var body inventoryFile
		if doc == nil || !c.decode(doc, &body) {
			continue
		}
		for name, n := range body.Nodes {
			c.inventory[name] = Node{Name: name, Labels: n.Labels}
		}
	}
	if !c.repo.exists("pullet.yaml") {
		return
	}
	doc := c.plainDocument("pullet.yaml")
	if doc == nil || !c.decode(doc, &c.fleet) {
		return
	}
	c.checkRoles(doc)
}

// checkRoles refuses dependencies that could never be met.
func (c *compiler) checkRoles(doc *document) {
	r := &c.fleet.Rollout
	if len(r.RoleOrder) > 0 {
		if len(r.RoleDependencies) > 0 {
			c.fail(doc.errorAt(doc.find("rollout", "roleOrder"), "roleOrder and roleDependencies say the same thing: keep roleDependencies"))
			return
		}
		r.RoleDependencies, r.RoleOrder = r.RoleOrder, nil
	}
	at := func(role string) *yaml.Node { return doc.find("rollout", "roleDependencies", role) }
	if loop := cycle(r.RoleDependencies); loop != nil {
		c.fail(doc.errorAt(at(loop[0]), "the roles wait for each other: %s", strings.Join(loop, " -> ")))
	}
	c.checkRoleNames(doc, at)
}

// checkRoleNames finds roles that no node of the inventory has.
func (c *compiler) checkRoleNames(doc *document, at func(string) *yaml.Node) {
	if len(c.inventory) == 0 {
		return
	}
	known := map[string]bool{}
	for _, n := range c.inventory {
		known[n.Role()] = true
	}
	names := slices.Sorted(maps.Keys(known))
	for _, role := range slices.Sorted(maps.Keys(c.fleet.Rollout.RollingRules.Roles)) {
		if !known[role] {
			err := doc.errorAt(doc.find("rollout", "rollingRules", "roles", role), "rollingRules: no node of the inventory has the role %q", role)
			err.Hint = didYouMean(role, append([]string(nil), names...))
			c.fail(err)
		}
	}
	for _, role := range slices.Sorted(maps.Keys(c.fleet.Rollout.RoleDependencies)) {
		for _, name := range append([]string{role}, c.fleet.Rollout.RoleDependencies[role]...) {
			if !known[name] {
				err := doc.errorAt(at(role), "roleDependencies: no node of the inventory has the role %q", name)
				err.Hint = didYouMean(name, append([]string(nil), names...))
				c.fail(err)
			}
		}
	}
}

// find is the key at a path of keys below the root, or the nearest one above it.
func (d *document) find(path ...string) *yaml.Node {
	here, at := d.root, d.root
	for _, name := range path {
		for _, e := range entries(here) {
			if e.key.Value == name {
				at, here = e.key, e.value
			}
		}
	}
	return at
}

// cycle is a loop in what depends on what, from a name back to itself, or nil.
func cycle(deps map[string]Strings) []string {
	done := map[string]bool{}
	var path []string
	var visit func(name string) []string
	visit = func(name string) []string {
		if i := slices.Index(path, name); i >= 0 {
			return append(slices.Clone(path[i:]), name)
		}
		if done[name] {
			return nil
		}
		path = append(path, name)
		for _, next := range deps[name] {
			if loop := visit(next); loop != nil {
				return loop
			}
		}
		path, done[name] = path[:len(path)-1], true
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(deps)) {
		if loop := visit(name); loop != nil {
			return loop
		}
	}
	return nil
}
