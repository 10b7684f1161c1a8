package apply

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pullet/pullet/render"
)

// references resolves what the steps require.
func (b *binder) references() {
	named := b.index()
	for _, s := range b.program.steps {
		for _, r := range s.Requires {
			found := matches(named[r.Name], s, r)
			if len(found) == 0 {
				b.errs = append(b.errs, b.noMatch(s, r))
			}
			s.requires = append(s.requires, found...)
		}
		b.reads(s, named)
	}
}

// reads finds the steps whose results a step's conditions and those of its job read: they run before it, and need not succeed.
func (b *binder) reads(s *boundStep, named map[string][]*boundStep) {
	own, job := s.Conditions, s.job.Conditions
	for _, c := range []*render.Condition{own.When, own.Success, own.Continue, job.When} {
		if c == nil {
			continue
		}
		for _, name := range c.Expression.Steps() {
			for _, read := range matches(named[name], s, render.Requisite{Name: name}) {
				if c != job.When || read.job != s.job { // a job's condition is asked before all of its steps
					s.reads = append(s.reads, read)
				}
			}
		}
	}
}

// index finds steps by what a requisite can call them: name, id, or the parameter name.
func (b *binder) index() map[string][]*boundStep {
	out := map[string][]*boundStep{}
	for _, s := range b.program.steps {
		names := []string{s.Name, s.ID(), s.Params.Text("name")}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			out[name] = append(out[name], s)
		}
	}
	return out
}

// matches are the steps among those of a name that a requisite means. For bare names those of its own job come first. A step of a job
// cannot require a validation, which runs later.
func matches(candidates []*boundStep, from *boundStep, r render.Requisite) []*boundStep {
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
	byName := s.Name == r.Name || s.ID() == r.Name
	switch r.Module {
	case "", "step":
		return byName
	case s.Action, strings.SplitN(s.Action, ".", 2)[0]:
		return byName || s.Params.Text("name") == r.Name
	}
	return false
}

func (b *binder) noMatch(s *boundStep, r render.Requisite) *render.Error {
	e := s.ErrorAt(r.Pos, "require: there is no step %q", r.Name)
	if r.Module != "" && r.Module != "step" {
		e.Message = fmt.Sprintf("require: no step of %s is named %q or manages it", r.Module, r.Name)
	}
	var names []string
	for _, other := range b.program.steps {
		if other != s {
			names = append(names, other.Name, other.Params.Text("name"))
		}
	}
	if near := render.Nearest(r.Name, names); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return e
}
