package render

import (
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"go.yaml.in/yaml/v4"
)

// What a step returns is not known when a catalog is compiled. A template action that asks for it is replaced, in the
// parse tree, by a call of "deferred" with its number, dot, and the variables that it uses. When the file is rendered,
// that call leaves a placeholder in the output and remembers the values. When the step that has the placeholder in its
// parameters runs, the original action is executed with them, and what it writes takes the placeholder's place: in the
// decoded value, as text, so that nothing of it is read as YAML.
//
// An action that calls a macro is deferred too, and decides when it is rendered: a macro that runs a command has to
// wait, any other does not.

// deferrable is a template action that may have to wait.
type deferrable struct {
	src   *source
	tmpl  *template.Template // the action alone
	at    parse.Pos
	text  string   // as it is written; of a block, what it begins with
	block string   // the whole block; empty for an action
	vars  []string // the variables that it uses
	steps []string // the steps that it names
	waits bool     // it asks for a step's result; else it calls macros
	names []string // the macros that it names
	item  bool     // it reads the item of a forEach

	badField string // a field that no result has
	badAt    parse.Pos
}

// deferred is a deferrable with the values of its place.
type deferred struct {
	*deferrable
	dot   any
	vars  map[string]any
	value any // the item; nil until its forEach is expanded
}

// deferActions replaces the actions of a template tree that may have to wait. Where one cannot wait it is a mistake.
func (s *source) deferActions(t *template.Template, funcs template.FuncMap) *Error {
	var actions []*parse.ActionNode
	var bad *Error
	whole := s.itemBlocks(t.Root)
	walkNodes(t.Root, func(n parse.Node) {
		var pipe *parse.PipeNode
		switch n := n.(type) {
		case *parse.ActionNode:
			actions = append(actions, n)
		case *parse.IfNode:
			pipe = n.Pipe
		case *parse.RangeNode:
			pipe = n.Pipe
		case *parse.WithNode:
			pipe = n.Pipe
		case *parse.TemplateNode:
			pipe = n.Pipe
		}
		if bad == nil && pipe != nil && s.deferrable(pipe).waits {
			bad = s.cannotWait(pipe)
		}
	})
	for _, n := range actions {
		if bad == nil {
			bad = s.deferAction(n, whole[n], funcs)
		}
	}
	return bad
}

// deferAction replaces one action, or the block that it stands for.
func (s *source) deferAction(n *parse.ActionNode, block parse.Node, funcs template.FuncMap) *Error {
	d, used := s.deferrable(n.Pipe), usedBy(n, funcs)
	if block != nil {
		d, used = s.deferrableBlock(n.Pipe, block), funcs
	}
	if d.badField != "" {
		message, hint := noResultField(d.badField)
		e := s.errorAt(s.pos(int(d.badAt)), "%s", message)
		e.Hint = hint
		return e
	}
	switch {
	case block != nil: // what it sets is its own
	case d.waits && len(n.Pipe.Decl) > 0:
		return s.cannotWait(n.Pipe)
	case len(n.Pipe.Decl) > 0 || !d.waits && !d.item && len(d.names) == 0:
		return nil
	}
	call, err := d.compile(len(s.deferrables), used)
	if err != nil { // cannot happen: the text was parsed before
		return s.errorAt(s.pos(int(d.at)), "%s: %v", d.text, err)
	}
	s.deferrables = append(s.deferrables, d)
	n.Pipe = call
	return nil
}

// compile makes the action a template of its own, whose variables come from the function "local", and returns the call
// that takes its place. Both are parsed from text: nodes that were made by hand would lack their tree.
func (d *deferrable) compile(number int, funcs template.FuncMap) (call *parse.PipeNode, err error) {
	var declare strings.Builder
	for _, v := range d.vars {
		fmt.Fprintf(&declare, "{{ %s := local %q }}", v, v)
	}
	t := template.New(d.src.path).Funcs(funcs).Option("missingkey=error")
	code := "{{" + d.text + "}}"
	if d.block != "" {
		code = d.block
	}
	d.tmpl, err = t.Parse(declare.String() + code)
	if err == nil && d.block != "" {
		err = meterTree(d.tmpl, funcs)
	}
	if err != nil {
		return nil, err
	}
	guardTree(d.tmpl)
	walkNodes(d.tmpl.Root, func(n parse.Node) {
		if chain, ok := n.(*parse.ChainNode); ok {
			exportMethods(chain)
		}
	})
	text := fmt.Sprintf("%s{{ deferred %d . %s }}", declare.String(), number, strings.Join(d.vars, " "))
	t, err = template.New(d.src.path).Funcs(funcs).Parse(text)
	if err != nil {
		return nil, err
	}
	last, _ := t.Root.Nodes[len(t.Root.Nodes)-1].(*parse.ActionNode)
	return last.Pipe, nil
}

