package apply

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pullet/pullet/render"
)

// Program is a catalog whose steps have their actions and their order.
type Program struct {
	catalog *render.Catalog
	steps   []*boundStep // in the order in which they run
	byID    map[string]*boundStep
}

type boundStep struct {
	*render.Step
	job      *render.Job
	spec     Spec
	act      Action
	requires []*boundStep
}

// Bind gives every step its action and the steps their order. The error is a render.ErrorList with every mistake.
func Bind(cat *render.Catalog, specs []Spec) (*Program, error) {
	b := &binder{cat: cat, specs: map[string]Spec{}, program: &Program{catalog: cat, byID: map[string]*boundStep{}}}
	for _, s := range specs {
		b.specs[s.Name] = s
		b.names = append(b.names, s.Name)
	}
	for _, j := range cat.Jobs {
		for _, s := range j.Steps {
			b.step(j, s)
		}
	}
	b.references()
	if err := b.errs.Err(); err != nil {
		return nil, err
	}
	ordered, loop := order(b.program.steps)
	if loop != nil {
		return nil, render.ErrorList{cycleError(loop)}
	}
	b.program.steps = ordered
	return b.program, nil
}

type binder struct {
	cat     *render.Catalog
	specs   map[string]Spec
	names   []string
	program *Program
	errs    render.ErrorList
}

// step binds one step to its action.
func (b *binder) step(j *render.Job, s *render.Step) {
	spec, ok := b.specs[s.Action]
	if !ok {
		if s.Action != "" { // a missing one was reported when it was read
			near := render.Nearest(s.Action, b.names)
			e := s.ErrorAt(s.ActionPos, "there is no action %q", s.Action)
			if near != "" {
				e.Hint = fmt.Sprintf("did you mean %q?", near)
			}
			b.errs = append(b.errs, e)
		}
		return
	}
	bound := &boundStep{Step: s, job: j, spec: spec, act: spec.New()}
	if errs := s.Params.Into(bound.act, s.Pos); len(errs) > 0 {
		b.errs = append(b.errs, errs...)
		return
	}
	if binder, ok := bound.act.(Binder); ok {
		if err := binder.Bind(Binding{b.cat, s}); err != nil {
			b.errs = append(b.errs, bindErrors(s, err)...)
			return
		}
	}
	b.program.steps = append(b.program.steps, bound)
	b.program.byID[s.ID()] = bound
}

// bindErrors gives what an action found wrong its place.
func bindErrors(s *render.Step, err error) render.ErrorList {
	var param *ParamError
	if errors.As(err, &param) {
		pos := s.Params.Position(param.Param, s.Pos)
		return render.ErrorList{s.ErrorAt(pos, "%v", err)}
	}
	var list render.ErrorList // of a file template: it has positions of its own
	if errors.As(err, &list) {
		return list
	}
	return render.ErrorList{s.ErrorAt(s.Pos, "%v", err)}
}

// references resolves what the steps require.
func (b *binder) references() {
	for _, s := range b.program.steps {
		for _, r := range s.Requires {
			found := b.matches(s, r)
			if len(found) == 0 {
				b.errs = append(b.errs, b.noMatch(s, r))
			}
			s.requires = append(s.requires, found...)
		}
	}
}

// matches are the steps that a requisite means: by name or by the parameter name, in its own job first for bare names. A step of a
// job cannot require a validation, which runs later.
func (b *binder) matches(from *boundStep, r render.Requisite) []*boundStep {
	var own, all []*boundStep
	for _, s := range b.program.steps {
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

// Step is the bound step of an id, for the journal and results.
func (p *Program) has(id string) bool { return p.byID[id] != nil }
