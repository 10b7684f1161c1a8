package render

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
)

// scope is what templates and expressions of one catalog see. The template functions of a Repository read it through a
// pointer, so that a template is parsed once and executed for any number of catalogs.
type scope struct {
	in      Input
	server  map[string]any
	vars    map[string]any
	macros  *macroSet
	results Results
	own     StepResult       // of the step whose expression is evaluated
	item    any              // of the forEach that is being expanded
	waiting []*deferred      // actions that were deferred, by the number in their placeholders
	local   []map[string]any // variables of the deferred actions that are being executed
	all     *pool            // what is left for all files; nil while steps run
	others  map[string]any   // what serverVars made
	// of the opaque texts that the template prints which is executed; nil: of a text that is executed when it is used
	carrier *carrier
	seen    shownRoots     // what templates see of what others say
	known   map[string]any // what plainVars made
	chooses bool           // an expression chooses the items of a forEach

	computable map[string]any // what expressionVars made
	keyed      bool           // some name of a variable is opaque
	secrets    *secretTexts   // of the catalog
	closed     closedFiles    // that were met so far
	private    map[string]any // the roots of the file that is executed, where it changes maps; nil: those of all files

	x         *execution           // executes its templates, from Repository.enter to the release
	src       *source              // the file that is executed
	watch     *stopwatch           // of the expression that is evaluated
	inventory Inventory            // is laid over every view
	look      func() (View, error) // reads the fleet anew when it is asked for; nil: in.View stands
	unseen    error                // why that failed
	asked     bool                 // something was asked of the fleet since hear
}

// view is what is known of the fleet: as it is now while a condition is judged, else as it was when the catalog was
// compiled.
func (s *scope) view() View {
	s.asked = true
	if s.look != nil {
		var v View
		if v, s.unseen = s.look(); s.unseen == nil {
			s.in.View = v.over(s.inventory)
		}
		s.look, s.others, s.seen.servers = nil, nil, nil
	}
	return s.in.View
}

// shownRoots are values as templates see them: every text in them that the repository does not hold is opaque.
type shownRoots struct{ server, servers any }

// Results gives what steps returned so far, by "job/step" or a short name. It is nil while a catalog is compiled.
type Results func(name string) (StepResult, bool)

// fleetRoot is the root "pullet" (alias "eden").
type fleetRoot struct {
	Version opaque // the commit
	Release opaque // its tag, or empty
	Agent   opaque // the version of pullet on this host
	scope   *scope
}

// String is the version.
func (f fleetRoot) String() string { return string(f.Version) }

// Servers are the names of the registered nodes that a target matches: {{ pullet.servers "role=web" | join "," }}.
func (f fleetRoot) Servers(target any) (any, error) {
	text, ok := textOf(target)
	if !ok {
		return nil, fmt.Errorf("servers wants a target such as \"role=web\", got %T", revealed(target))
	}
	names, err := f.scope.servers(text)
	return foreign(names), err
}

// servers counts that all nodes are looked at.
func (s *scope) servers(target string) ([]string, error) {
	view := s.view()
	if err := s.all.spend(len(view.Nodes) / 2); err != nil {
		return nil, err
	}
	return view.Servers(target)
}

// roots are the names that templates read data by, as functions over the current scope.
func roots(current func() *scope) template.FuncMap {
	server := func() any { return current().ownRoot("server", current().shownServer()) }
	vars := func() any { return current().ownRoot("vars", current().shownVars()) }
	fleet := func() fleetRoot {
		in := current().in
		return fleetRoot{opaque(in.Version), opaque(in.Release), opaque(in.Agent), current()}
	}
	step := func(name any) (StepResult, error) {
		text, _ := textOf(name)
		r, err := current().result(text)
		return current().ownResult(r), err
	}
	servers := func() any { return current().ownRoot("servervars", current().shownServers()) }
	macro := func(name string, args ...any) (any, error) { return current().macros.call(current(), name, args) }
	services := func(name any) (any, error) {
		text, ok := textOf(name)
		if !ok {
			return nil, fmt.Errorf("services wants the name of a service, got %T", revealed(name))
		}
		return foreign(current().view().services(text)), nil
	}
	steps := func() stepsRoot { return stepsRoot{current()} }
	macros := func() macrosRoot { return macrosRoot{current()} }
	item := func() (any, error) {
		item, err := current().theItem()
		return current().ownRoot("item", item), err
	}
	event := func() (any, error) {
		event, err := current().in.event()
		return foreign(event), err
	}
	return template.FuncMap{ // the comments are what pullet explain says
		"server":     server,  // this host: its name, its labels and its facts
		"Server":     server,  // the same as server
		"servervars": servers, // host name -> what server holds there, for every registered host
		"vars":       vars,    // the merged variables
		"variables":  vars,    // the same as vars
		"pullet":     fleet,   // the version, and who is registered
		"eden":       fleet,   // the same as pullet
		// the value of a macro: {{ macro "banner" "resolver" }}; in expressions macros['banner']('resolver')
		"macro": macro,
		// the macros by name: {{ index macros "banner" }} is {{ macro "banner" }}; in expressions macros['banner']
		"macros": macros,
		// the instances of a service, sorted: {{ range services "db" }}{{ .address }}:{{ .port }} {{ end }}
		"services": services,
		"step":     step,  // what a step returned, once it has run: {{ (step "name").StdOut }}
		"steps":    steps, // what the steps returned: {{ (index steps "name").StdOut }}; in expressions steps['name'].StdOut
		// what a reaction answers: its name, occurrences (also spelled occurences) and data; node, the host that it is about;
		// hosts, those that it is about; time, id, and cause, the runs of reactions that led to it. event.data.KEY fails
		// where there is no such key; in expressions event.data.KEY ?? VALUE does not. pullet eval --event gives one
		"event": event,
		"item":  item, // the item of a step with forEach
	}
}

