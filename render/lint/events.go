package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pullet/pullet/render"
)

// eventUse is what the catalogs tell of events, and of the reactions that answer them.
type eventUse struct {
	nodes     map[string]map[string]string // the labels of each
	triggers  map[string]bool              // names of events that triggers raise
	reactions map[string]*render.Reaction
	emits     map[string][]render.Emit // by reaction: what the steps of its jobs raise
}

func newEventUse() eventUse {
	return eventUse{
		map[string]map[string]string{}, map[string]bool{}, map[string]*render.Reaction{}, map[string][]render.Emit{},
	}
}

// learn takes in the catalog of one node.
func (u eventUse) learn(c *render.Catalog) {
	u.nodes[c.Node.Name] = c.Node.Labels
	for _, t := range c.Triggers {
		u.triggers[t.Event] = true
	}
}

// AddReaction learns from the catalog that one node has in a run of a reaction.
func (l *Lint) AddReaction(r *render.Reaction, c *render.Catalog) {
	l.events.reactions[r.Name] = r
	for _, e := range render.Emits(c) {
		known := func(other render.Emit) bool { return other.Pos == e.Pos && other.Event == e.Event }
		if !slices.ContainsFunc(l.events.emits[r.Name], known) {
			l.events.emits[r.Name] = append(l.events.emits[r.Name], e)
		}
	}
	for _, t := range chosen(c) {
		l.target(t)
	}
	l.noteJobs(c)
	for _, e := range slices.Concat(c.Warnings(), ofItself(c), boots(c)) {
		if !render.OfMadeUp(e) {
			l.found = append(l.found, e)
		}
	}
}

// findings are reactions that do more than was meant, most likely.
func (u eventUse) findings() render.ErrorList {
	var out render.ErrorList
	for _, name := range slices.Sorted(maps.Keys(u.reactions)) {
		r := u.reactions[name]
		if hosts := r.Hosts(u.nodes, nil); r.Targets == "" && len(hosts) > 1 && u.ofOneHost(r) {
			e := r.WarningAt("the event of one host starts this on %d hosts: %s", len(hosts), render.SomeHosts(hosts))
			e.Hint = "targets: event is the host of the event; targets: all says that every one is meant"
			out = append(out, e)
		}
	}
	return append(out, u.loops()...)
}

// ofOneHost reports a reaction to events that are about one host: what a host raises about itself, and alerts.
func (u eventUse) ofOneHost(r *render.Reaction) bool {
	for _, of := range []string{"pullet/step/", "pullet/run/", "prometheus/alert/"} {
		if strings.HasPrefix(r.Name, of) || r.Matches(of+"failed") {
			return true
		}
	}
	return slices.ContainsFunc(slices.Collect(maps.Keys(u.triggers)), r.Matches)
}

// loops are reactions whose jobs raise events that lead back to them.
func (u eventUse) loops() render.ErrorList {
	var out render.ErrorList
	told := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(u.reactions)) {
		if told[name] {
			continue
		}
		way := u.wayBack(name)
		if way == nil {
			continue
		}
		var drawn []string
		for _, step := range way {
			told[step.reaction] = true
			drawn = append(drawn, fmt.Sprintf("%s (%s)", step.reaction, u.reactions[step.reaction].Pos))
		}
		last := way[len(way)-1].emit
		e := last.Step.ErrorAt(last.Pos, "reactions start each other: %s -> %s", strings.Join(drawn, " -> "), name)
		e.Severity = render.Warning
		e.Hint = "a reaction is not started by an event that a run of itself led to"
		out = append(out, e)
	}
	return out
}

// loopStep is a reaction on the way, and the event of it that leads on.
type loopStep struct {
	reaction string
	emit     render.Emit
}

// wayBack is the shortest way from a reaction by the events of its jobs to itself; nil where there is none.
func (u eventUse) wayBack(from string) []loopStep {
	type path []loopStep
	seen := map[string]bool{}
	next := []path{{{reaction: from}}}
	for len(next) > 0 {
		way := next[0]
		next = next[1:]
		last := &way[len(way)-1]
		for _, emit := range u.emits[last.reaction] {
			for _, name := range slices.Sorted(maps.Keys(u.reactions)) {
				if !u.reactions[name].Matches(emit.Event) {
					continue
				}
				last.emit = emit
				if name == from {
					return way
				}
				if !seen[name] {
					seen[name] = true
					next = append(next, append(slices.Clone(way), loopStep{reaction: name}))
				}
			}
		}
	}
	return nil
}
