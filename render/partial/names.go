package partial

import (
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// PerhapsMacro is the function that calls a macro if the host has it, by a name that cannot be written.
const PerhapsMacro = "\x00macro"

// KeyRef is vars.a.b, vars['a'], macros['a'] or server.a in an expression, with the offset of each key.
type KeyRef struct {
	Root string // vars, macros or server
	Path []string
	At   []int
}

// OfMacro reports whether it names a macro.
func (r KeyRef) OfMacro() bool { return r.Root == "macros" }

// Equals reports the same name at the same place.
func (r KeyRef) Equals(o KeyRef) bool {
	return r.Root == o.Root && slices.Equal(r.Path, o.Path) && slices.Equal(r.At, o.At)
}

// RootKind is vars, macros or server for the names of these roots; "" for others.
func RootKind(name string) string {
	return map[string]string{
		"vars": "vars", "variables": "vars", "macros": "macros", "server": "server", "Server": "server",
	}[name]
}

// LiteralKeys are the keys of vars.a['b'], when all of them are literal and none is optional.
func LiteralKeys(node ast.Node) (KeyRef, bool) {
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
			ref.Root = RootKind(n.Value)
			return ref, ref.Root != "" && len(ref.Path) > 0
		default:
			return ref, false
		}
	}
}

// KeysOf returns the name that a part is: vars.a.b, macros['a'], macro('a').
func KeysOf(n ast.Node) (KeyRef, bool) {
	if call, ok := n.(*ast.CallNode); ok {
		return MacroCalled(call)
	}
	return LiteralKeys(n)
}

// MacroCalled returns the macro that a call names literally.
func MacroCalled(call *ast.CallNode) (KeyRef, bool) {
	callee, named := call.Callee.(*ast.IdentifierNode)
	if !named || callee.Value != "macro" && callee.Value != PerhapsMacro || len(call.Arguments) == 0 {
		return KeyRef{}, false
	}
	name, ok := call.Arguments[0].(*ast.StringNode)
	if !ok {
		return KeyRef{}, false
	}
	return KeyRef{"macros", []string{name.Value}, []int{name.Location().From}}, true
}

// IsName reports a variable, macro or fact, or the root of them.
func IsName(n ast.Node) bool {
	if root, ok := n.(*ast.IdentifierNode); ok {
		return RootKind(root.Value) != ""
	}
	_, is := KeysOf(n)
	return is
}

// AsksForFact reports an operation that asks whether the host has a fact: 'os' in server.
func AsksForFact(n *ast.BinaryNode) bool {
	_, literal := n.Left.(*ast.StringNode)
	root, isRoot := n.Right.(*ast.IdentifierNode)
	return n.Operator == "in" && literal && isRoot && RootKind(root.Value) == "server"
}

// lowerFacts are the facts whose values never have capital letters.
var lowerFacts = []string{"os", "osFamily", "osLike", "osCodename", "arch"}

// Capitals is a text with capital letters that an expression compares with a fact that never has any, at an offset in
// the expression.
type Capitals struct {
	Fact, Text string
	At         int
}

// CapitalsIn returns server.os == 'Debian', server.os in ['Debian'] and 'Debian' in server.osLike.
func CapitalsIn(n *ast.BinaryNode) []Capitals {
	var out []Capitals
	if !slices.Contains([]string{"==", "!=", "in", "contains", "startsWith", "endsWith"}, n.Operator) {
		return nil
	}
	for _, sides := range [][2]ast.Node{{n.Left, n.Right}, {n.Right, n.Left}} {
		ref, ok := LiteralKeys(sides[0])
		if !ok || ref.Root != "server" || len(ref.Path) != 1 || !slices.Contains(lowerFacts, ref.Path[0]) {
			continue
		}
		texts := []ast.Node{sides[1]}
		if list, ok := sides[1].(*ast.ArrayNode); ok {
			texts = list.Nodes
		}
		for _, node := range texts {
			if text, ok := node.(*ast.StringNode); ok && strings.ToLower(text.Value) != text.Value {
				out = append(out, Capitals{ref.Path[0], text.Value, text.Location().From})
			}
		}
	}
	return out
}
