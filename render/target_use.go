package render

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

// TargetUse is a target of a base file or of a step, and whether the catalog's node matches it.
type TargetUse struct {
	Pos     Position
	Text    string
	Matched bool
	Hint    string // what follows where no node does
}

// Targets are the targets that were asked about the catalog's node.
func (c *Catalog) Targets() []TargetUse { return c.targets }

// matches asks a target about the node, and remembers the answer.
func (c *compiler) matches(base *document, key *yaml.Node, t Target) bool {
	yes := t.Matches(c.scope.in.Node.Name, c.scope.in.Node.Labels)
	if name := base.pos(key).File; strings.HasSuffix(name, "base/jobs.yaml") || strings.HasSuffix(name, ServicesFile) {
		c.asked, c.matched = true, c.matched || yes
	}
	c.targets = append(c.targets, TargetUse{base.pos(key), key.Value, yes, "nobody gets what stands below it"})
	return yes
}
