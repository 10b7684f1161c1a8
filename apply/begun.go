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
func (e *entry) tellBegin(change Change) {
	e.s.x.mu.Lock()
	defer e.s.x.mu.Unlock()
	if e.s.x.options.Begin == nil {
		return
	}
	doing := change.Summary
	if e.s.step.Sensitive || e.s.x.program.catalog.Secrets().Quoted(doing) {
		doing = "(sensitive: not shown)"
	}
	title := (&StepReport{Job: e.s.step.Job, Step: e.s.step.Name, Item: e.s.step.ItemName()}).Title()
	total := len(e.s.x.program.steps)
	e.s.x.options.Begin(Begun{e.s.step.ID(), title, e.s.step.Pos, doing, min(len(e.s.x.report.Steps)+1, total), total})
}
