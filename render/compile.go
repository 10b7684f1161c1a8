package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/pullet/pullet/render/newcomer"
)

// Catalog is what a snapshot says for one node. It is immutable.
type Catalog struct {
	Node      Node
	Version   string
	Release   string
	Vars      map[string]any
	Jobs      []*Job     // in order; validations last
	Triggers  []*Trigger // sorted by name; none in a run of a reaction
	Fleet     Fleet
	Inventory Inventory
	Digest    string // of all that a run depends on: equal digests, equal runs

	offers   []Offer
	offering offering

	repo       *Repository
	scope      *scope
	targets    []TargetUse     // for Lint
	heard      map[string]bool // files that rest on what other hosts say
	warned     ErrorList       // for Lint
	failed     map[string]bool // macros that conditions call and that were reported
	broken     map[string]bool // roots whose files have mistakes: vars, macros
	idle       map[string]bool // steps that are known not to run, by ID
	incomplete bool
	untargeted bool // base/jobs.yaml and base/services.yaml have targets, and none matches the node
}

// compiler collects a catalog and every mistake on the way.
type compiler struct {
	repo      *Repository
	scope     *scope
	fleet     Fleet
	inventory Inventory
	offers    []Offer
	offering  offering
	targets   []TargetUse
	tracing   bool           // keep the places of variables
	places    map[string]any // the variables, each with its place instead of its value
	errs      ErrorList
	warned    ErrorList
	failed    map[string]bool // macros that conditions call and that were reported
	broken    map[string]bool // roots whose files have mistakes: vars, macros
	idle      map[string]bool // steps that are known not to run, by ID

	asked, matched bool // a target of what hosts do; one that matches

	files    documents
	jobs     jobsCompiler
	triggers triggersCompiler
	refs     crossReferences
}

func newCompiler(r *Repository, s *scope) *compiler {
	c := &compiler{repo: r, scope: s, failed: map[string]bool{}, broken: map[string]bool{}, idle: map[string]bool{}}
	c.files.c, c.jobs.c, c.triggers.c, c.refs.c = c, c, c, c
	return c
}

// documents reads the files of a catalog.
type documents struct {
	c      *compiler
	heard  map[string]bool // files that rest on what other hosts say
	failed []*Error        // failures of templates of which the rest was looked at
}

// Compile says what the repository means for one node. The error is an ErrorList with every mistake that this node can
// meet; the catalog is Incomplete then. Nodes of the inventory have the labels that it gives them, whatever they claim
// themselves.
func (r *Repository) Compile(in Input) (*Catalog, error) {
	ctx, cancel := within(in.Context, maxCompileTime, errCompileTime)
	defer cancel()
	in.Context = ctx
	c := r.compiler(in)
	release := r.enter(c.scope)
	defer release()

	c.identify()
	c.compileServices()
	c.noting("vars", c.compileVars)
	c.noting("macros", c.compileMacros)
	c.compileReactions()
	if run := in.Reaction; run != nil {
		c.jobs.react(run)
		c.offers, c.asked = nil, false
	} else {
		c.jobs.compile()
		c.triggers.compile()
	}
	slices.SortStableFunc(c.jobs.all, validationsLast)
	c.refs.check()
	c.refs.evaluated()
	c.checkOwners()
	if err := stopped(ctx); err != nil {
		return nil, err
	}
	c.scope.in.Context = nil // what a run evaluates has a time of its own
	cat := &Catalog{
		Node: c.scope.in.Node, Version: in.Version, Release: in.Release, Vars: c.scope.plainVars(), Jobs: c.jobs.all,
		Triggers: c.triggers.mine, Fleet: c.fleet, Inventory: c.inventory, repo: r, scope: c.scope,
		targets: c.targets, warned: c.warned, failed: c.failed, broken: c.broken, idle: c.idle,
		offers: c.offers, offering: c.offering, heard: c.files.heard,
		untargeted: c.asked && !c.matched,
	}
	mistakes, notes := c.scope.withoutUnopened(c.files.ownMistakes())
	c.scope.secrets.redactMistakes(mistakes)
	cat.warned = append(cat.warned, notes...)
	if err := c.unlisted(mistakes).Err(); err != nil {
		cat.incomplete = true
		return cat, err
	}
	cat.Digest = cat.digest()
	return cat, nil
}

// noting compiles the files of a root, and notes whether they have mistakes.
func (c *compiler) noting(root string, compile func()) {
	before := len(c.errs)
	compile()
	c.broken[root] = len(c.errs) > before
}

func (r *Repository) compiler(in Input) *compiler {
	c := newCompiler(r, &scope{in: in, vars: map[string]any{}, all: newPool(), secrets: newSecretTexts()})
	c.scope.macros = &macroSet{all: map[string]*Macro{}, values: map[string]any{}, later: true}
	return c
}

// identify reads the fleet's files, and what they say of the node.
func (c *compiler) identify() {
	c.compileFleet()
	if listed, ok := c.inventory[c.scope.in.Node.Name]; ok {
		c.scope.in.Node.Labels = listed.Labels
	}
	c.scope.inventory = c.inventory
	c.scope.in.View = c.scope.in.View.over(c.inventory)
	c.scope.server = c.scope.in.server()
}

// Untargeted reports a node that no target of base/jobs.yaml and base/services.yaml matches, although there are some.
func (c *Catalog) Untargeted() bool { return c.untargeted }

// Incomplete reports a catalog with mistakes: what could be read of it, in which more can be found. It cannot be run.
func (c *Catalog) Incomplete() bool { return c.incomplete }

func validationsLast(a, b *Job) int {
	switch {
	case a.Validation == b.Validation:
		return 0
	case b.Validation:
		return -1
	}
	return 1
}

