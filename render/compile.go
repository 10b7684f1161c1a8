package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"text/template"
)

// Catalog is what a snapshot says for one node. It is immutable.
type Catalog struct {
	Node      Node
	Version   string
	Release   string
	Vars      map[string]any
	Jobs      []*Job // in order; validations last
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
	incomplete bool
}

// compiler collects a catalog and every mistake on the way.
type compiler struct {
	repo      *Repository
	scope     *scope
	jobs      []*Job
	steps     int
	known     stepIndex // once all jobs are read
	fleet     Fleet
	inventory Inventory
	offers    []Offer
	offering  offering
	targets   []TargetUse
	heard     map[string]bool // files that rest on what other hosts say
	tracing   bool            // keep the places of variables
	places    map[string]any  // the variables, each with its place instead of its value
	errs      ErrorList
	warned    ErrorList
	failed    map[string]bool // macros that conditions call and that were reported
	salvaged  []*Error        // failures of templates of which the rest was looked at
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
	c.compileVars()
	c.compileMacros()
	c.compileJobs()
	slices.SortStableFunc(c.jobs, validationsLast)
	c.checkReferences()
	c.checkMacroCalls()
	c.checkOwners()
	if err := stopped(ctx); err != nil {
		return nil, err
	}
	c.scope.in.Context = nil // what a run evaluates has a time of its own
	cat := &Catalog{
		Node: c.scope.in.Node, Version: in.Version, Release: in.Release, Vars: c.scope.plainVars(), Jobs: c.jobs,
		Fleet: c.fleet, Inventory: c.inventory, repo: r, scope: c.scope,
		targets: c.targets, warned: c.warned, failed: c.failed, offers: c.offers, offering: c.offering, heard: c.heard,
	}
	if err := c.unlisted(c.ownMistakes()).Err(); err != nil {
		cat.incomplete = true
		return cat, err
	}
	cat.Digest = cat.digest()
	return cat, nil
}

func (r *Repository) compiler(in Input) *compiler {
	c := &compiler{repo: r, failed: map[string]bool{}, scope: &scope{in: in, vars: map[string]any{}, all: newPool()}}
	c.scope.macros = &macroSet{all: map[string]*Macro{}, values: map[string]any{}, funcs: r.funcs, later: true}
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

// checkReferences finds names of steps that nothing has.
func (c *compiler) checkReferences() {
	c.index()
	for _, j := range c.jobs {
		c.checkConditions(j.Conditions, j.Name)
		for _, s := range j.Steps {
			c.checkConditions(s.Conditions, j.Name)
			c.checkWaits(s)
		}
	}
	c.checkGates()
}

func (c *compiler) checkConditions(cond Conditions, job string) {
	for _, one := range cond.All() {
		c.checkSteps(one.Expression, job)
		c.checkEvent(one.Expression)
	}
}

// baseFiles are a base file of every layer that has it, rendered.
func (c *compiler) baseFiles(name string) []*document {
	var out []*document
	for _, l := range c.repo.layers {
		if _, err := fs.Stat(l.FS, name); err != nil {
			continue
		}
		if doc := c.render(place{l, name}, c.repo.funcs); doc != nil && doc.root != nil {
			out = append(out, doc)
		}
	}
	return out
}

// document is a named file, rendered; nil after a mistake, which is recorded.
func (c *compiler) document(name string) *document {
	p, _ := c.repo.locate(name)
	return c.render(p, c.repo.funcs)
}

// plainDocument is a named file that is no template.
func (c *compiler) plainDocument(name string) *document {
	p, _ := c.repo.locate(name)
	return c.render(p, nil)
}

// render makes a document of a file. Without functions it is no template.
func (c *compiler) render(p place, funcs template.FuncMap) *document {
	src, bad := c.repo.load(p, funcs)
	c.scope.asked = false
	defer c.hear(c.repo.displayName(p))
	var out *rendered
	if bad == nil {
		c.repo.meter.reset()
		if out, bad = c.execute(src); bad == nil {
			bad = c.countOutput(src, out)
		}
	}
	salvaged, cut := bad != nil, false
	if bad != nil && c.scope.asked {
		bad.hearsay = true
	}
	switch {
	case salvaged && src != nil && (strings.HasPrefix(p.path, "jobs/") || strings.HasPrefix(p.path, "vars/")):
		out, cut = c.renderPartly(src, funcs, bad)
	case salvaged:
		c.fail(bad)
	}
	if out == nil || c.scope.all.full() {
		return nil
	}
	doc, errs := parseYAML(out)
	var jinja ErrorList // what they enclose is there
	if doc == nil && jinjaTag.Match(out.text) {
		doc, jinja, errs = withoutJinja(out)
		salvaged = salvaged || doc != nil
	}
	if salvaged && doc == nil { // what was taken out may be what is missing
		return nil
	}
	c.errs = slices.Concat(c.errs, jinja, errs)
	if doc != nil {
		if err := c.scope.all.hold(doc.values); err != nil {
			c.fail(out.errorAt(1, 1, "%v", err))
			return nil
		}
	}
	if doc != nil && doc.root != nil {
		doc.salvaged, doc.cut, doc.broken = salvaged, cut, len(errs) > 0 || cut
		doc.waits = strings.HasPrefix(p.path, "jobs/")
		if !doc.waits { // the steps of a job are looked at one by one, when their forEach is expanded
			c.checkPlaces(doc, doc.root, false)
		}
	}
	return doc
}

// execute renders a template whose output is YAML.
func (c *compiler) execute(src *source) (*rendered, *Error) {
	outer, from := c.scope.carrier, len(c.scope.waiting)
	defer func() { c.scope.carrier = outer }()
	c.scope.carrier = &carrier{yaml: true}
	defer c.scope.begin(src)()
	out, bad := src.execute(nil)
	if bad == nil {
		out.carrier, out.waits = c.scope.carrier, [2]int{from, len(c.scope.waiting)}
	}
	return out, bad
}

// countOutput refuses what a template wrote where there is too much of it already.
func (c *compiler) countOutput(src *source, out *rendered) *Error {
	if src.tmpl == nil {
		return nil
	}
	if err := c.scope.all.written(len(out.text)); err != nil {
		return src.errorAt(Position{File: src.path, Line: 1, Col: 1}, "%v", err)
	}
	return nil
}

// decode fills v from a document and reports whether that went without a mistake.
func (c *compiler) decode(doc *document, v any) bool {
	if doc.root == nil {
		return false
	}
	d := &decoder{doc: doc}
	d.into(fileBody(doc.root, reflect.TypeOf(v).Elem()), v)
	c.errs = append(c.errs, d.errs...)
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
