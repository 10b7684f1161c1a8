package render

import (
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"
)

// references rewrites steps['name'] and macros['name'] into calls, so that both are evaluated only when they are
// reached, and remembers the steps, variables and macros that are named literally.
type references struct {
	foreign bool           // something is named that the repository does not hold
	vars    map[int]string // the variables that are named, by their place; "" is all of them
	steps   []stepRef
	keys    []KeyRef
	item    bool      // the item of a forEach is named
	roots   []rootUse // what not every expression may ask for
	// the fields of the event that are named
	eventKeys []rootUse
	guards    []KeyRef // keys that may be missing: 'x' in vars, vars.x ?? 0
	capitals  []Capitals
}

// Visit is called for every node of an expression's tree.
func (r *references) Visit(node *ast.Node) {
	r.noteKeys(*node)
	r.noteForeign(*node)
	r.noteRoot(*node)
	r.noteEvent(node)
	if name, ok := (*node).(*ast.IdentifierNode); ok &&
		slices.Contains([]string{"item", "event", "servervars"}, name.Value) {
		r.item = r.item || name.Value == "item"
		ast.Patch(
			node,
			&ast.CallNode{Callee: &ast.IdentifierNode{Value: name.Value}},
		) // an item can be of any type; the others are many
		return
	}
	member, ok := (*node).(*ast.MemberNode)
	if !ok {
		return
	}
	r.noteOutcome(member)
	root, ok := member.Node.(*ast.IdentifierNode)
	if !ok {
		return
	}
	callee := map[string]string{"steps": "step", "macros": "macro"}[root.Value]
	if callee == "" {
		return
	}
	if name, ok := member.Property.(*ast.StringNode); ok && root.Value == "steps" {
		r.steps = append(r.steps, stepRef{name: name.Value, at: name.Location().From})
	}
	call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: callee}, Arguments: []ast.Node{member.Property}}
	if member.Optional {
		r.allowMissing(call)
	}
	ast.Patch(node, call)
}

// ofHost are the roots that one host has, and not the fleet.
var ofHost = []string{
	"server", "Server", "vars", "variables", "macro", "macros", "step", "steps", "item", "result", "hasLabel",
}

// noteRoot remembers a root that not every expression may ask for.
func (r *references) noteRoot(node ast.Node) {
	if name, ok := node.(*ast.IdentifierNode); ok && (name.Value == "event" || slices.Contains(ofHost, name.Value)) {
		r.roots = append(r.roots, rootUse{name.Value, name.Location().From})
	}
}

// noteOutcome remembers that of a step, which was visited just before, only the outcome is read.
func (r *references) noteOutcome(n *ast.MemberNode) {
	field, ok := n.Property.(*ast.StringNode)
	call, isCall := n.Node.(*ast.CallNode)
	if !ok || !isCall || len(call.Arguments) != 1 || len(r.steps) == 0 ||
		field.Value != "Changed" && field.Value != "Result" {
		return
	}
	last := &r.steps[len(r.steps)-1]
	if name, ok := call.Arguments[0].(*ast.StringNode); ok && name.Value == last.name &&
		name.Location().From == last.at {
		last.outcome = true
	}
}

// callMacros rewrites macros['name'](args) into macro('name', args), which the language's grammar can parse. The text
// keeps its length, so that columns in messages stay right.
func callMacros(text string) string {
	tokens, err := lexer.Lex(file.NewSource(text))
	if err != nil {
		return text
	}
	runes := []rune(text)
	for i := 0; i+5 < len(tokens); i++ {
		t := tokens[i:]
		if !t[0].Is(lexer.Identifier, "macros") || !t[1].Is(lexer.Bracket, "[") || t[2].Kind != lexer.String ||
			!t[3].Is(lexer.Bracket, "]") || !t[4].Is(lexer.Bracket, "(") {
			continue
		}
		runes[t[0].From+5], runes[t[1].From], runes[t[3].From], runes[t[4].From] = ' ', '(', ' ', ','
		if t[5].Is(lexer.Bracket, ")") {
			runes[t[4].From] = ' '
		}
	}
	return string(runes)
}
