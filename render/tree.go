package render

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// walkNodes calls visit for every node of a template's parse tree.
func walkNodes(n parse.Node, visit func(parse.Node)) {
	if n == nil || reflect.ValueOf(n).IsNil() {
		return
	}
	visit(n)
	for _, child := range children(n) {
		walkNodes(child, visit)
	}
}

// children are the nodes directly below a node.
func children(n parse.Node) []parse.Node {
	switch n := n.(type) {
	case *parse.ListNode:
		return n.Nodes
	case *parse.ActionNode:
		return []parse.Node{n.Pipe}
	case *parse.PipeNode:
		var out []parse.Node
		for _, c := range n.Cmds {
			out = append(out, c)
		}
		return out
	case *parse.CommandNode:
		return n.Args
	case *parse.ChainNode:
		return []parse.Node{n.Node}
	case *parse.IfNode:
		return []parse.Node{n.Pipe, n.List, n.ElseList}
	case *parse.RangeNode:
		return []parse.Node{n.Pipe, n.List, n.ElseList}
	case *parse.WithNode:
		return []parse.Node{n.Pipe, n.List, n.ElseList}
	case *parse.TemplateNode:
		return []parse.Node{n.Pipe}
	}
	return nil
}

// exportMethods lets templates write pullet.servers for the method Servers: text/template calls methods only by
// exported names.
func exportMethods(n *parse.ChainNode) {
	ident, ok := n.Node.(*parse.IdentifierNode)
	if !ok || (ident.Ident != "pullet" && ident.Ident != "eden") || len(n.Field) == 0 {
		return
	}
	n.Field[0] = strings.ToUpper(n.Field[0][:1]) + n.Field[0][1:]
}

// usedBy are the functions that a node calls, with those of deferred actions: the parser copies all that it is given.
func usedBy(n parse.Node, funcs template.FuncMap) template.FuncMap {
	out := template.FuncMap{}
	for _, own := range []string{"deferred", "local", "printed", "keyed"} {
		out[own] = funcs[own]
	}
	walkNodes(n, func(n parse.Node) {
		if ident, ok := n.(*parse.IdentifierNode); ok && funcs[ident.Ident] != nil {
			out[ident.Ident] = funcs[ident.Ident]
		}
	})
	return out
}

// mapEntries is a map as a list of its entries, sorted by key.
func mapEntries(m reflect.Value) []any {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	out := make([]any, len(keys))
	for i, k := range keys {
		out[i] = map[string]any{"key": k.Interface(), "value": m.MapIndex(k).Interface()}
	}
	return out
}