func (c *compiler) fail(e *Error) { c.errs = append(c.errs, e) }

// crossReferences are the names of steps and macros that a catalog uses.
type crossReferences struct {
	c     *compiler
	known stepIndex // once all jobs are read
}

// check finds names of steps that nothing has.
func (r *crossReferences) check() {
	r.index()
	for _, j := range r.c.jobs.all {
		r.conditions(j.Conditions, j.Name)
		for _, s := range j.Steps {
			r.conditions(s.Conditions, j.Name)
			r.waits(s)
		}
	}
	r.gates()
}

func (r *crossReferences) conditions(cond Conditions, job string) {
	for _, one := range cond.All() {
		r.steps(one.Expression, job)
		r.event(one.Expression)
	}
}

// base are a base file of every layer that has it, rendered.
func (f *documents) base(name string) []*document {
	var out []*document
	for _, l := range f.c.repo.layers {
		p, ok := locateIn(l, name)
		if !ok {
			continue
		}
		if doc := f.render(p, true); doc != nil && doc.root != nil {
			out = append(out, doc)
		}
	}
	return out
}

// named is a named file, rendered; nil after a mistake, which is recorded.
func (f *documents) named(name string) *document {
	p, _ := f.c.repo.locate(name)
	return f.render(p, true)
}

// plain is a named file that is no template.
func (f *documents) plain(name string) *document {
	p, _ := f.c.repo.locate(name)
	return f.render(p, false)
}

// render makes a document of a file.
func (f *documents) render(p place, isTemplate bool) *document {
	src, bad := f.c.repo.load(f.c.scope, p, isTemplate)
	f.c.scope.asked = false
	defer f.hear(f.c.repo.displayName(p))
	var out *rendered
	if bad == nil {
		f.c.scope.x.meter.reset()
		if out, bad = f.execute(src); bad == nil {
			bad = f.countOutput(src, out)
		}
	}
	partial, cut := bad != nil, false
	if bad != nil && f.c.scope.asked {
		bad.hearsay = true
	}
	switch {
	case partial && src != nil && (strings.HasPrefix(p.path, "jobs/") || strings.HasPrefix(p.path, "vars/")):
		out, cut = f.partly(src, bad)
	case partial:
		f.c.fail(bad)
	}
	if out == nil || f.c.scope.all.full() {
		return nil
	}
	doc, errs := parseYAML(out)
	var jinja ErrorList // what they enclose is there
	if doc == nil && len(newcomer.JinjaTags(out.text)) > 0 {
		doc, jinja, errs = withoutJinja(out)
		partial = partial || doc != nil
	}
	if partial && doc == nil { // what was taken out may be what is missing
		return nil
	}
	f.c.errs = slices.Concat(f.c.errs, jinja, errs)
	if doc != nil {
		if err := f.c.scope.all.hold(doc.values); err != nil {
			f.c.fail(out.errorAt(1, 1, "%v", err))
			return nil
		}
	}
	if doc != nil && doc.root != nil {
		doc.partial, doc.cut, doc.broken = partial, cut, len(errs) > 0 || cut
		doc.waits, doc.shown = strings.HasPrefix(p.path, "jobs/"), strings.HasPrefix(p.path, "events/")
		if !doc.waits { // the steps of a job are looked at one by one, when their forEach is expanded
			f.checkPlaces(doc, doc.root, false)
			if !strings.HasPrefix(p.path, "vars/") {
				f.checkSecretPlaces(doc, doc.root)
			}
		}
	}
	return doc
}

// execute renders a template whose output is YAML.
func (f *documents) execute(src *source) (*rendered, *Error) {
	outer, from := f.c.scope.carrier, len(f.c.scope.waiting)
	defer func() { f.c.scope.carrier = outer }()
	f.c.scope.carrier = &carrier{yaml: true, secrets: f.c.scope.secrets}
	defer f.c.scope.begin(src)()
	out, bad := src.execute(f.c.scope, nil)
	if bad == nil {
		out.carrier, out.waits = f.c.scope.carrier, [2]int{from, len(f.c.scope.waiting)}
	}
	return out, bad
}

// countOutput refuses what a template wrote where there is too much of it already.
func (f *documents) countOutput(src *source, out *rendered) *Error {
	if src.tmpl == nil {
		return nil
	}
	if err := f.c.scope.all.written(len(out.text)); err != nil {
		return src.errorAt(Position{File: src.path, Line: 1, Col: 1}, "%v", err)
	}
	return nil
}

// decode fills v from a document and reports whether that went without a mistake.
func (f *documents) decode(doc *document, v any) bool {
	if doc.root == nil {
		return false
	}
	d := &decoder{doc: doc}
	d.into(fileBody(doc.root, reflect.TypeOf(v).Elem()), v)
	f.c.errs = append(f.c.errs, d.errs...)
	return len(d.errs) == 0
}

// digest is over everything that a run depends on.
func (c *Catalog) digest() string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, j := range c.Jobs {
		for _, s := range j.Steps {
			// Encoding cannot fail: parameters are plain data from YAML.
			_ = enc.Encode(
				[]any{
					j.Name,
					j.Validation,
					conditionTexts(j.Conditions),
					s.Name,
					s.Action,
					s.Params.Value(),
					s.Requisites,
					conditionTexts(s.Conditions),
					s.Options,
				},
			)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func conditionTexts(c Conditions) []string {
	out := make([]string, 3)
	for i, one := range []*Condition{c.When, c.Success, c.Continue} {
		if one != nil {
			out[i] = one.Expression.Text
		}
	}
	return out
}
