package render

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v4"
)

// Lint finds what compiles and is most likely not what was meant. It learns from the catalogs of a repository's nodes, one after another,
// and keeps little of them.
type Lint struct {
	repo      *Repository
	inventory bool
	targets   map[Position]*targetUse
	keys      map[string]keyUse
	capitals  map[string]*Error // by what they say
	vars      keyTree
	macros    keyTree
	server    keyTree
	services  serviceUse
	first     *firstRollout
	found     ErrorList
}

// Lint is an empty Lint of the repository.
func (r *Repository) Lint() *Lint {
	return &Lint{repo: r, targets: map[Position]*targetUse{}, keys: map[string]keyUse{}, capitals: map[string]*Error{}, vars: keyTree{}, macros: keyTree{}, server: keyTree{},
		services: serviceUse{offered: map[string]bool{}, waits: map[string]*Error{}, names: map[string]string{}},
		first:    newFirstRollout()}
}

// Add learns from the catalog of one node.
func (l *Lint) Add(c *Catalog) {
	l.inventory = l.inventory || len(c.Inventory) > 0
	for _, t := range c.targets {
		l.target(t)
	}
	for _, t := range c.chosen() {
		l.target(t)
	}
	l.vars.unite(c.Vars)
	l.server.uniteServer(c.scope.server)
	l.services.note(c)
	l.first.note(c)
	for name := range c.scope.macros.all {
		l.macros[name] = nil
	}
	for _, j := range c.Jobs {
		l.noteConditions(j.Conditions)
		for _, s := range j.Steps {
			l.noteConditions(s.Conditions)
		}
	}
	l.found = append(l.found, c.duplicatePaths()...)
	l.found = append(l.found, c.halfChanged()...)
	l.found = append(l.found, c.unquoted()...)
	l.found = append(l.found, c.ofItself()...)
	l.found = append(l.found, c.boots()...)
	l.found = append(l.found, c.warned...)
	l.found = append(l.found, c.brokenMacros()...)
}

func (l *Lint) target(t targetUse) {
	if known := l.targets[t.pos]; known != nil {
		known.matched = known.matched || t.matched
		return
	}
	l.targets[t.pos] = &t
}

// chosen are the steps that a few nodes take for all, and whether this one may be one of them.
func (c *Catalog) chosen() []targetUse {
	var out []targetUse
	for _, j := range c.Jobs {
		for _, s := range j.Steps {
			if t := s.Options.Target; t != nil && t.Hosts.Text != "" {
				yes := t.Hosts.Matches(c.Node.Name, c.Node.Labels)
				out = append(out, targetUse{s.Pos, t.Hosts.Text, yes, "nobody that has the step takes it, and who reads its result waits for ever"})
			}
		}
	}
	return out
}

func (l *Lint) noteConditions(c Conditions) {
	for _, one := range c.all() {
		for _, bad := range inCapitals(one.Expression) {
			l.capitals[bad.Error()] = bad
		}
		for _, ref := range one.Expression.keys {
			use := keyUse{one.Expression, ref}
			at := one.Expression.doc.pos(one.Expression.node).String()
			l.keys[fmt.Sprint(at, one.Expression.Text, ref)] = use
		}
	}
}

// Findings is all that was found. What can be said only when every node was added is left out unless complete is true.
func (l *Lint) Findings(complete bool) ErrorList {
	out := slices.Concat(l.found, l.repo.secrets(), l.repo.strays())
	out = slices.AppendSeq(out, maps.Values(l.capitals))
	if complete {
		out = append(out, l.unknownKeys()...)
		out = append(out, l.idleTargets()...)
		out = append(out, l.unoffered()...)
		if !l.services.unknown {
			out = append(out, l.first.findings()...)
		}
		out = append(out, l.repo.unused()...)
		out = append(out, l.repo.unusedExtensions()...)
	}
	return out.sorted()
}

// targetUse is a target of a base file, and whether a node matched it.
type targetUse struct {
	pos     Position
	text    string
	matched bool
	hint    string // what follows where nobody does
}

// matches asks a target about the node, and remembers the answer.
func (c *compiler) matches(base *document, key *yaml.Node, t Target) bool {
	yes := t.Matches(c.scope.in.Node.Name, c.scope.in.Node.Labels)
	c.targets = append(c.targets, targetUse{base.pos(key), key.Value, yes, "nobody gets what stands below it"})
	return yes
}

// idleTargets are the targets that no node of the inventory matches.
func (l *Lint) idleTargets() ErrorList {
	var out ErrorList
	for _, t := range l.targets {
		if l.inventory && !t.matched {
			e := l.repo.byPath[t.pos.File].errorAt(t.pos, "no node of the inventory matches the target %q", t.text)
			e.Severity, e.Hint = Warning, t.hint
			out = append(out, e)
		}
	}
	return out
}

// duplicatePaths are the files that two steps own: each would undo what the other does, at every pull.
func (c *Catalog) duplicatePaths() ErrorList {
	var out ErrorList
	owners := map[string]*Step{}
	for _, j := range c.Jobs {
		for _, s := range j.Steps {
			name := ownedPath(s)
			first := owners[name]
			switch {
			case name == "" || first != nil && sameDirectory(first, s):
			case first == nil:
				owners[name] = s
			default:
				out = append(out, c.twoOwners(name, first, s))
			}
		}
	}
	return out
}

// ownedPath is the file that a step manages as a whole; "" where it manages none, or where its name is known only when the step runs. A
// step that fills a directory shares it.
func ownedPath(s *Step) string {
	if recurse := s.Params.Text("recurse"); s.Action == "file.managed" && recurse != "" && recurse != "false" {
		return ""
	}
	switch s.Action {
	case "file.managed", "file.directory", "file.symlink", "file.absent":
		name := s.Params.Text("name")
		if path.IsAbs(name) && !waits(name) {
			return path.Clean(name)
		}
	}
	return ""
}

func sameDirectory(a, b *Step) bool {
	return a.Action == "file.directory" && b.Action == a.Action && reflect.DeepEqual(a.Params.Value(), b.Params.Value())
}

// twoOwners is an error, but a warning where conditions may keep the steps apart.
func (c *Catalog) twoOwners(name string, first, second *Step) *Error {
	at := func(s *Step) Position { return s.Params.Position("name", s.Pos) }
	e := second.ErrorAt(at(second), "%s belongs to two steps: %s (%s) and %s", name, first.ID(), at(first), second.ID())
	e.Hint = "keep one of them"
	if c.conditional(first) || c.conditional(second) {
		e.Severity, e.Hint = Warning, "their conditions must exclude each other"
	}
	return e
}

// conditional reports that a step may not run.
func (c *Catalog) conditional(s *Step) bool {
	for _, j := range c.Jobs {
		if j.Name == s.Job && j.Conditions.When != nil {
			return true
		}
	}
	return s.Conditions.When != nil
}
