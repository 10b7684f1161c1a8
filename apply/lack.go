package apply

import (
	"slices"
	"strings"
)

// LackError says that a file or directory is not there which an action needs and does not make itself.
type LackError struct {
	Path string // of what is not there
	Text string // what to do about it
}

func (e *LackError) Error() string { return e.Text }

// lacks reports that what a change needs is not there, and that no step before this one makes it: the run would end
// with the same words.
func (s *running) lacks(change Change) bool {
	if change.Lacks == nil {
		return false
	}
	before := s.step.allBefore()
	return !slices.ContainsFunc(s.x.program.steps, func(t *boundStep) bool {
		return t != s.step && t.mayMake(s.x.options.Host, change.Lacks.Path) && s.comesFirst(t, before)
	})
}

// allBefore are the steps that end before this one starts.
func (s *boundStep) allBefore() map[*boundStep]bool {
	seen := map[*boundStep]bool{}
	var visit func(t *boundStep)
	visit = func(t *boundStep) {
		for _, e := range t.after {
			if !seen[e.step] {
				seen[e.step] = true
				visit(e.step)
			}
		}
	}
	visit(s)
	return seen
}

// comesFirst reports a step that would have changed the host before this one starts, or may have: of steps that nothing
// keeps in an order either can be the first.
func (s *running) comesFirst(t *boundStep, before map[*boundStep]bool) bool {
	lane := s.step.ordering() == oneByOne && t.ordering() == oneByOne
	if before[t] || lane {
		r := s.x.of(t.ID())
		return r != nil && (r.Outcome == Changed || r.Outcome == Pending)
	}
	return !t.allBefore()[s.step]
}

// mayMake reports a step that may make a file or directory: one that manages it, or something below it; or one that can
// make anything, such as a command or a package.
func (s *boundStep) mayMake(h *Host, path string) bool {
	if s.Waits() || s.late {
		return true
	}
	if s.spec.NoFiles {
		return false
	}
	manager, ok := s.act.(Manager)
	if !ok {
		return !s.spec.Passive
	}
	want, err := h.Resolve(path)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(manager.Manages(), func(r Resource) bool {
		if r.Path == "" && r.Fills == "" {
			return true
		}
		at, err := h.Resolve(r.Path + r.Fills)
		return err != nil || within(at, want) || r.Fills != "" && within(want, at)
	})
}

// within reports a path that is another, or lies below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
