// Package lint finds what compiles and is most likely not what was meant: pullet validate warns of it.
package lint

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pullet/pullet/render"
)

// Lint finds what compiles and is most likely not what was meant. It learns from the catalogs of a repository's nodes,
// one after another, and keeps little of them.
type Lint struct {
	repo      *render.Repository
	inventory bool
	targets   map[render.Position]*render.TargetUse
	keys      map[string]keyUse
	capitals  map[string]*render.Error // by what they say
	vars      keyTree
	macros    keyTree
	server    keyTree
	services  serviceUse
	first     *firstRollout
	events    eventUse
	jinja     jinjaUse
	unopened  bool // some variables are not known
	found     render.ErrorList
}

// New is an empty Lint of the repository.
func New(r *render.Repository) *Lint {
	return &Lint{
		repo: r, targets: map[render.Position]*render.TargetUse{},
		keys: map[string]keyUse{}, capitals: map[string]*render.Error{},
		vars: keyTree{}, macros: keyTree{}, server: keyTree{},
		services: serviceUse{offered: map[string]bool{}, waits: map[string]*render.Error{}, names: map[string]string{}},
		first:    newFirstRollout(),
		events:   newEventUse(),
		jinja:    jinjaUse{},
	}
}

// Add learns from the catalog of one node.
func (l *Lint) Add(c *render.Catalog) {
	l.inventory = l.inventory || len(c.Inventory) > 0
	for _, t := range c.Targets() {
		l.target(t)
	}
	for _, t := range chosen(c) {
		l.target(t)
	}
	l.vars.unite(c.Vars)
	l.unopened = l.unopened || len(c.Secrets().Unopened()) > 0
	l.server.uniteServer(c.FactNames())
	l.services.learn(c)
	l.first.learn(c)
	for _, name := range c.MacroNames() {
		l.macros[name] = nil
	}
	l.events.learn(c)
	l.jinja.learn(c)
	for _, t := range c.Triggers {
		l.noteExpression(t.Expression)
	}
	l.noteJobs(c)
	l.found = slices.Concat(l.found, untargeted(c), c.Warnings(), ofItself(c), boots(c))
}

// noteJobs notes the conditions of a catalog's jobs and steps.
func (l *Lint) noteJobs(c *render.Catalog) {
	for _, j := range c.Jobs {
		l.noteConditions(j.Conditions)
		for _, s := range j.Steps {
			l.noteConditions(s.Conditions)
		}
	}
}

func (l *Lint) target(t render.TargetUse) {
	if known := l.targets[t.Pos]; known != nil {
		known.Matched = known.Matched || t.Matched
		return
	}
	l.targets[t.Pos] = &t
}

// chosen are the steps that a few nodes take for all, and whether this one may be one of them.
func chosen(c *render.Catalog) []render.TargetUse {
	var out []render.TargetUse
	for _, j := range c.Jobs {
		for _, s := range j.Steps {
			if t := s.Options.Target; t != nil && t.Hosts.Text != "" {
				yes := t.Hosts.Matches(c.Node.Name, c.Node.Labels)
				out = append(out, render.TargetUse{
					Pos: s.Pos, Text: t.Hosts.Text, Matched: yes,
					Hint: "nobody that has the step takes it, and who reads its result waits for ever",
				})
			}
		}
	}
	return out
}

// untargeted warns of a node of the inventory that no target gives a job.
func untargeted(c *render.Catalog) render.ErrorList {
	if _, listed := c.Inventory[c.Node.Name]; !listed || !c.Untargeted() {
		return nil
	}
	return render.ErrorList{{
		Pos:      render.Position{File: "base/jobs.yaml"},
		Severity: render.Warning,
		Message: fmt.Sprintf(
			"no target there or in base/services.yaml matches the node %s: nothing is applied there",
			c.Node.Name,
		),
		Hint: "fix its labels below nodes/, or give it a job, or an empty list",
	}}
}

func (l *Lint) noteConditions(c render.Conditions) {
	for _, one := range c.All() {
		l.noteExpression(one.Expression)
	}
}

func (l *Lint) noteExpression(e render.Expression) {
	for _, bad := range inCapitals(e) {
		l.capitals[bad.Error()] = bad
	}
	for _, ref := range e.Keys() {
		l.keys[fmt.Sprint(e.Pos().String(), e.Text, ref)] = keyUse{e, ref}
	}
}

// Findings is all that was found. What can be said only when every node was added is left out unless complete is true.
func (l *Lint) Findings(complete bool) render.ErrorList {
	out := slices.Concat(l.found, strays(l.repo), signers(l.repo), encrypted(l.repo), unseenExtensions(l.repo))
	for _, f := range l.repo.Texts() {
		out = append(out, f.SecretsInClear()...)
	}
	out = slices.AppendSeq(out, maps.Values(l.capitals))
	out = append(out, l.jinja.findings(l.repo)...)
	if complete {
		out = append(out, l.unknownKeys()...)
		out = append(out, l.idleTargets()...)
		out = append(out, l.unoffered()...)
		if !l.services.unknown {
			out = append(out, l.first.findings()...)
		}
		out = append(out, l.events.findings()...)
		out = append(out, unused(l.repo)...)
		out = append(out, unusedExtensions(l.repo)...)
	}
	return out.Sorted()
}

// idleTargets are the targets that no node of the inventory matches.
func (l *Lint) idleTargets() render.ErrorList {
	var out render.ErrorList
	for _, t := range l.targets {
		if l.inventory && !t.Matched {
			e := l.repo.WarningAt(t.Pos, "no node of the inventory matches the target %q", t.Text)
			e.Hint = t.Hint
			out = append(out, e)
		}
	}
	return out
}
