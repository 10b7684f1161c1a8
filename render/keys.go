package render

import (
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"

	"github.com/pullet/pullet/render/partial"
)

// Keys are the variables, macros and facts that the expression names literally and takes for granted.
func (e Expression) Keys() []KeyRef { return e.keys }

// Capitals are the facts that the expression compares with what they never are.
func (e Expression) Capitals() []Capitals { return e.capitals }

// ErrorHere is a mistake at the expression as a whole.
func (e Expression) ErrorHere(message string) *Error { return e.doc.errorAt(e.node, "%s", message) }

// ErrorAt is a mistake at an offset in the expression.
func (e Expression) ErrorAt(offset int, message string) *Error {
	return e.error(&file.Error{Location: file.Location{From: offset}, Message: message})
}

// KeyRef is a name in an expression: vars.a.b, macros['a'] or server.a.
type KeyRef = partial.KeyRef

// Capitals is a text that an expression compares with a fact which never has capital letters.
type Capitals = partial.Capitals

// noteKeys remembers the literal keys at a node of an expression.
func (r *references) noteKeys(node ast.Node) {
	switch n := node.(type) {
	case *ast.MemberNode:
		if ref, ok := partial.LiteralKeys(n); ok {
			r.keys = append(r.keys, ref)
		}
	case *ast.CallNode:
		if ref, ok := partial.MacroCalled(n); ok {
			r.keys = append(r.keys, ref)
		}
	case *ast.BinaryNode:
		r.noteGuard(n)
		r.capitals = append(r.capitals, partial.CapitalsIn(n)...)
	}
}

// noteGuard remembers what an expression says may be missing: vars.a ?? 1, 'a' in vars.
func (r *references) noteGuard(n *ast.BinaryNode) {
	switch n.Operator {
	case "??":
		if ref, ok := partial.LiteralKeys(n.Left); ok {
			r.guards = append(r.guards, ref)
		}
		if call, ok := n.Left.(*ast.CallNode); ok { // of a macro, which was visited before
			r.allowMissing(call)
		}
	case "in":
		key, ok := n.Left.(*ast.StringNode)
		if root, isRoot := n.Right.(*ast.IdentifierNode); ok && isRoot && partial.RootKind(root.Value) != "" {
			r.guards = append(r.guards, KeyRef{Root: partial.RootKind(root.Value), Path: []string{key.Value}})
		} else if ref, isRef := partial.LiteralKeys(n.Right); ok && isRef {
			r.guards = append(r.guards, KeyRef{Root: ref.Root, Path: append(ref.Path, key.Value)})
		}
	}
}

// allowMissing has the call of a macro give no value if the host lacks it.
func (r *references) allowMissing(call *ast.CallNode) {
	if ref, ok := partial.MacroCalled(call); ok {
		r.guards = append(r.guards, ref)
		call.Callee = &ast.IdentifierNode{Value: partial.PerhapsMacro}
	}
}

// certain are the keys that the expression takes for granted.
func (r *references) certain() []KeyRef {
	return slices.DeleteFunc(r.keys, func(ref KeyRef) bool {
		return slices.ContainsFunc(r.guards, func(g KeyRef) bool {
			n := min(len(g.Path), len(ref.Path))
			return g.Root == ref.Root && slices.Equal(g.Path[:n], ref.Path[:n])
		})
	})
}
