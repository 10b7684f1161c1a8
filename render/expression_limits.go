package render

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/pullet/pullet/render/partial"
)

// What an expression costs is bounded like what a template costs, see limits.go. The language itself bounds only the
// lists that it makes: a loop over a variable, or a text that doubles, would go on.

const (
	maxExpression = 10_000  // bytes of an expression, which its parser has on its stack
	maxMade       = 500_000 // values in all lists and maps that one evaluation makes
	maxText       = 1 << 20 // bytes of a text that an expression makes
)

// compileExpression parses an expression. The refs note what it names.
func compileExpression(text string, refs *references, options ...expr.Option) (*vm.Program, error) {
	limits := &bounds{}
	options = append(
		options,
		expr.Env((&budget{}).limit(environment(&scope{macros: &macroSet{}}))),
		expr.Patch(refs),
		expr.Patch(limits),
		expr.DisableBuiltin("repeat"), // it makes the text before anybody can ask for its size
		inOrder("keys", func(e map[string]any) any { return e["key"] }),
		inOrder("values", func(e map[string]any) any { return e["value"] }),
		inOrder("toPairs", func(e map[string]any) any { return []any{e["key"], e["value"]} }),
	)
	code, err := expr.Compile(callMacros(text), options...)
	if err == nil && limits.bad != nil {
		return nil, limits.bad
	}
	return code, err
}

// runExpression evaluates an expression within its limits.
func runExpression(code *vm.Program, s *scope) (any, error) {
	ctx, watch, cancel := timed(s.in.Context, maxExpressionTime)
	defer cancel()
	s.watch = watch
	machine := vm.VM{MemoryBudget: maxMade}
	value, err := machine.Run(code, (&budget{maxWork, s.all, ctx}).limit(environment(s)))
	if stop := stopped(ctx); stop != nil {
		return nil, stop
	}
	var at *file.Error
	if errors.As(err, &at) && at.Message == "memory budget exceeded" {
		at.Message = fmt.Sprintf("the expression makes more than %d values", maxMade)
	}
	return value, err
}

// inOrder replaces a function of the language that takes a map apart in an order that is another one every time.
func inOrder(name string, part func(entry map[string]any) any) expr.Option {
	return expr.Function(name, func(args ...any) (any, error) {
		of := reflect.ValueOf(args[0])
		if of.Kind() != reflect.Map {
			return nil, fmt.Errorf("%s wants a map, found %T", name, args[0])
		}
		out := []any{}
		for _, e := range mapEntries(of) {
			if one, ok := e.(map[string]any); ok {
				out = append(out, part(one))
			}
		}
		return out, nil
	}, new(func(map[string]any) []any), new(func(any) []any))
}

// bounds rewrites an expression so that it spends its budget: at every turn of a loop, and for what could grow.
type bounds struct{ bad *file.Error }

// The functions of a budget, by names that nobody can write.
const (
	turnCall  = "\x00turn"
	sizedCall = "\x00sized"
	textCall  = "\x00text"
	joinCall  = "\x00join"
	swapCall  = "\x00replace"
	uniqCall  = "\x00uniq"
	seenCall  = "\x00seen"
	matchCall = "\x00match"
	thereCall = "\x00there"

	knownCall   = "\x00known"
	perhapsCall = "\x00perhaps"
)

// Visit is called for every node of an expression's tree, after those below it.
func (b *bounds) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value == "$env" && b.bad == nil { // with it come the functions of the budget
			b.bad = &file.Error{Location: n.Location(), Message: "there is no $env: name what is meant, such as vars or server"}
		}
	case *ast.PredicateNode:
		turn := callOf(n.Node.Location(), turnCall, &ast.IntegerNode{Value: size(n.Node)})
		body := &ast.SequenceNode{Nodes: []ast.Node{turn, n.Node}}
		body.SetLocation(n.Node.Location())
		n.Node = body
	case *ast.BinaryNode:
		switch n.Operator {
		case "+":
			measure(node)
		case "in":
			measure(&n.Right)
		case "matches":
			b.match(node, n)
		case "==", "!=", "<", "<=", ">", ">=", "contains", "startsWith", "endsWith":
			see(&n.Left)
		}
	case *ast.ArrayNode, *ast.MapNode:
		measure(node)
	case *ast.BuiltinNode:
		boundBuiltin(node, n)
	}
}

// boundBuiltin puts functions that ask before they make something in the place of those that do not.
func boundBuiltin(node *ast.Node, n *ast.BuiltinNode) {
	switch n.Name {
	case "join":
		*node = callOf(n.Location(), joinCall, n.Arguments...)
	case "replace":
		*node = callOf(n.Location(), swapCall, n.Arguments...)
	case "uniq":
		n.Arguments = []ast.Node{callOf(n.Location(), uniqCall, n.Arguments...)}
	case "get", "first", "last":
		measure(node)
	default:
		if len(n.Arguments) > 0 {
			see(&n.Arguments[0])
		}
		measure(node)
	}
}

// match bounds the work of a regular expression. One that stands in the expression is compiled once.
func (b *bounds) match(node *ast.Node, n *ast.BinaryNode) {
	pattern, ok := n.Right.(*ast.StringNode)
	if !ok {
		*node = callOf(n.Location(), matchCall, n.Left, n.Right)
		return
	}
	each, err := programSize(pattern.Value)
	if err != nil && b.bad == nil {
		b.bad = &file.Error{Location: pattern.Location(), Message: err.Error()}
	}
	n.Left = callOf(n.Left.Location(), thereCall, n.Left, &ast.IntegerNode{Value: each})
}

