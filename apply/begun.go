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
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	if s.x.options.Begin == nil {
		return
	}
	doing := change.Summary
	if s.step.Sensitive {
		doing = "(sensitive: not shown)"
	}
	title := (&StepReport{Job: s.step.Job, Step: s.step.Name, Item: s.step.ItemName()}).Title()
	total := len(s.x.program.steps)
	s.x.options.Begin(Begun{s.step.ID(), title, s.step.Pos, doing, min(len(s.x.report.Steps)+1, total), total})
}
