package render

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/render/partial"
)

// A condition is evaluated when its step is due, after other steps changed the host. What it reads of the repository is
// known before. Compile evaluates those parts, so that a condition that cannot be evaluated is a mistake of the commit.

// foreknown evaluates the parts of one condition that read nothing but the repository.
type foreknown struct {
	c   *compiler
	e   Expression
	bad *Error // the first part that cannot be evaluated
}

// condition reports a condition that cannot be evaluated with what is known before the run.
func (r *crossReferences) condition(e Expression) {
	if e.code == nil || len(e.keys)+len(e.roots) == 0 {
		return
	}
	tree, err := parser.Parse(callMacros(e.Text))
	if err != nil {
		return // the compiled program stands for another reading of the text, which was accepted
	}
	k := &foreknown{c: r.c, e: e}
	parts := partial.Evaluator{
		Known: k.knows, Run: k.run, Boolean: k.boolean,
		Place: func(n ast.Node) file.Location { return file.Location{From: k.part(n).from} },
	}
	value, known := parts.Value(&tree.Node)
	if known {
		k.boolean(value, tree.Node)
	} else if _, err := compileExpression(tree.Node.String(), &references{}, expr.AsBool()); err != nil {
		k.fail(err, tree.Node)
	}
	if k.bad != nil {
		r.c.fail(k.bad)
	}
}

// boolean reports whether a known value is true or false. Another one is a mistake.
func (k *foreknown) boolean(value any, at ast.Node) bool {
	if _, ok := value.(bool); ok {
		return true
	}
	k.fail(errors.New("expected true or false, found "+kindOf(value)), at)
	return false
}

// run evaluates a known part.
func (k *foreknown) run(n ast.Node) (any, bool) {
	code, err := compileExpression(n.String(), &references{})
	if err == nil {
		k.c.scope.item = k.e.item
		var value any
		value, err = runExpression(code, k.c.scope)
		k.c.scope.item = nil
		if err == nil {
			return value, true
		}
	}
	var macro *macroError
	if !errors.As(err, &macro) { // macroCalls reports those
		k.fail(err, n)
	}
	return nil, false
}

// fail keeps the first mistake, at the beginning of the part that has it.
func (k *foreknown) fail(err error, n ast.Node) {
	if k.bad != nil {
		return
	}
	part := k.part(n)
	if part.lacks != nil {
		name := part.lacks.Path[0]
		k.bad = k.e.ErrorAt(part.lacks.At[0], fmt.Sprintf("this node has no variable %q", name))
		k.bad.Hint = cmp.Or(DidYouMean(name, slices.Collect(maps.Keys(k.c.scope.vars))),
			"where it may be missing, write vars."+name+" ?? DEFAULT")
		return
	}
	message := err.Error()
	if at, ok := errors.AsType[*file.Error](err); ok {
		message = at.Message
	}
	k.bad = k.e.ErrorAt(part.from, message)
}

// part looks through a part of the condition.
func (k *foreknown) part(n ast.Node) *conditionPart {
	part := &conditionPart{k: k, from: len(k.e.Text)}
	ast.Walk(&n, part)
	return part
}

// conditionPart finds where a part of a condition begins, and the first variable in it that the node lacks.
type conditionPart struct {
	k     *foreknown
	from  int
	lacks *KeyRef
}

// Visit is called for every node of the part.
func (f *conditionPart) Visit(node *ast.Node) {
	f.from = min(f.from, (*node).Location().From)
	ref, ok := literalKeys(*node)
	if !ok || ref.Root != "vars" || f.lacks != nil {
		return
	}
	if _, has := f.k.c.scope.vars[ref.Path[0]]; !has {
		f.lacks = &ref
	}
}

// knows reports whether a part of a condition has the same value before the run and at any time in it.
func (k *foreknown) knows(n ast.Node) bool {
	r := &readsOther{k: k}
	ast.Walk(&n, r)
	return r.others == 0
}

// readsOther counts what a part of a condition reads of other sources than the repository.
type readsOther struct {
	k      *foreknown
	others int
}

// ofRun are the names of what a run, the fleet, an event or the host's system says.
var ofRun = []string{
	"server", "Server", "servervars", "pullet", "eden", "macro", "macros", "step", "steps", "event", "result", "services",
	"item",
}

// Visit is called for every node of a part, after those below it.
func (r *readsOther) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if slices.Contains(ofRun, n.Value) && (n.Value != "item" || r.k.c.files.heard[r.k.e.doc.from.src.path]) {
			r.others++
		}
	case *ast.BuiltinNode:
		if n.Name == "now" {
			r.others++
		}
	case *ast.MemberNode:
		ref, ok := literalKeys(n)
		if !ok || len(ref.Path) != 1 {
			return
		}
		if r.k.constant(ref) {
			r.others--
		} else if ref.Root == "vars" && r.k.undefined(ref.Path[0]) {
			r.others++
		}
	case *ast.CallNode:
		callee, ok := n.Callee.(*ast.IdentifierNode)
		if !ok || callee.Value != "macro" || len(n.Arguments) == 0 {
			return
		}
		if name, ok := n.Arguments[0].(*ast.StringNode); ok &&
			r.k.constant(KeyRef{Root: "macros", Path: []string{name.Value}}) {
			r.others--
		}
	}
}

// constant reports a label of a listed node, or a macro that reads nothing but the repository.
func (k *foreknown) constant(ref KeyRef) bool {
	switch ref.Root {
	case "server":
		_, listed := k.c.inventory[k.c.scope.in.Node.Name]
		return listed && ref.Path[0] == "labels"
	case "macros":
		return k.c.scope.macros.all[ref.Path[0]].constant(k.c.scope.macros.all, map[string]bool{})
	}
	return false
}

// undefined reports a variable that a node which nobody listed does not have: the real one may.
func (k *foreknown) undefined(name string) bool {
	_, listed := k.c.inventory[k.c.scope.in.Node.Name]
	_, has := k.c.scope.vars[name]
	return !listed && !has
}

// readsRun finds in a macro's text what a run, the fleet, an event or the host's system says.
var readsRun = lazyregexp.New(`(?i)\b(server|servervars|servers|services|pullet|eden|steps?|event|result|now)\b`)

// constant reports a macro that reads nothing but the repository, itself or through another macro.
func (m *Macro) constant(all map[string]*Macro, seen map[string]bool) bool {
	if m == nil || m.Action != templateExpression || readsRun.MatchString(m.Params.Text("content")) {
		return false
	}
	if seen[m.Name] {
		return true
	}
	seen[m.Name] = true
	return !slices.ContainsFunc(m.calls(), func(name string) bool { return !all[name].constant(all, seen) })
}