// deferrable looks at what a pipeline asks for.
func (s *source) deferrable(pipe *parse.PipeNode) *deferrable {
	d := &deferrable{src: s, at: pipe.Pos, text: pipe.String()}
	d.inspect(pipe)
	return d
}

// inspect notes what a node and those below it ask for.
func (d *deferrable) inspect(n parse.Node) {
	walkNodes(n, func(n parse.Node) {
		switch n := n.(type) {
		case *parse.IdentifierNode:
			d.waits = d.waits || n.Ident == "step" || n.Ident == "steps"
			d.item = d.item || n.Ident == "item"
		case *parse.CommandNode:
			d.call(n)
		case *parse.ChainNode:
			d.fields(n)
		case *parse.VariableNode:
			if !slices.Contains(d.vars, n.Ident[0]) && n.Ident[0] != "$" {
				d.vars = append(d.vars, n.Ident[0])
			}
		}
	})
}

// fields notes a field that no result has: (step "x").Stdout would fail only when its step runs.
func (d *deferrable) fields(n *parse.ChainNode) {
	pipe, ok := n.Node.(*parse.PipeNode)
	if !ok || len(pipe.Cmds) != 1 || len(n.Field) == 0 || slices.Contains(resultFields(), n.Field[0]) {
		return
	}
	of := &deferrable{}
	of.call(pipe.Cmds[0])
	if len(of.steps) > 0 && d.badField == "" {
		d.badField, d.badAt = n.Field[0], n.Pos
	}
}

// call notes the literal names of steps and macros: step "x", index steps "x", macro "x", index macros "x".
func (d *deferrable) call(n *parse.CommandNode) {
	callee, ok := n.Args[0].(*parse.IdentifierNode)
	if !ok || len(n.Args) < 2 {
		return
	}
	at := 1
	called := callee.Ident
	if called == "index" && len(n.Args) > 2 {
		called, at = strings.TrimSuffix(strings.Trim(n.Args[1].String(), "()"), "s"), 2
	}
	name, literal := n.Args[at].(*parse.StringNode)
	switch {
	case called == "step" && literal:
		d.steps = append(d.steps, name.Text)
	case called == "macro" && literal:
		d.names = append(d.names, name.Text)
	}
}

func (s *source) cannotWait(pipe *parse.PipeNode) *Error {
	e := s.errorAt(
		s.pos(int(pipe.Pos)),
		"%s: what a step returns is not known when the catalog is compiled, so nothing can depend on it here",
		pipe,
	)
	e.Hint = "use conditions.when on the step, or the value alone in a parameter"
	return e
}

// deferred is the template function of the same name: it stands for an action of the file that is executed.
func (x *execution) deferred(number int, dot any, vars ...any) (any, error) {
	s := x.scope
	d := &deferred{deferrable: s.src.deferrables[number], dot: dot, vars: map[string]any{}}
	for i, v := range vars {
		d.vars[d.deferrable.vars[i]] = v
	}
	if !d.waits && !d.item && !s.macros.runsCommand(d.names) {
		return d.execute(s)
	}
	s.waiting = append(s.waiting, d)
	return fmt.Sprintf("%s%d%s", markOpen, len(s.waiting)-1, markClose), nil
}

