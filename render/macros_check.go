package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// A condition is evaluated only when its step runs, and with it the macros that it calls. A macro that cannot work is
// found earlier: as far as a condition can be evaluated without results of steps, Compile does it, and Lint tries every
// macro that a condition names.

// macroError is the failure of a macro that was called.
type macroError struct {
	macro *Macro
	err   error
}

func (e *macroError) Error() string { return e.err.Error() }
func (e *macroError) Unwrap() error { return e.err }

// macroTextError is a text of a macro that cannot be executed.
type macroTextError struct {
	macro *Macro
	bad   *Error
}

func (e *macroTextError) Error() string {
	return fmt.Sprintf("macro %q (%s): %s", e.macro.Name, e.macro.pos, e.bad.Message+inBrackets(e.bad.Hint))
}

// reads notes what the failing action or expression reads of the fleet, itself or by a macro that failed.
func (e *Error) reads(services, servers []string, err error) {
	var text *macroTextError
	if errors.As(err, &text) {
		services, servers = append(services, text.bad.Services...), append(servers, text.bad.Servers...)
		e.few = e.few || text.bad.few
	}
	e.Services, e.Servers = distinct(services), distinct(servers)
}

// mistake is the failure at its macro; nil where it may be none: what only a run can tell, or what the fleet may
// change.
func (e *macroError) mistake(all map[string]*Macro, fleet bool) *Error {
	if errors.Is(e.err, ErrNotYet) || !fleet && e.macro.asksForFleet(all, map[string]bool{}) {
		return nil
	}
	var known *Error
	var text *macroTextError
	switch {
	case errors.As(e.err, &known):
		return known
	case errors.As(e.err, &text):
		return text.macro.atContent(text.bad)
	}
	return e.macro.atContent(&Error{Message: e.err.Error()})
}

// atContent is a failure of the macro's text at its place in the repository.
func (m *Macro) atContent(bad *Error) *Error {
	out := m.Params.errorAt(m.Params.Position("content", m.pos), "macro %q: %s", m.Name, bad.Message)
	out.Hint = bad.Hint
	return out
}

// asksForFleet reports a macro whose value depends on other hosts, itself or through another macro.
func (m *Macro) asksForFleet(all map[string]*Macro, seen map[string]bool) bool {
	if m == nil || seen[m.Name] {
		return false
	}
	seen[m.Name] = true
	return asking.MatchString(m.Params.Text("content")) ||
		slices.ContainsFunc(m.calls(), func(name string) bool { return all[name].asksForFleet(all, seen) })
}

// evaluated reports what can be known to be wrong with conditions that a run reaches, and with the macros that they
// call.
func (r *crossReferences) evaluated() {
	for _, t := range r.c.triggers.mine {
		r.callsIn(t.Expression)
		r.condition(t.Expression)
	}
	for _, j := range r.c.jobs.all {
		runs := r.conditionsOf(j.Conditions)
		for _, s := range j.Steps {
			r.c.idle[s.ID()] = !runs || !r.conditionsOf(s.Conditions)
		}
	}
}

// conditionsOf looks at the conditions of a step or a job. It returns false if it is known not to run.
func (r *crossReferences) conditionsOf(conditions Conditions) (mayRun bool) {
	for _, one := range conditions.All() {
		r.callsIn(one.Expression)
		if mayHold := r.condition(one.Expression); one == conditions.When && !mayHold {
			return false
		}
	}
	return true
}

// callsIn evaluates an expression that calls macros.
func (r *crossReferences) callsIn(e Expression) {
	if e.code == nil || !slices.ContainsFunc(e.keys, KeyRef.OfMacro) {
		return
	}
	r.c.scope.item = e.item
	_, err := runExpression(e.code, r.c.scope)
	r.c.scope.item = nil
	var failed *macroError
	if !errors.As(err, &failed) || r.c.failed[failed.macro.Name] {
		return
	}
	if bad := failed.mistake(r.c.scope.macros.all, false); bad != nil {
		r.c.failed[failed.macro.Name] = true
		r.c.fail(bad)
	}
}

