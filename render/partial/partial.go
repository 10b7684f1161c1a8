// Package partial evaluates the parts of an expression of which the values are known before the rest, as a compiler
// folds constants.
package partial

import (
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
)

// Evaluator evaluates parts of one expression. The zero value is not usable: every function has to be set.
type Evaluator struct {
	Known   func(ast.Node) bool          // reports whether the value of a part is known
	Run     func(ast.Node) (any, bool)   // returns the value of a known part; false: it failed
	Boolean func(any, ast.Node) bool     // reports whether a value is true or false, and notes one that is neither
	Place   func(ast.Node) file.Location // returns where a part begins
}

// Value evaluates a part of the expression. A part that is not known is searched for parts that are: their values take
// their place, so that the types around them can be checked.
func (e *Evaluator) Value(node *ast.Node) (value any, known bool) {
	if e.Known(*node) {
		value, known = e.Run(*node)
		if known {
			e.replace(node, value)
		}
		return value, known
	}
	switch n := (*node).(type) {
	case *ast.BinaryNode:
		return e.binary(n)
	case *ast.ConditionalNode:
		return e.conditional(n)
	case *ast.UnaryNode:
		e.Value(&n.Node)
	case *ast.CallNode:
		e.values(n.Arguments)
	case *ast.BuiltinNode:
		if !slices.ContainsFunc(n.Arguments, isPredicate) {
			e.values(n.Arguments)
		}
	case *ast.ArrayNode:
		e.values(n.Nodes)
	}
	return nil, false
}

func (e *Evaluator) values(nodes []ast.Node) {
	for i := range nodes {
		e.Value(&nodes[i])
	}
}

// binary evaluates what is known of two operands. It leaves out what a run never reaches.
func (e *Evaluator) binary(n *ast.BinaryNode) (any, bool) {
	ends, logical := map[string]bool{"and": false, "&&": false, "or": true, "||": true}[n.Operator]
	left, known := e.Value(&n.Left)
	if !logical {
		if n.Operator != "??" { // either side is there for the case that the other is missing
			e.Value(&n.Right)
		}
		return nil, false
	}
	if known && e.Boolean(left, n.Left) && left == ends {
		return ends, true
	}
	right, known := e.Value(&n.Right)
	if known && e.Boolean(right, n.Right) && right == ends {
		return ends, true
	}
	return nil, false
}

// conditional evaluates what is known of a choice.
func (e *Evaluator) conditional(n *ast.ConditionalNode) (any, bool) {
	cond, known := e.Value(&n.Cond)
	switch {
	case !known:
		e.Value(&n.Exp1)
		e.Value(&n.Exp2)
		return nil, false
	case !e.Boolean(cond, n.Cond):
		return nil, false
	case cond == true:
		return e.Value(&n.Exp1)
	}
	return e.Value(&n.Exp2)
}

// replace puts a number, a text, true or false in the place of the part that has this value. Missing values have no
// type, and those of lists and maps are not looked at.
func (e *Evaluator) replace(node *ast.Node, value any) {
	var out ast.Node
	switch v := value.(type) {
	case bool:
		out = &ast.BoolNode{Value: v}
	case string:
		out = &ast.StringNode{Value: v}
	case int:
		out = &ast.IntegerNode{Value: v}
	case float64:
		out = &ast.FloatNode{Value: 0.5} // its type is all that counts, and it cannot be written in every case
	default:
		return
	}
	out.SetLocation(e.Place(*node))
	*node = out
}

func isPredicate(n ast.Node) bool {
	_, is := n.(*ast.PredicateNode)
	return is
}
