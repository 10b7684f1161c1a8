package render

import "text/template"

// execution is what the functions of templates see while they are executed: the scope, and the work that is left. It
// belongs to one caller at a time. The templates of a repository are parsed with the functions of its first execution,
// and bound to those of another one when that executes them.
type execution struct {
	scope *scope // nil: it is idle
	meter meter  // of the file that is being executed
	funcs template.FuncMap
	early template.FuncMap // of base/services.yaml
}

func newExecution() *execution {
	x := &execution{funcs: pureFuncs()}
	x.meter.install(x.funcs)
	x.funcs["deferred"], x.funcs["local"], x.funcs["printed"] = x.deferred, x.local, x.printed
	for name, f := range roots(x.current) {
		x.funcs[name] = f
	}
	x.funcs["macro"] = x.meter.metered("macro", x.funcs["macro"])
	x.early = earlyFuncs(x.funcs)
	return x
}

// current is the scope that templates see now.
func (x *execution) current() *scope { return x.scope }

// enter gives a scope an execution, until release is called. Scopes of a repository share what they read, so one is
// executed at a time; while a macro of it runs a command, which takes its time, others are.
func (r *Repository) enter(s *scope) (release func()) {
	r.mu.Lock()
	x := r.idle()
	x.scope, s.x = s, x
	x.meter = meter{all: s.all, ctx: s.in.Context, secrets: s.secrets}
	x.meter.reset()
	if run := s.macros.run; run != nil {
		s.macros.run = func(m *Macro) (string, error) {
			r.mu.Unlock()
			s.watch.stop()
			defer func() { r.mu.Lock(); s.watch.resume() }()
			return run(m)
		}
	}
	return func() {
		x.scope, s.x = nil, nil
		if x != r.first {
			r.others = append(r.others, x)
		}
		r.mu.Unlock()
	}
}

// idle is an execution that nobody has.
func (r *Repository) idle() *execution {
	last := len(r.others) - 1
	switch {
	case r.first.scope == nil:
		return r.first
	case last < 0:
		return newExecution()
	}
	x := r.others[last]
	r.others = r.others[:last]
	return x
}

// bind is a template of the source with the functions of an execution.
func (s *source) bind(t *template.Template, x *execution) (*template.Template, error) {
	if x == s.owner {
		return t, nil
	}
	bound, err := t.Clone()
	if err != nil {
		return nil, err
	}
	return bound.Funcs(s.functions(x)), nil
}

// functions are those of an execution that the source may call.
func (s *source) functions(x *execution) template.FuncMap {
	if s.early {
		return x.early
	}
	return x.funcs
}
