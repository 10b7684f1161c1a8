package render

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// asksForServers finds the nodes that an expression reads: servervars['NAME'], servervars.NAME, pullet.servers(TARGET),
// or the macro that is shipped for it.
var asksForServers = lazyregexp.New("\\bservervars(?:\\[\\s*[\"'`]([^\"'`]+)[\"'`]\\s*\\]|\\.(\\w+))?" +
	"|\\b(?:pullet|eden)\\.[sS]ervers\\s*\\(?(?:\\s*[\"'`]([^\"'`]*)[\"'`])?" +
	"|\\b" + serversByLabel + "\\b(?:[\"'`]\\]?\\s*[,(]?\\s*[\"'`]([^\"'`]*)[\"'`])?")

// readsServers are targets of the nodes that an expression reads; "" is one that it computes, or all nodes.
func readsServers(expression string) (targets []string) {
	for _, m := range asksForServers.FindAllStringSubmatch(expression, -1) {
		targets = append(targets, cmp.Or(m[1:]...))
	}
	return targets
}

// servers are targets of the nodes that the action at a line and column of the template reads, itself or by a variable.
// Decided adds those of the conditions that the action stands below.
func (s *source) servers(line, col int, decided bool) []string {
	return s.reads(line, col, decided, readServers)
}

// readServers finds the nodes that a call reads.
func readServers(c *parse.CommandNode) (target string, reads bool) {
	if isChain(c.Args[0], "servers", "pullet", "eden") {
		return literalArg(c, 1), true
	}
	if isCall(c.Args[0], "macro") && len(c.Args) > 1 {
		if s, ok := c.Args[1].(*parse.StringNode); ok && s.Text == serversByLabel {
			return literalArg(c, 2), true
		}
	}
	for i, arg := range c.Args {
		if isCall(arg, "servervars") {
			return literalArg(c, i+1), true
		}
		if chain, ok := arg.(*parse.ChainNode); ok && isCall(chain.Node, "servervars") {
			return chain.Field[0], true
		}
	}
	return "", false
}

// Unseen is the first node of the inventory, by name, that one of these targets matches and that is not registered in a
// view; "" where there is none. An empty target stands for any node.
func (i Inventory) Unseen(v View, targets []string) string {
	for _, text := range targets {
		target, err := ParseTarget(cmp.Or(text, "*"))
		if err != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(i)) {
			if _, came := v.Nodes[name]; !came && target.Matches(name, i[name].Labels) {
				return name
			}
		}
	}
	return ""
}

// isChain reports a field of one of some names.
func isChain(n parse.Node, field string, names ...string) bool {
	chain, ok := n.(*parse.ChainNode)
	if !ok || !strings.EqualFold(chain.Field[0], field) {
		return false
	}
	return slices.ContainsFunc(names, func(name string) bool { return isCall(chain.Node, name) })
}
