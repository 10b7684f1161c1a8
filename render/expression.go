package render

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
	"go.yaml.in/yaml/v4"
)

// Expression is a condition in the language of expr-lang/expr over the roots that templates have.
type Expression struct {
	Text     string
	doc      *document
	node     *yaml.Node
	code     *vm.Program
	steps    []stepRef  // the steps that it names literally
	keys     []KeyRef   // the variables and macros that it names literally
	capitals []Capitals // the facts that it compares with what they never are
	item     any        // of the forEach that made its step
	items    bool       // it asks for the item
	roots    []rootUse  // what it asks for, of that which not every expression may
	// the fields of the event that it names literally
	eventKeys []rootUse
}

// stepRef is a literal name in steps['name'], at an offset in the expression.
type stepRef struct {
	name    string
	at      int
	outcome bool // only Changed or Result is read
}

// readsItself is what to do about a value that a template puts into an expression.
const readsItself = "an expression reads such values itself: server.fqdn, services('db')"

func (e *Expression) decode(d *decoder, n *yaml.Node) {
	e.doc, e.node, e.Text = d.doc, n, n.Value
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		d.failf(n, "expected an expression, found %s", kindName(n))
		return
	}
	if len(n.Value) > maxExpression {
		d.failf(n, "the expression is longer than %d bytes", maxExpression)
		return
	}
	if !d.named(n, "an expression", readsItself) {
		return
	}
	made, err := d.doc.from.src.condition(e.Text)
	if err != nil {
		d.errs = append(d.errs, e.error(err))
		return
	}
	made.Text, made.doc, made.node = e.Text, e.doc, e.node
	*e = made
}

// condition compiles an expression that is true or false. In a repository that is done once for a text.
func (s *source) condition(text string) (Expression, error) {
	if s.conditions != nil {
		kept, _ := s.conditions.Load(text)
		if made, ok := kept.(Expression); ok {
			return made, nil
		}
	}
	refs := &references{}
	code, err := compileExpression(text, refs, expr.AsBool())
	made := Expression{
		code:     code,
		steps:    refs.steps,
		keys:     refs.certain(),
		capitals: refs.capitals,
		items:    refs.item,
		roots:    refs.roots, eventKeys: refs.eventKeys,
	}
	if err == nil && s.conditions != nil {
		s.conditions.Store(text, made)
	}
	return made, err
}

// withItem gives the expression the item that it asks for.
func (e *Expression) withItem(d *decoder, item any) {
	e.item = item
	if e.items && item == nil {
		d.failf(e.node, "item is known only in a step with forEach")
	}
}

// Pos is where the expression stands.
func (e Expression) Pos() Position { return e.doc.pos(e.node) }

// Steps are the steps that the expression names literally: it is evaluated after they ran.
func (e Expression) Steps() []string {
	var out []string
	for _, ref := range e.steps {
		out = append(out, ref.name)
	}
	return out
}

// Outputs are the steps that the expression names literally and of which it reads more than whether they changed
// something and succeeded.
func (e Expression) Outputs() []string {
	var out []string
	for _, ref := range e.steps {
		if !ref.outcome {
			out = append(out, ref.name)
		}
	}
	return out
}

// error gives an expression's error its position in the source.
func (e *Expression) error(err error) *Error {
	var at *file.Error
	if !errors.As(err, &at) {
		out := e.doc.errorAt(e.node, "expression %q: %v", e.Text, err)
		out.reads(readsServices(e.Text), readsServers(e.Text), err)
		return out
	}
	col := e.node.Column + at.From
	if e.node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		col++
	}
	out := e.doc.from.errorAt(e.node.Line, col, "expression: %s", at.Message)
	out.cause = err
	out.few = tooFew.MatchString(at.Message)
	out.reads(readsServices(e.Text), readsServers(e.Text), err)
	if e.node.Style == 0 && strings.Contains(at.Message, "EOF") &&
		strings.Contains(e.doc.from.line(e.node.Line), e.Text+" #") {
		out.Hint = "for YAML a comment begins at the #: write .name for #.name, or put the expression in quotes"
	}
	if m := noField.FindStringSubmatch(at.Message); m != nil {
		message, hint := noResultField(m[1])
		out.Message, out.Hint = "expression: "+message, hint
	}
	if said := expressionHint(at.Message, e.Text, e.doc.from.src.line(out.Pos.Line),
		slices.Collect(maps.Keys(environment(&scope{macros: &macroSet{}})))); said != "" {
		out.Hint = said
	}
	return out
}

// evalValue evaluates an expression while the catalog is compiled, and notes what it names.
func evalValue(doc *document, n *yaml.Node, s *scope, refs *references) (any, *Error) {
	e := Expression{Text: n.Value, doc: doc, node: n}
	if len(n.Value) > maxExpression {
		return nil, doc.errorAt(n, "the expression is longer than %d bytes", maxExpression)
	}
	code, err := compileExpression(
		e.Text,
		refs,
		expr.DisableBuiltin("now"),
	) // the same snapshot gives the same catalog at any time
	if err != nil {
		return nil, e.error(err)
	}
	s.chooses = true
	defer func() { s.chooses = false }()
	value, err := runExpression(code, s)
	if err != nil {
		return nil, e.error(err)
	}
	return value, nil
}

