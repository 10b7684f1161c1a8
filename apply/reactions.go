package apply

import (
	"maps"
	"slices"
)

// A step that watches another is owed a reaction from the moment the other changed until it has reacted, whatever
// happens in between: it fails, waits for something else, or the run is killed.

// watch tells each step who reacts to its change.
func (p *Program) watch() {
	for _, s := range p.steps {
		for _, t := range s.reactsTo() {
			t.watchers = append(t.watchers, s.ID())
		}
	}
}

// reactsTo are the steps whose changes this one reacts to.
func (s *boundStep) reactsTo() []*boundStep {
	if _, can := s.act.(Reactor); !can {
		return s.needs["onchanges"]
	}
	return slices.Concat(s.needs["watch"], s.needs["watch_any"], s.needs["listen"], s.needs["onchanges"])
}

// inherit takes over what a run that was cut off did not come to note: what it made, and what the steps are owed, which
// watch those that it started and may not have seen what these changed.
func (x *execution) inherit(resumes bool) error {
	m := x.options.Journal.Managed()
	due := map[string]bool{}
	for _, s := range x.program.steps {
		if x.unseen(s.ID(), resumes) {
			for _, w := range s.watchers {
				due[w] = true
			}
		}
	}
	for id, t := range m.Things {
		for _, w := range t.Watchers {
			if s := x.program.byID[w]; s != nil && !resumes && x.unseen(t.Job+"/"+pruning+x.program.title(id, t), resumes) {
				due[s.reaction("prune").ID()] = true
			}
		}
	}
	for _, step := range m.Owed {
		due[step] = true
	}
	m.Owed = slices.Sorted(maps.Keys(due))
	for id, t := range x.options.Journal.Made() {
		if resumes {
			break // the run that goes on has it in its steps' results
		}
		if known, ok := m.Things[id]; ok {
			t = known
		}
		m.Things[id], m.Digest = t, ""
	}
	return x.options.Journal.SaveManaged()
}

// unseen reports that a step of the run before may have changed something that those who watch it have not seen. The
// run that goes on knows of its own changes.
func (x *execution) unseen(step string, resumes bool) bool {
	var r StepReport
	return x.options.Journal.CutOff(step) || !resumes && x.options.Journal.Ended(step, &r) && r.Outcome == Changed
}

// reactionDue reports that the step has not answered a change of an earlier run.
func (x *execution) reactionDue(s *boundStep) bool {
	return slices.Contains(x.options.Journal.Managed().Owed, s.ID())
}

// dueReactions are the steps that have not answered a change, after this run.
func (x *execution) dueReactions() []string {
	var out []string
	for _, s := range x.program.steps {
		if s.job.Validation {
			continue
		}
		due := x.anyChanged(s.reactsTo()) || x.reactionDue(s)
		if due && !x.answeredTo(s) || x.open(s.reaction("restore")) {
			out = append(out, s.ID())
		}
		if removed := s.reaction("prune"); x.open(removed) { // of what nobody declares nobody watches
			out = append(out, removed.ID())
		}
	}
	slices.Sort(out)
	return out
}

// open reports a reaction that is due and did not succeed.
func (x *execution) open(reaction *boundStep) bool {
	r := x.of(reaction.ID())
	return (x.due[reaction.ID()] || x.reactionDue(reaction)) && (r == nil || r.Outcome != Changed && r.Outcome != OK)
}

// answeredTo reports that a step answered in this run what it watches.
func (x *execution) answeredTo(s *boundStep) bool {
	for _, id := range []string{s.ID(), s.reaction("listen").ID()} {
		r := x.of(id)
		if r != nil && (r.Outcome == Changed || r.Outcome == OK && (r.Reacted || len(s.needs["onchanges"]) > 0)) {
			return true
		}
	}
	return false
}
