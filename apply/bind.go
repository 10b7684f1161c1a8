package apply

import (
	"errors"
	"fmt"

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
	reads    []*boundStep // whose results its conditions read
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

// has reports whether the program has a step of this id.
func (p *Program) has(id string) bool { return p.byID[id] != nil }
