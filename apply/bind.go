package apply

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"

	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/newcomer"
)

// Program is a catalog whose steps have their actions and their order.
type Program struct {
	catalog  *render.Catalog
	steps    []*boundStep // in the order in which they run, one at a time: jobs, then validations
	byID     map[string]*boundStep
	specs    map[string]Spec
	warnings render.ErrorList
}

type boundStep struct {
	*render.Step
	job      *render.Job
	id       string // "job/name"
	base     string // the name, without the number of a forEach's instance
	spec     Spec
	act      Action
	needs    map[string][]*boundStep // by kind of requisite, the ones declared from the other end included
	after    []edge                  // what has to end before this one starts
	late     bool                    // the action can be bound only when the step runs
	read     hash.Hash               // of the files that the action read when it was bound
	index    int                     // in Program.steps
	watchers []string                // the steps that react to its change
	prepares string                  // the path that it is about, if it may be one of a group
	why      string                  // what it reacts to, if it is the reaction of a step: listen, prune, restore
}

// ID is the step's id. It shadows the one that is made anew at each call.
func (s *boundStep) ID() string { return s.id }

// edge says that a step comes after another, and why.
type edge struct {
	step *boundStep
	why  string
}

// Compile compiles a repository for a node and binds its steps. The error is a render.ErrorList with the mistakes of
// both.
func Compile(repo *render.Repository, in render.Input, specs []Spec) (*Program, *render.Catalog, error) {
	cat, err := repo.Compile(in)
	var mistakes render.ErrorList
	if err != nil && (!errors.As(err, &mistakes) || cat == nil) {
		return nil, nil, err
	}
	program, err := Bind(cat, specs)
	var more render.ErrorList
	if err != nil && !errors.As(err, &more) {
		return nil, nil, err
	}
	if err := append(mistakes, more...).Err(); err != nil {
		return nil, nil, err
	}
	return program, cat, nil
}

// Bind gives every step its action and the steps their order. The error is a render.ErrorList with every mistake.
func Bind(cat *render.Catalog, specs []Spec) (*Program, error) {
	b := &binder{cat: cat, program: &Program{catalog: cat, byID: map[string]*boundStep{}, specs: ByName(specs)}}
	for _, s := range specs {
		b.names = append(b.names, s.Name)
	}
	for _, j := range cat.Jobs {
		for _, s := range j.Steps {
			b.add(j, s)
		}
	}
	b.macros()
	b.references()
	for _, s := range b.program.steps {
		if !s.Broken() && len(b.errs) < maxMistakes {
			mistakes := s.bind(cat, b.program.specs)
			if b.errs = append(b.errs, mistakes...); len(mistakes) > 0 {
				s.act = nil
			}
		}
	}
	b.contradictions()
	if err := cat.Secrets().Redacted(b.errs).Err(); err != nil {
		return nil, err
	}
	if loop := b.program.sort(); loop != nil {
		return nil, render.ErrorList{cycleError(loop)}
	}
	b.program.watch()
	for _, s := range b.program.steps {
		s.prepares = s.groupable()
	}
	return b.program, nil
}

// contradictions finds the steps that contradict each other.
func (b *binder) contradictions() {
	var all []*claimant
	for _, s := range b.program.steps {
		all = append(all, &claimant{Step: s.Step, job: s.job, act: s.act, instance: s.base != s.Name,
			idle: b.cat.Idle(s.ID()), needs: func(kind string) string { return names(s.needs[kind]) }})
	}
	mistakes, warnings := contradictions(all, maxMistakes)
	b.errs, b.program.warnings = append(b.errs, mistakes...), b.cat.Secrets().Redacted(warnings)
}

// maxMistakes bounds the mistakes of one host that are looked into: each is held against all names.
const maxMistakes = 500

type binder struct {
	cat     *render.Catalog
	names   []string
	program *Program
	errs    render.ErrorList

	edges, looked int // that requisites made, and names that their patterns were held against
}

// noAction adds what may have been meant by an action that does not exist.
func (b *binder) noAction(e *render.Error, name string) *render.Error {
	e.Hint = newcomer.Action(name)
	if near := render.Nearest(name, b.names); near != "" && e.Hint == "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return e
}

// add takes a step into the program if its action exists.
func (b *binder) add(j *render.Job, s *render.Step) {
	spec, ok := b.program.specs[s.Action]
	if !ok {
		if s.Action != "" { // a missing one was reported when it was read
			b.errs = append(b.errs, b.noAction(s.ErrorAt(s.ActionPos, "there is no action %q", s.Action), s.Action))
		}
		return
	}
	if _, command := spec.New().(OutcomeRules); j.Validation && !spec.Passive && !spec.KeepsHost && !command {
		bad := s.ErrorAt(s.ActionPos, "%s changes the host: a validation only checks it", s.Action)
		bad.Hint = "list the job under jobs, or check with cmd.run or http.request"
		b.errs = append(b.errs, bad)
		return
	}
	bound := &boundStep{
		Step:  s,
		job:   j,
		spec:  spec,
		id:    s.ID(),
		base:  instance.ReplaceAllString(s.Name, ""),
		needs: map[string][]*boundStep{},
	}
	b.program.steps = append(b.program.steps, bound)
	b.program.byID[bound.id] = bound
}

// bind gives the step its action with typed parameters. Parameters that wait for other steps get their values when the
// step runs, and only then can the action look at them.
func (s *boundStep) bind(cat *render.Catalog, specs map[string]Spec) render.ErrorList {
	s.act = s.spec.New()
	if errs := s.Params.Into(s.act, s.Pos); len(errs) > 0 {
		return errs
	}
	s.Step = cat.Secrets().Holding(s.Step, false)
	if errs := s.secretShown(cat); len(errs) > 0 {
		return errs
	}
	binder, ok := s.act.(Binder)
	if !ok || s.Waits() {
		return nil
	}
	s.read = sha256.New()
	var secret bool
	err := binder.Bind(Binding{Catalog: cat, Step: s.Step, specs: specs, read: s.read, secret: &secret})
	s.Step = cat.Secrets().Holding(s.Step, secret)
	if s.late = errors.Is(err, render.ErrNotYet); s.late || err == nil {
		return nil
	}
	return bindErrors(s.Step, err)
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
