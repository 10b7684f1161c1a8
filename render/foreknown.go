package render

import (
	"errors"
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

// condition reports a condition that cannot be evaluated with what is known before the run, and the names in it that
// the host lacks. It returns false if the condition is known not to hold.
func (r *crossReferences) condition(e Expression) (mayHold bool) {
	if e.code == nil {
		return true
	}
	tree, err := parser.Parse(callMacros(e.Text))
	if err != nil {
		return true // the compiled program stands for another reading of the text, which was accepted
	}
	k := &foreknown{c: r.c, e: e}
	names := &namesRead{k: k}
	reader := partial.Reader{Known: k.knows, Run: k.try, Read: names.read, Optional: partial.IsName}
	yes, known := reader.Reads(tree.Node)
	r.c.errs = append(r.c.errs, names.missing...)
	if names.missing != nil || names.unknown {
		return true
	}
	if len(e.keys)+len(e.roots) > 0 {
		k.evaluate(&tree.Node)
	}
	if k.bad != nil {
		r.c.fail(k.bad)
	}
	return !known || yes || k.bad != nil
}

// Judgement returns the mistakes of an expression by which a step is judged when its action ran, as those of its
// conditions. A nil one has none.
func (c *Catalog) Judgement(step string, e *Expression) ErrorList {
	if e == nil || c.Idle(step) {
		return nil
	}
	judge := newCompiler(c.repo, c.scope.at(nil, nil))
	judge.inventory, judge.files.heard, judge.broken, judge.failed = c.Inventory, c.heard, c.broken, c.failed
	release := c.repo.enter(judge.scope)
	defer release()
	judge.refs.condition(*e)
	mistakes, _ := judge.scope.withoutUnopened(judge.errs)
	return mistakes
}

// evaluate looks for a part that cannot be evaluated.
func (k *foreknown) evaluate(tree *ast.Node) {
	parts := partial.Evaluator{
		Known: k.knows, Run: k.run, Boolean: k.boolean,
		Place: func(n ast.Node) file.Location { return file.Location{From: k.part(n).from} },
	}
	value, known := parts.Value(tree)
	if known {
		k.boolean(value, *tree)
	} else if _, err := compileExpression((*tree).String(), &references{}, expr.AsBool()); err != nil {
		k.fail(err, *tree)
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

// run evaluates a known part, and keeps the reason if that cannot be done.
func (k *foreknown) run(n ast.Node) (any, bool) {
	value, err := k.value(n)
	var macro *macroError
	if err != nil && !errors.As(err, &macro) { // macroCalls reports those
		k.fail(err, n)
	}
	return value, err == nil
}

// try evaluates a known part.
func (k *foreknown) try(n ast.Node) (any, bool) {
	value, err := k.value(n)
	return value, err == nil
}

func (k *foreknown) value(n ast.Node) (any, error) {
	code, err := compileExpression(n.String(), &references{})
	if err != nil {
		return nil, err
	}
	k.c.scope.item = k.e.item
	defer func() { k.c.scope.item = nil }()
	return runExpression(code, k.c.scope)
}

// fail keeps the first mistake, at the beginning of the part that has it.
func (k *foreknown) fail(err error, n ast.Node) {
	if k.bad != nil {
		return
	}
	part := k.part(n)
	if part.lacks != nil {
		k.bad = k.lacks(*part.lacks, 0, slices.Collect(maps.Keys(k.c.scope.vars)))
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
	ref, ok := partial.LiteralKeys(*node)
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
	case *ast.BinaryNode:
		if partial.AsksForFact(n) {
			r.others--
		}
	case *ast.MemberNode:
		ref, ok := partial.LiteralKeys(n)
		if !ok || len(ref.Path) != 1 {
			return
		}
		if r.k.constant(ref) {
			r.others--
		} else if ref.Root == "vars" && r.k.unopened(ref.Path[0]) {
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

// unopened reports a variable that may stand in an encrypted file, which was not opened.
func (k *foreknown) unopened(name string) bool {
	_, has := k.c.scope.vars[name]
	return !has && len(k.c.scope.closed.unknown) > 0
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