// environment is what an expression sees.
func environment(s *scope) map[string]any {
	macro := func(name string, args ...any) (any, error) {
		value, err := s.macros.call(s, name, args)
		return revealed(value), err
	}
	item := func() (any, error) {
		value, err := s.theItem()
		return computable(revealed(value)), err
	}
	event := func() (any, error) {
		event, err := s.in.event()
		return event, err
	}
	fleet := map[string]any{"version": s.in.Version, "release": s.in.Release, "agent": s.in.Agent, "servers": s.servers}
	hasLabel := func(target string) (bool, error) {
		t, err := ParseTarget(target)
		return err == nil && t.Matches(s.in.Node.Name, s.in.Node.Labels), err
	}
	services := func(name string) []map[string]any { return s.view().services(name) }
	step := func(name string) StepResult {
		if s.results == nil {
			return StepResult{}
		}
		r, _ := s.results(name)
		return r
	}
	return map[string]any{
		"server": s.server, "Server": s.server, "vars": s.expressionVars(), "variables": s.expressionVars(),
		"servervars": s.serverVars, "pullet": fleet, "eden": fleet,
		"macro": macro, "step": step, "steps": map[string]StepResult{},
		"event":  event,
		"macros": s.macros.known(),
		"item":   item, // the item of a step with forEach
		// in expressions, a map as a list with key and value: filter(entries(vars.users), .value.state != 'absent')
		"entries": entriesOf,
		// in expressions that are asked after an action: what it returned, as steps['name'] of a later step
		"result":   s.own,
		"services": services, // the instances of a service, sorted: len(services('db')) >= 2, all(services('db'), .ready)
		"shquote":  shquote,  // a text as one word of a shell
		"hasLabel": hasLabel, // in expressions, whether this host matches a target: hasLabel('role=web,env=prod')
	}
}

// Judged is what a condition is judged by, beside its catalog.
type Judged struct {
	Context context.Context              // ends the evaluation early, with its cause as the error; nil: never
	Own     StepResult                   // what the step's own action returned, if it ran
	Results Results                      // of the steps so far
	Run     func(*Macro) (string, error) // executes a macro's command; nil: nothing may be executed
	// reads the fleet anew, at most once and only when it is asked for; nil: the catalog's view stands
	Look func() (View, error)
}

// Eval evaluates a condition of a catalog. Macros are evaluated afresh.
func (c *Catalog) Eval(e Expression, by Judged) (bool, error) {
	for _, name := range e.Outputs() {
		if by.Results == nil {
			break
		}
		if r, _ := by.Results(name); r.Withheld {
			return false, e.error(r.withheld(name))
		}
	}
	s := c.scope.at(by.Results, by.Run)
	s.own, s.item, s.look, s.in.Context = by.Own, e.item, by.Look, by.Context
	release := c.repo.enter(s)
	defer release()
	out, err := runExpression(e.code, s)
	if s.unseen != nil {
		return false, s.unseen
	}
	if stop := over(by.Context); stop != nil {
		return false, stop
	}
	if err != nil {
		return false, e.error(err)
	}
	yes, ok := out.(bool)
	if !ok {
		return false, fmt.Errorf("expression %q: the value is %v, not true or false", e.Text, out)
	}
	return yes, nil
}

// steps reports literal step names that the catalog does not have.
func (r *crossReferences) steps(e Expression, job string) {
	for _, ref := range e.steps {
		if _, err := r.find(ref.name, job); err != "" {
			bad := e.error(&file.Error{Location: file.Location{From: ref.at}, Message: err})
			r.c.fail(bad)
		}
	}
}

// stepIndex are the steps of a catalog by their names: a search through all of them for each name would take longer
// than all else.
type stepIndex struct {
	byID   map[string]*Step
	byName map[string][]*Step
}

// index makes the index when all steps are there.
func (r *crossReferences) index() {
	r.known = stepIndex{map[string]*Step{}, map[string][]*Step{}}
	for _, j := range r.c.jobs.all {
		for _, s := range j.Steps {
			r.known.byID[s.ID()] = s
			r.known.byName[s.Name] = append(r.known.byName[s.Name], s)
		}
	}
}

// find is the step that a name means in a job: a step of the job, "job/step", or of the only other job that has one so
// named.
func (r *crossReferences) find(name, job string) (*Step, string) {
	if s := r.known.byID[job+"/"+name]; s != nil {
		return s, ""
	}
	if s := r.known.byID[name]; s != nil {
		return s, ""
	}
	switch found := r.known.byName[name]; len(found) {
	case 1:
		return found[0], ""
	case 0:
		if of := path.Dir(name); of != "." && r.c.repo.exists("jobs/"+of+".yaml") && !r.runs(of) {
			return nil, fmt.Sprintf(
				"there is no step %q on this node, which does not run the job %s: give it the job in base/jobs.yaml; "+
					"runOptions.target says which nodes take a step",
				name,
				of,
			)
		}
		return nil, strings.TrimSuffix(
			fmt.Sprintf("there is no step %q: %s", name, DidYouMean(name, r.known.names(job))),
			": ",
		)
	default:
		return nil, fmt.Sprintf("several jobs have a step %q: write %q", name, found[0].ID())
	}
}

// runs reports that a job is among those of the node.
func (r *crossReferences) runs(job string) bool {
	return slices.ContainsFunc(r.c.jobs.all, func(j *Job) bool { return j.Name == job })
}

// maxNear bounds the names that a misspelt one is held against.
const maxNear = 1000

// names are what a step may have been meant by: those of the job first, and no more than can be compared.
func (i stepIndex) names(job string) []string {
	all := slices.Sorted(maps.Keys(i.byName))
	own := func(name string) bool { return i.byID[job+"/"+name] != nil }
	slices.SortStableFunc(all, func(a, b string) int {
		switch {
		case own(a) == own(b):
			return 0
		case own(a):
			return -1
		}
		return 1
	})
	return all[:min(len(all), maxNear)]
}