// ErrNotYet says that a template needs what only a run can tell: the result of a step, or what a command prints.
var ErrNotYet = errors.New("is not known when the catalog is compiled")

// result is what a step returned.
func (s *scope) result(name string) (StepResult, error) {
	if s.results == nil {
		return StepResult{}, fmt.Errorf("what step %q returns %w", name, ErrNotYet)
	}
	r, ok := s.results(name)
	if !ok {
		return r, fmt.Errorf("step %q has not run", name)
	}
	return r, r.withheld(name)
}

// theItem is the item of the forEach that is being expanded.
func (s *scope) theItem() (any, error) {
	if s.item == nil {
		return nil, errors.New(
			"item is known only in a step with forEach, and there not in a variable: {{ with item }} can take its place",
		)
	}
	return s.item, nil
}

// stepsRoot is the root "steps": (index steps "name").StdOut.
type stepsRoot struct{ scope *scope }

// get is what the index of a root is in templates.
func (r stepsRoot) get(name string) (any, error) {
	result, err := r.scope.result(name)
	return r.scope.ownResult(result), err
}

// macrosRoot is the root "macros": index macros "name" is the value of a macro without arguments.
type macrosRoot struct{ scope *scope }

func (r macrosRoot) get(name string) (any, error) { return r.scope.macros.call(r.scope, name, nil) }

// serverVars is the root of the same name: node name -> its facts and labels. It is made once: it may be long.
func (s *scope) serverVars() map[string]any {
	view := s.view()
	view.askAll()
	if s.others != nil {
		return s.others
	}
	s.others = map[string]any{}
	for name, node := range view.Nodes {
		s.others[name] = Input{Node: node, Facts: view.Facts[name]}.server()
	}
	return s.others
}

// shownServer is the root "server" of templates.
func (s *scope) shownServer() any {
	if s.seen.server == nil {
		s.seen.server = foreign(s.server)
	}
	return s.seen.server
}

// shownServers is the root "servervars" of templates.
func (s *scope) shownServers() any {
	if known := s.serverVars(); s.seen.servers == nil {
		s.seen.servers = foreign(known)
	}
	return s.seen.servers
}

// shownVars is the root "vars" of templates.
func (s *scope) shownVars() any {
	if s.keyed {
		return opaqueMap(s.vars)
	}
	return s.vars
}

// plainVars are the variables with plain texts.
func (s *scope) plainVars() map[string]any {
	if s.known == nil {
		s.known, _ = revealed(s.vars).(map[string]any)
	}
	return s.known
}

// expressionVars are the variables as expressions see them: they compute with numbers, but where they choose the items
// of a forEach a number keeps its text.
func (s *scope) expressionVars() map[string]any {
	if s.chooses {
		return s.plainVars()
	}
	if s.computable == nil {
		s.computable, _ = computable(s.plainVars()).(map[string]any)
	}
	return s.computable
}

// missing names the key that a missing one most likely means. No scope knows of none.
func (s *scope) missing(e *execErr) string {
	if m := missingKey.FindStringSubmatch(e.msg); m != nil && s != nil {
		return cmp.Or(s.sealedHint(e.at), s.nearKey(e.at, m[1]))
	}
	return ""
}

// bareName is how a variable or a fact of the node is written whose name stands alone. No scope knows of none.
func (s *scope) bareName(name string) string {
	if s == nil {
		return ""
	}
	if _, ok := s.vars[name]; ok {
		return "it is a variable: write vars." + name
	}
	if _, ok := s.server[name]; ok {
		return "it is a fact: write server." + name
	}
	return ""
}

// nearKey names the key that a missing one most likely means: at is the failing action's text, such as vars.ntp.server.
func (s *scope) nearKey(at, missing string) string {
	parts := strings.Split(at, ".")
	var here any
	switch parts[0] {
	case "vars", "variables":
		here = s.vars
	case "server", "Server":
		here = s.server
	case "event":
		here, _ = s.in.event()
	}
	for _, p := range parts[1:] {
		m, ok := mapOf(here)
		if !ok {
			return ""
		}
		next, ok := m[p]
		if !ok && parts[0] == "event" {
			return DidYouMean(missing, keysOfEvent(m))
		}
		if !ok {
			return DidYouMean(missing, slices.Collect(maps.Keys(m)))
		}
		here = next
	}
	return ""
}