// see wraps a node whose value is looked through, and may be long.
func see(node *ast.Node) {
	switch (*node).(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NilNode, *ast.ArrayNode, *ast.MapNode,
		*ast.PredicateNode:
		return
	}
	t := (*node).Type()
	if t == nil || t.Kind() == reflect.Interface {
		*node = callOf((*node).Location(), seenCall, *node)
	}
}

// size is the number of nodes of a tree.
func size(n ast.Node) int {
	c := new(counter)
	ast.Walk(&n, c)
	return int(*c)
}

type counter int

// Visit is called for every node.
func (c *counter) Visit(*ast.Node) { *c++ }

// measure wraps a node whose value may be large. The type of a text stays known.
func measure(node *ast.Node) {
	if list, ok := (*node).(*ast.ArrayNode); ok && literal(list) {
		return
	}
	t := (*node).Type()
	if t == nil || t.Kind() == reflect.Interface || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		*node = callOf((*node).Location(), sizedCall, *node)
	} else if t.Kind() == reflect.String {
		*node = callOf((*node).Location(), textCall, *node)
	}
}

// literal is true of a list that stands in the expression as it is.
func literal(list *ast.ArrayNode) bool {
	return !slices.ContainsFunc(list.Nodes, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			return false
		}
		return true
	})
}

func callOf(at file.Location, name string, args ...ast.Node) ast.Node {
	out := &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: args}
	out.SetLocation(at)
	return out
}

// budget is the work that is left for one evaluation.
type budget struct {
	left int
	all  *pool
	ctx  context.Context
}

func (b *budget) spend(work int) error {
	if b.left -= max(work, 0); b.left < 0 {
		return fmt.Errorf("the expression takes too much work: more than %d steps", maxWork)
	}
	if err := over(b.ctx); err != nil {
		return err
	}
	return b.all.spend(work)
}

// limit adds the functions that bounds calls to what an expression sees.
func (b *budget) limit(env map[string]any) map[string]any {
	out := maps.Clone(env)
	out[turnCall] = func(nodes int) (bool, error) { return true, b.spend(nodes) }
	out[sizedCall] = func(v any) (any, error) { return v, b.sized(v) }
	out[textCall] = func(v string) (string, error) { return v, b.sized(v) }
	out[seenCall] = func(v any) (any, error) { return v, b.spend(shallowSize(v)) }
	out[thereCall] = func(v any, each int) (any, error) {
		text, _ := v.(string)
		return v, b.search(times(each, len(text)))
	}
	out[matchCall] = b.match
	out[knownCall], out[perhapsCall] = knownKey, perhapsKey
	out[partial.PerhapsMacro] = macroIfKnown(env)
	out[joinCall] = b.join
	out[swapCall] = b.replace
	out[uniqCall] = func(v any) (any, error) { return v, b.spend(times(items(v), items(v)) / 10) }
	return out
}

// macroIfKnown returns the function that calls a macro, and has no value for one that the host lacks.
func macroIfKnown(env map[string]any) func(name string, args ...any) (any, error) {
	known, _ := env["macros"].(map[string]any)
	call, _ := env["macro"].(func(string, ...any) (any, error))
	return func(name string, args ...any) (any, error) {
		if _, has := known[name]; !has {
			return nil, nil
		}
		return call(name, args...)
	}
}

// join is the language's, but that it asks for the size first.
func (b *budget) join(list any, with ...string) (string, error) {
	values, _ := asList(list)
	texts, glue, bytes := make([]string, len(values)), strings.Join(with, ""), 0
	for i, v := range values {
		text, ok := v.(string)
		if !ok {
			return "", fmt.Errorf("join wants texts, found %T", v)
		}
		texts[i] = text
		bytes += len(text) + len(glue)
	}
	if err := b.makes(bytes); err != nil {
		return "", err
	}
	return strings.Join(texts, glue), nil
}

// replace is the language's, but that it asks for the size first.
func (b *budget) replace(text, old, with string, counts ...int) (string, error) {
	count := -1
	if len(counts) > 0 {
		count = counts[0]
	}
	if err := b.makes(len(text) + times(strings.Count(text, old), len(with))); err != nil {
		return "", err
	}
	return strings.Replace(text, old, with, count), nil
}

// shallowSize is what it costs to look through a text or a list; what stands in the list is looked at no further.
func shallowSize(v any) int {
	if text, ok := v.(string); ok {
		return 1 + len(text)/100
	}
	return 1 + items(v)/10
}

// search spends what a regular expression looks through.
func (b *budget) search(steps int) error {
	if steps > maxGrowth {
		return fmt.Errorf("matches: this looks through more than %d MB", maxGrowth>>20)
	}
	return b.spend(1 + steps/100)
}

// match is the language's matches for a pattern that is not known before, but that it asks for the work first.
func (b *budget) match(text, pattern string) (bool, error) {
	steps, err := searched(pattern, text, 0)
	if err == nil {
		err = b.search(steps)
	}
	if err != nil {
		return false, err
	}
	return regexp.MatchString(pattern, text)
}

// sized refuses values that are too large.
func (b *budget) sized(v any) error {
	left := maxNodes
	bytes, err := weigh(reflect.ValueOf(v), 0, &left)
	if err == nil {
		err = b.makes(bytes)
	}
	if err == nil {
		err = b.spend((maxNodes - left) / 10)
	}
	return err
}

// makes refuses texts that are too long.
func (b *budget) makes(bytes int) error {
	if bytes > maxText {
		return fmt.Errorf("the expression makes a text of more than %d MiB", maxText>>20)
	}
	return b.spend(1 + bytes/100)
}
