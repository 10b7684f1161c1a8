package partial

import (
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// maxDecided bounds the parts of one expression that are evaluated to decide which others are reached.
const maxDecided = 200

// Reader walks the parts of one expression that its evaluation reaches, as far as known parts decide that. The zero
// value is not usable: every function has to be set.
type Reader struct {
	Known func(ast.Node) bool        // reports whether the value of a part is known
	Run   func(ast.Node) (any, bool) // returns the value of a known part; false: it failed
	Read  func(ast.Node) bool        // gets each part that is reached, and reports whether the parts below it are read
	// Optional reports whether a part is a name that may be missing where it stands left of ?? or right of in
	Optional func(ast.Node) bool

	decided int      // parts that were evaluated
	bound   []string // names that let gives to values
}

// Reads calls Read for each part that an evaluation reaches. It returns the truth of the expression, if it is known.
func (r *Reader) Reads(node ast.Node) (yes, known bool) { return r.walk(node, true) }

// walk reads a part. Its truth is found only if something is decided by it.
func (r *Reader) walk(node ast.Node, decides bool) (yes, known bool) {
	switch n := node.(type) {
	case *ast.BinaryNode:
		if ends, logical := logicalEnd(n); logical {
			return r.logical(n, ends, decides)
		}
		r.operands(n)
	case *ast.ConditionalNode:
		return r.conditional(n, decides)
	case *ast.UnaryNode:
		yes, known := r.walk(n.Node, decides)
		if n.Operator == "not" || n.Operator == "!" {
			return !yes, known
		}
	case *ast.BuiltinNode:
		r.builtin(n)
	default:
		if !r.Read(node) {
			r.parts(node)
		}
	}
	if !decides {
		return false, false
	}
	value, known := r.value(node)
	yes, isBool := value.(bool)
	return yes, known && isBool
}

// logicalEnd returns the value of the left side that ends a logical operation.
func logicalEnd(n *ast.BinaryNode) (ends, logical bool) {
	switch n.Operator {
	case "and", "&&":
		return false, true
	case "or", "||":
		return true, true
	}
	return false, false
}

func (r *Reader) logical(n *ast.BinaryNode, ends, decides bool) (yes, known bool) {
	left, leftKnown := r.walk(n.Left, true)
	if leftKnown && left == ends {
		return ends, true
	}
	right, rightKnown := r.walk(n.Right, decides)
	return right, rightKnown && (leftKnown || right == ends)
}

func (r *Reader) conditional(n *ast.ConditionalNode, decides bool) (yes, known bool) {
	cond, known := r.walk(n.Cond, true)
	switch {
	case !known:
		r.walk(n.Exp1, false)
		r.walk(n.Exp2, false)
		return false, false
	case cond:
		return r.walk(n.Exp1, decides)
	}
	return r.walk(n.Exp2, decides)
}

// operands reads the sides of an operation that is not logical.
func (r *Reader) operands(n *ast.BinaryNode) {
	_, literal := n.Left.(*ast.StringNode)
	switch {
	case n.Operator == "??":
		if !r.Optional(n.Left) {
			r.walk(n.Left, false)
		}
		if value, known := r.value(n.Left); known && value != nil {
			return
		}
	case n.Operator == "in" && literal && r.Optional(n.Right):
		return
	default:
		r.walk(n.Left, false)
	}
	r.walk(n.Right, false)
}

// builtin reads the arguments of a function. A predicate is never asked of an empty list.
func (r *Reader) builtin(n *ast.BuiltinNode) {
	for i, argument := range n.Arguments {
		if i > 0 && isPredicate(argument) {
			if list, known := r.value(n.Arguments[0]); known && isEmpty(list) {
				return
			}
		}
		r.walk(argument, false)
	}
}

func isEmpty(list any) bool {
	v := reflect.ValueOf(list)
	switch v.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		return v.Len() == 0
	}
	return false
}

// parts reads everything below a part.
func (r *Reader) parts(node ast.Node) {
	if let, ok := node.(*ast.VariableDeclaratorNode); ok {
		r.bound = append(r.bound, let.Name)
	}
	for _, part := range below(node) {
		r.walk(part, false)
	}
}

// below returns the parts of a part.
func below(node ast.Node) []ast.Node {
	var out []ast.Node
	switch n := node.(type) {
	case *ast.ChainNode:
		out = []ast.Node{n.Node}
	case *ast.MemberNode:
		out = []ast.Node{n.Node, n.Property}
	case *ast.SliceNode:
		out = []ast.Node{n.Node, n.From, n.To}
	case *ast.CallNode:
		out = append([]ast.Node{n.Callee}, n.Arguments...)
	case *ast.BuiltinNode:
		out = n.Arguments
	case *ast.PredicateNode:
		out = []ast.Node{n.Node}
	case *ast.VariableDeclaratorNode:
		out = []ast.Node{n.Value, n.Expr}
	case *ast.SequenceNode:
		out = n.Nodes
	case *ast.ArrayNode:
		out = n.Nodes
	case *ast.MapNode:
		out = n.Pairs
	case *ast.PairNode:
		out = []ast.Node{n.Key, n.Value}
	case *ast.UnaryNode:
		out = []ast.Node{n.Node}
	case *ast.BinaryNode:
		out = []ast.Node{n.Left, n.Right}
	case *ast.ConditionalNode:
		out = []ast.Node{n.Cond, n.Exp1, n.Exp2}
	}
	return slices.DeleteFunc(slices.Clone(out), func(part ast.Node) bool { return part == nil })
}

// value evaluates a part, unless it depends on what stands around it: the item of a predicate, a name of let.
func (r *Reader) value(node ast.Node) (any, bool) {
	if r.decided == maxDecided || !r.Known(node) || r.depends(node) {
		return nil, false
	}
	r.decided++
	return r.Run(node)
}

func (r *Reader) depends(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.PointerNode:
		return true
	case *ast.IdentifierNode:
		return slices.Contains(r.bound, n.Value)
	case *ast.PredicateNode: // its item is its own
		return len(r.bound) > 0
	}
	return slices.ContainsFunc(below(node), r.depends)
}