// execute runs the original action with the values of its place.
func (d *deferred) execute(in *scope) (string, error) {
	outer := in.item
	in.item = d.value
	defer func() { in.item = outer }()
	defer in.begin(d.src)()
	dot, vars := d.dot, d.vars
	if d.src.changes {
		dot, vars = ownCopy(dot), map[string]any{}
		for name, value := range d.vars {
			vars[name] = ownCopy(value)
		}
	}
	in.local = append(in.local, vars)
	defer func() { in.local = in.local[:len(in.local)-1] }()
	var out strings.Builder
	t, err := d.src.bind(d.tmpl, in.x)
	if err == nil {
		err = t.Execute(&out, dot)
	}
	if err != nil {
		return "", d.failed(err)
	}
	return out.String(), nil
}

// local is the template function of the same name: a variable of the place that a deferred action was taken from.
func (x *execution) local(name string) any { return x.scope.local[len(x.scope.local)-1][name] }

// failed gives an error of the action its place: the tree that was executed has no text to tell it from.
func (d *deferred) failed(err error) *Error {
	message := err.Error()
	if i := strings.LastIndex(message, ">: "); i >= 0 {
		message = errorCalling.ReplaceAllString(message[i+3:], "")
	}
	if !strings.HasPrefix(message, "macro ") && !strings.Contains(message, d.text) {
		message = d.text + ": " + message
	}
	out := d.src.errorAt(d.src.pos(int(d.at)), "%s", message)
	out.cause = err
	out.reads(readsServices(d.text), readsServers(d.text), err)
	return out
}

// checkPlaces reports placeholders that stand where a value must be known when the catalog is compiled: everywhere but
// in the values of a step's parameters.
func (f *documents) checkPlaces(doc *document, n *yaml.Node, allowed bool) {
	if !allowed && n.Kind == yaml.ScalarNode {
		for _, number := range placeholders(n) {
			f.c.fail(f.misplaced(number))
		}
	}
	for i, child := range n.Content {
		inner := allowed
		if n.Kind == yaml.MappingNode {
			key := n.Content[i-i%2].Value
			inner = i%2 == 1 && (allowed || doc.waits && key == "parameters") && !isRequisite(key)
		}
		f.checkPlaces(doc, child, inner)
	}
}

func (f *documents) misplaced(number int) *Error {
	d := f.c.scope.waiting[number]
	e := d.src.errorAt(
		d.src.pos(int(d.at)),
		"%s: this is not known before its step has run, and stands where it must be known",
		d.text,
	)
	e.Hint = "it can stand in the values of a step's parameters; for a decision use conditions.when"
	return e
}

// Waits reports that parameters of the step hold what other steps return: they are known only when it runs.
func (s *Step) Waits() bool { return s.Params.Waits() }

// After are the steps whose results the step's parameters and conditions name literally, as its job names them.
func (s *Step) After() []string { return s.after }

// waitsFor notes the deferred actions of a step's parameters, and the steps that they and the conditions name.
func (r *crossReferences) waitsFor(s *Step) {
	for _, e := range s.Params.pairs {
		s.waits = append(s.waits, placeholders(e.value)...)
	}
	for _, number := range s.waits {
		d := r.c.scope.waiting[number]
		if d.item && d.value == nil {
			r.c.fail(d.src.errorAt(d.src.pos(int(d.at)), "%s: item is known only in a step with forEach", d.text))
		}
		s.after = append(s.after, d.steps...)
	}
	for _, one := range s.Conditions.All() {
		for _, ref := range one.Expression.steps {
			if ref.name != s.Name && ref.name != s.ID() { // its own result, in success and continue
				s.after = append(s.after, ref.name)
			}
		}
	}
}

// waits finds names of steps that nothing has in the deferred actions of a step.
func (r *crossReferences) waits(s *Step) {
	for _, number := range s.waits {
		d := r.c.scope.waiting[number]
		for _, name := range d.steps {
			if _, missing := r.find(name, s.Job); missing != "" {
				r.c.fail(d.src.errorAt(d.src.pos(int(d.at)), "%s", missing))
			}
		}
	}
}

// at is a copy of the scope at a moment of a run: macros are evaluated afresh.
func (s *scope) at(results Results, run func(*Macro) (string, error)) *scope {
	out := *s
	out.results, out.watch = results, nil
	if results != nil {
		out.all = nil
	}
	out.macros = &macroSet{all: s.macros.all, values: map[string]any{}, run: run}
	return &out
}
