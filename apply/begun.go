package apply

import (
	"fmt"

	"github.com/pullet/pullet/render"
)

// Begun is a step that begins to change the host.
type Begun struct {
	ID     string // "job/step"
	Title  string // for people: with the item of its forEach
	Pos    render.Position
	Doing  string // what it does, in a few words
	Number int    // among the steps of the run, by the order in which they begin and end
	Total  int    // the steps of the run
}

// Place is the step's place in the run, for people.
func (b Begun) Place() string { return fmt.Sprintf("step %d of %d", b.Number, b.Total) }

// tellBegin lets whoever watches the run see that the step begins.
func (s *running) tellBegin(change Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Begin == nil {
		return
	}
	doing := change.Summary
	if s.Sensitive {
		doing = "(sensitive: not shown)"
	}
	title := (&StepReport{Job: s.Job, Step: s.Name, Item: s.ItemName()}).Title()
	s.Begin(Begun{s.ID(), title, s.Pos, doing, min(len(s.report.Steps)+1, len(s.steps)), len(s.steps)})
}
