package apply

import "slices"

// A step that watches another is owed a reaction from the moment the other changed until it has reacted, whatever happens in between: it
// fails, waits for something else, or the run is killed.

// watchers are, for each step, those that react to its change.
func (x *execution) watchers() map[string][]string {
	out := map[string][]string{}
	for _, s := range x.steps {
		for _, t := range s.reactsTo() {
			out[t.ID()] = append(out[t.ID()], s.ID())
		}
	}
	return out
}

// reactsTo are the steps whose changes this one reacts to.
func (s *boundStep) reactsTo() []*boundStep {
	if _, can := s.act.(Reactor); !can {
		return s.needs["onchanges"]
	}
	return slices.Concat(s.needs["watch"], s.needs["watch_any"], s.needs["listen"], s.needs["onchanges"])
}

// inherit notes what the steps are owed after a run that was cut off: those that it started may have changed something, and those that
// watch them may not have seen it.
func (x *execution) inherit(resumes bool) error {
	m := x.Journal.Managed()
	before := len(m.Owed)
	watchers := x.watchers()
	for _, s := range x.steps {
		var r StepReport
		ended := x.Journal.Ended(s.ID(), &r)
		if !x.Journal.CutOff(s.ID()) && (!ended || resumes || r.Outcome != Changed) {
			continue // the run that goes on knows of its own changes
		}
		for _, w := range watchers[s.ID()] {
			if !slices.Contains(m.Owed, w) {
				m.Owed = append(m.Owed, w)
			}
		}
	}
	if len(m.Owed) == before {
		return nil
	}
	slices.Sort(m.Owed)
	return x.Journal.SaveManaged()
}

// owed reports that the step has not answered a change of an earlier run.
func (x *execution) owed(s *boundStep) bool { return slices.Contains(x.Journal.Managed().Owed, s.ID()) }

// owes are the steps that have not answered a change, after this run.
func (x *execution) owes() []string {
	var out []string
	for _, s := range x.steps {
		due := x.anyChanged(s.reactsTo()) || x.owed(s)
		if due && !s.job.Validation && !x.answeredTo(s) {
			out = append(out, s.ID())
		}
	}
	slices.Sort(out)
	return out
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
