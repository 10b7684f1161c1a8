package apply

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/render"
)

// What requisites may cost: patterns that mean thousands of steps, on thousands of steps, would fill the memory.
const (
	maxEdges  = 1_000_000  // from step to step
	maxLooked = 10_000_000 // names that patterns are held against
	maxNear   = 1000       // names that a misspelt one is held against
)

// references resolves what the steps refer to.
func (b *binder) references() {
	named := b.index()
	for _, s := range b.program.steps {
		for _, r := range s.Requisites {
			found := b.matches(named[r.Name], s, r)
			if b.edges += len(found); b.edges > maxEdges || b.looked > maxLooked {
				b.errs = append(
					b.errs,
					s.ErrorAt(
						r.Pos,
						"the requisites of this host mean too many steps: more than %d in all, or patterns that are held against "+
							"more than %d names; require one step that comes after the others",
						maxEdges,
						maxLooked,
					),
				)
				return
			}
			if len(found) == 0 && len(b.errs) < maxMistakes && !b.cat.Incomplete() &&
				!b.cat.NoItems(r.Name, s.Job) { // it may be in a file that could not be read
				b.errs = append(b.errs, b.noMatch(s, r))
			}
			for _, t := range found {
				relate(s, t, r.Kind)
			}
		}
		b.reads(s, named)
	}
	b.use()
}

// relate files a requisite under the step that it holds for, and the order that follows from it.
func relate(s, t *boundStep, kind string) {
	if base, in := strings.CutSuffix(kind, "_in"); in { // declared from the other end
		s, t, kind = t, s, base
	}
	switch kind {
	case "onchanges_any": // both forms want one change
		kind = "onchanges"
	case "onfail_any":
		kind = "onfail"
	}
	s.needs[kind] = append(s.needs[kind], t)
	switch kind {
	case "listen", "use": // neither changes the order
	case "prereq":
		t.needs["prereq of"] = append(t.needs["prereq of"], s)
		t.after = append(t.after, edge{s, kind})
	default:
		s.after = append(s.after, edge{t, kind})
	}
}

// use copies the parameters of other steps that a step does not set itself. It is not chained: theirs are as they were
// written.
func (b *binder) use() {
	taken := map[*boundStep]*render.Step{}
	for _, s := range b.program.steps {
		for _, t := range s.needs["use"] {
			if taken[s] == nil {
				copied := *s.Step
				taken[s] = &copied
			}
			taken[s].Params = taken[s].Params.Or(t.Params)
			for _, e := range t.after { // what its parameters wait for
				if e.why == readsResult && e.step != s {
					s.after = append(s.after, e)
				}
			}
		}
	}
	for s, step := range taken {
		s.Step = step
	}
}

// readsResult is why a step comes after one whose result it reads.
const readsResult = "reads its result"

// reads finds the steps whose results a step's parameters and conditions, and its job's condition, read: they run
// before it, and need not succeed.
func (b *binder) reads(s *boundStep, named map[string][]*boundStep) {
	add := func(name string, ofJob bool) {
		for _, t := range b.matches(named[name], s, render.Requisite{Name: name}) {
			if !ofJob || t.job != s.job { // a job's condition is asked before all of its steps
				s.after = append(s.after, edge{t, readsResult})
			}
		}
	}
	for _, name := range s.After() {
		add(name, false)
	}
	if when := s.job.Conditions.When; when != nil {
		for _, name := range when.Expression.Steps() {
			add(name, true)
		}
	}
}

var instance = lazyregexp.New(`\[\d+\]$`)

// index finds steps by what a requisite can call them: name, id, the name of the forEach that they are an instance of,
// or what the parameters name.
func (b *binder) index() map[string][]*boundStep {
	out := map[string][]*boundStep{}
	for _, s := range b.program.steps {
		names := append([]string{s.Name, s.id, s.base, s.Job + "/" + s.base}, s.managed()...)
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			out[name] = append(out[name], s)
		}
	}
	return out
}

// managed are the names by which a requisite can mean what the step manages.
func (s *boundStep) managed() []string {
	return slices.Concat(s.Params.Texts("name"), s.Params.Texts("pkgs"))
}

// matches are the steps that a requisite means: among those of its name, or, with a pattern, among all. For bare names
// those of its own job come first. A step of a job cannot refer to a validation, which runs later.
func (b *binder) matches(candidates []*boundStep, from *boundStep, r render.Requisite) []*boundStep {
	if len(candidates) == 0 && strings.ContainsAny(r.Name, "*?[") {
		candidates = b.program.steps
		b.looked += len(candidates)
	}
	var own, all []*boundStep
	for _, s := range candidates {
		if s == from || s.job.Validation && !from.job.Validation || !refersTo(r, s) {
			continue
		}
		all = append(all, s)
		if s.job == from.job {
			own = append(own, s)
		}
	}
	if len(own) > 0 && (r.Module == "" || r.Module == "step") {
		return own
	}
	return all
}

// refersTo reports whether a requisite names a step.
func refersTo(r render.Requisite, s *boundStep) bool {
	pattern := strings.ContainsAny(r.Name, "*?[")
	same := func(name string) bool {
		if r.Name == name || !pattern {
			return r.Name == name
		}
		ok, err := path.Match(r.Name, name)
		return err == nil && ok
	}
	byName := same(s.Name) || same(s.id) || same(s.base) || same(s.Job+"/"+s.base)
	switch r.Module {
	case "", "step":
		return byName
	case s.Action, strings.SplitN(s.Action, ".", 2)[0]:
		return byName || slices.ContainsFunc(s.managed(), same)
	}
	return false
}

func (b *binder) noMatch(s *boundStep, r render.Requisite) *render.Error {
	if refersTo(r, s) {
		return s.ErrorAt(r.Pos, "%s: %q is this step itself", r.Kind, r.Name)
	}
	e := s.ErrorAt(r.Pos, "%s: there is no step %q", r.Kind, r.Name)
	if r.Module != "" && r.Module != "step" {
		e.Message = fmt.Sprintf("%s: no step of %s is named %q or manages it", r.Kind, r.Module, r.Name)
	}
	var names []string
	for _, other := range b.program.steps {
		if other != s && len(names) < maxNear {
			names = append(names, other.Name, other.Params.Text("name"))
		}
	}
	if near := render.Nearest(r.Name, names); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return e
}
