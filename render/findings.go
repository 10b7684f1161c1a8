package render

import (
	"maps"
	"slices"
)

// What a check over the catalogs of all nodes, such as package lint, asks of one of them.

// Warnings are what compiles here and is most likely not what was meant, as far as one node tells.
func (c *Catalog) Warnings() ErrorList {
	out := append(ErrorList(nil), c.halfChanged()...)
	out = append(out, c.unquoted()...)
	out = append(out, c.warned...)
	return append(out, c.brokenMacros()...)
}

// Idle reports whether a step does not run on this node, whatever a run finds: a condition of it is known to be false.
func (c *Catalog) Idle(step string) bool { return c.idle[step] }

// FactNames are the names of what the root server holds.
func (c *Catalog) FactNames() []string { return slices.Collect(maps.Keys(c.scope.server)) }

// MacroNames are the macros that the node has, sorted.
func (c *Catalog) MacroNames() []string { return c.scope.macros.names() }

// Offered are the services that base/services.yaml has some host offer, of any target.
func (c *Catalog) Offered() []string { return slices.Collect(maps.Keys(c.offering)) }

// HoldsWith reports a condition that is true with these services by name, as far as that can be told before anything
// has run.
func (c *Catalog) HoldsWith(e Expression, services map[string][]Service) bool {
	if e.code == nil {
		return false
	}
	s := c.scope.at(nil, nil)
	s.in.View.Services, s.in.View.Asked, s.item = services, nil, e.item
	release := c.repo.enter(s)
	defer release()
	out, err := runExpression(e.code, s)
	yes, _ := out.(bool)
	return err == nil && yes
}