// parseMacros reports the texts of macros that are no templates: nothing can call such a macro, and a condition that
// does would be evaluated after hosts were changed.
func (c *compiler) parseMacros() {
	for _, name := range c.scope.macros.names() {
		m := c.scope.macros.all[name]
		if m.pos.File == shippedFile {
			continue
		}
		if m.Action == templateExpression && m.Params.lookup("content") == nil {
			c.failedMacro(m, m.Params.errorAt(m.pos, "macro %q: \"content\" is missing", m.Name))
			continue
		}
		for _, e := range m.Params.pairs {
			c.parseMacro(m, e.value)
		}
	}
}

// parseMacro reports the texts below a node of a macro that are no templates.
func (c *compiler) parseMacro(m *Macro, n *yaml.Node) {
	n = resolve(n)
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "{{") && !c.repo.parsesMacro(n.Value) {
		src := &source{path: m.pos.File, text: n.Value}
		if bad := src.parse(c.scope, c.scope.x.funcs, false); bad != nil {
			e := m.Params.errorAt(m.Params.doc.pos(n), "macro %q: %s", m.Name, bad.Message)
			e.Hint = bad.Hint
			c.failedMacro(m, e)
			return
		}
		c.repo.macroTexts.Store(n.Value, true)
	}
	for i, inner := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 { // a key is no template
			c.parseMacro(m, inner)
		}
	}
}

// parsesMacro reports a text of a macro that is known to be a template.
func (r *Repository) parsesMacro(text string) bool {
	_, known := r.macroTexts.Load(text)
	return known
}

// failedMacro reports a macro that cannot work. What calls it need not say that again.
func (c *compiler) failedMacro(m *Macro, bad *Error) {
	c.failed[m.Name] = true
	c.fail(bad)
}

// brokenMacros are warnings about macros that fail and that a condition names: it may not call them, or not as the
// fleet is now.
func (c *Catalog) brokenMacros() ErrorList {
	s, named := c.scope.at(nil, nil), c.macrosOfConditions()
	defer c.repo.enter(s)()
	var out ErrorList
	for _, name := range s.macros.names() {
		m := s.macros.all[name]
		if m.pos.File == shippedFile || m.Action != templateExpression || c.failed[name] || !named[name] {
			continue
		}
		if bad := s.macros.try(s, m); bad != nil {
			bad.Severity = Warning
			out = append(out, bad)
		}
	}
	return out
}

// macrosOfConditions are the macros that conditions name literally.
func (c *Catalog) macrosOfConditions() map[string]bool {
	out := map[string]bool{}
	noteOne := func(e Expression) {
		for _, key := range e.keys {
			if key.OfMacro() {
				out[key.Path[0]] = true
			}
		}
	}
	note := func(conditions Conditions) {
		for _, one := range conditions.All() {
			noteOne(one.Expression)
		}
	}
	for _, t := range c.Triggers {
		noteOne(t.Expression)
	}
	for _, j := range c.Jobs {
		note(j.Conditions)
		for _, s := range j.Steps {
			note(s.Conditions)
		}
	}
	return out
}

// try calls a macro that takes no arguments.
func (s *macroSet) try(in *scope, m *Macro) *Error {
	var failed *macroError
	if len(m.Args) > 0 {
		return nil
	}
	if _, err := s.call(in, m.Name, nil); !errors.As(err, &failed) {
		return nil
	}
	return failed.mistake(s.all, true)
}

// calls are the macros that the macro's texts name.
func (m *Macro) calls() []string {
	var out []string
	for _, e := range m.Params.pairs {
		out = append(out, callsIn(e.value)...)
	}
	return out
}

// callsIn are the macros that the texts below a node name.
func callsIn(n *yaml.Node) []string {
	var out []string
	n = resolve(n)
	for _, call := range macroCalls.FindAllStringSubmatch(n.Value, -1) {
		out = append(out, call[1])
	}
	for _, c := range n.Content {
		out = append(out, callsIn(c)...)
	}
	return out
}

// macroCalls finds the macros that a macro's text names.
var macroCalls = lazyregexp.New("macros?\\s+[\"`]([^\"`]+)[\"`]")
