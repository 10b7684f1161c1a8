package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
)

// lowerFacts are the facts whose values never have capital letters.
var lowerFacts = []string{"os", "osFamily", "osLike", "osCodename", "arch"}

// capitals is a text with capital letters that an expression compares with a fact that never has any, at an offset in the expression.
type capitals struct {
	fact, text string
	at         int
}

// noteCapitals remembers server.os == 'Debian', server.os in ['Debian'] and 'Debian' in server.osLike.
func (r *references) noteCapitals(n *ast.BinaryNode) {
	if !slices.Contains([]string{"==", "!=", "in", "contains", "startsWith", "endsWith"}, n.Operator) {
		return
	}
	for _, sides := range [][2]ast.Node{{n.Left, n.Right}, {n.Right, n.Left}} {
		ref, ok := literalKeys(sides[0])
		if !ok || ref.root != "server" || len(ref.path) != 1 || !slices.Contains(lowerFacts, ref.path[0]) {
			continue
		}
		texts := []ast.Node{sides[1]}
		if list, ok := sides[1].(*ast.ArrayNode); ok {
			texts = list.Nodes
		}
		for _, node := range texts {
			if text, ok := node.(*ast.StringNode); ok && strings.ToLower(text.Value) != text.Value {
				r.capitals = append(r.capitals, capitals{ref.path[0], text.Value, text.Location().From})
			}
		}
	}
}

// inCapitals are the comparisons of a condition that can never hold, or always do.
func inCapitals(e Expression) ErrorList {
	var out ErrorList
	for _, c := range e.capitals {
		bad := e.error(&file.Error{Location: file.Location{From: c.at}, Message: fmt.Sprintf("the fact %q is never %q", c.fact, c.text)})
		bad.Severity, bad.Hint = Warning, fmt.Sprintf("its values are in lower case: write '%s'", strings.ToLower(c.text))
		out = append(out, bad)
	}
	return out
}
