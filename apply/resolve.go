package apply

import (
	"context"
	"crypto/sha256"
)

// timed is the time that the step has.
func (s *running) timed() (context.Context, context.CancelFunc) {
	if s.step.Options.Timeout > 0 {
		return context.WithTimeout(s.run, s.step.Options.Timeout.Std())
	}
	return context.WithCancel(s.run)
}

// resolve fills in what the step's parameters or its file template wait for. In a plan a value that only a run makes is
// not known: the step is said to change.
func (s *running) resolve(ctx context.Context) (done bool, err error) {
	if !s.step.Waits() && !s.step.late {
		return false, nil
	}
	if from := s.unknown(); from != "" {
		s.r.Outcome, s.r.Summary, s.r.Unknown = Changed, "depends on what "+from+" returns", true
		return true, nil
	}
	var bound *boundStep
	err = s.gates.reading(ctx, func() (err error) {
		bound, err = s.rebound(ctx)
		return err
	})
	if err != nil {
		return false, err
	}
	s.step = bound
	s.x.mu.Lock()
	s.x.resolved[s.step.ID()] = s.step
	s.x.mu.Unlock()
	return false, nil
}

// rebound is the step with its parameters and its action as they are now that it runs.
func (s *running) rebound(ctx context.Context) (*boundStep, error) {
	hidden, run := false, s.x.runMacro(ctx)
	results, catalog := s.admission.reading(&hidden), s.x.program.catalog
	params, err := catalog.Fill(s.step.Step, results, run)
	if err != nil {
		return nil, err
	}
	filled := *s.step.Step
	filled.Params = params
	step := *catalog.Secrets().Holding(&filled, hidden)
	bound := *s.step
	bound.Step, bound.act = &step, s.step.spec.New()
	if errs := params.Into(bound.act, s.step.Pos); len(errs) > 0 {
		return nil, errs
	}
	if errs := bound.secretShown(catalog); len(errs) > 0 {
		return nil, errs
	}
	if binder, ok := bound.act.(Binder); ok {
		bound.read = sha256.New()
		binding := Binding{
			Catalog: catalog, Step: &step, specs: s.x.program.specs, read: bound.read,
			results: results, run: run, secret: new(bool),
		}
		if err := binder.Bind(binding); err != nil {
			return nil, bindErrors(&step, err)
		}
		bound.Step = catalog.Secrets().Holding(&step, hidden || *binding.secret)
	}
	return &bound, nil
}

// unknown is, in a plan, a step that would change and whose result this one may read.
func (s *running) unknown() string {
	if !s.x.plan {
		return ""
	}
	for _, e := range s.step.after {
		r := s.x.of(e.step.ID())
		if r != nil && r.toRun() && (e.why == readsResult || s.step.late) {
			return e.step.ID()
		}
	}
	return ""
}
