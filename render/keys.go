package render

import (
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
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

// KeyRef is vars.a.b, vars['a'], macros['a'] or server.a in an expression, with the offset of each key.
type KeyRef struct {
	Root string // vars, macros or server
	Path []string
	At   []int
}

// noteKeys remembers the literal keys at a node of an expression.
func (r *references) noteKeys(node ast.Node) {
	switch n := node.(type) {
	case *ast.MemberNode:
		if ref, ok := literalKeys(n); ok {
			r.keys = append(r.keys, ref)
		}
	case *ast.CallNode:
		callee, ok := n.Callee.(*ast.IdentifierNode)
		if !ok || callee.Value != "macro" || len(n.Arguments) == 0 {
			return
		}
		if name, ok := n.Arguments[0].(*ast.StringNode); ok {
			r.keys = append(r.keys, KeyRef{"macros", []string{name.Value}, []int{name.Location().From}})
		}
	case *ast.BinaryNode:
		r.noteGuard(n)
		r.noteCapitals(n)
	}
}

// noteGuard remembers what an expression says may be missing: vars.a ?? 1, 'a' in vars.
func (r *references) noteGuard(n *ast.BinaryNode) {
	switch n.Operator {
	case "??":
		if ref, ok := literalKeys(n.Left); ok {
			r.guards = append(r.guards, ref)
		}
	case "in":
		key, ok := n.Left.(*ast.StringNode)
		if root, isRoot := n.Right.(*ast.IdentifierNode); ok && isRoot && rootKind(root.Value) != "" {
			r.guards = append(r.guards, KeyRef{Root: rootKind(root.Value), Path: []string{key.Value}})
		} else if ref, isRef := literalKeys(n.Right); ok && isRef {
			r.guards = append(r.guards, KeyRef{Root: ref.Root, Path: append(ref.Path, key.Value)})
		}
	}
}

func rootKind(name string) string {
	return map[string]string{
		"vars": "vars", "variables": "vars", "macros": "macros", "server": "server", "Server": "server",
	}[name]
}

// literalKeys are the keys of vars.a['b'], when all of them are literal and none is optional.
func literalKeys(node ast.Node) (KeyRef, bool) {
	var ref KeyRef
	for {
		switch n := node.(type) {
		case *ast.ChainNode:
			node = n.Node
		case *ast.MemberNode:
			name, ok := n.Property.(*ast.StringNode)
			if !ok || n.Optional {
				return ref, false
			}
			ref.Path, ref.At = append(ref.Path, name.Value), append(ref.At, name.Location().From)
			node = n.Node
		case *ast.IdentifierNode:
			slices.Reverse(ref.Path)
			slices.Reverse(ref.At)
			ref.Root = rootKind(n.Value)
			return ref, ref.Root != "" && len(ref.Path) > 0
		default:
			return ref, false
		}
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

// lowerFacts are the facts whose values never have capital letters.
var lowerFacts = []string{"os", "osFamily", "osLike", "osCodename", "arch"}

// Capitals is a text with capital letters that an expression compares with a fact that never has any, at an offset in
// the expression.
type Capitals struct {
	Fact, Text string
	At         int
}

// noteCapitals remembers server.os == 'Debian', server.os in ['Debian'] and 'Debian' in server.osLike.
func (r *references) noteCapitals(n *ast.BinaryNode) {
	if !slices.Contains([]string{"==", "!=", "in", "contains", "startsWith", "endsWith"}, n.Operator) {
		return
	}
	for _, sides := range [][2]ast.Node{{n.Left, n.Right}, {n.Right, n.Left}} {
		ref, ok := literalKeys(sides[0])
		if !ok || ref.Root != "server" || len(ref.Path) != 1 || !slices.Contains(lowerFacts, ref.Path[0]) {
			continue
		}
		texts := []ast.Node{sides[1]}
		if list, ok := sides[1].(*ast.ArrayNode); ok {
			texts = list.Nodes
		}
		for _, node := range texts {
			if text, ok := node.(*ast.StringNode); ok && strings.ToLower(text.Value) != text.Value {
				r.capitals = append(r.capitals, Capitals{ref.Path[0], text.Value, text.Location().From})
			}
		}
	}
}
