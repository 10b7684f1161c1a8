package apply

import (
	"testing"

	"github.com/pullet/pullet/render"
)

// TestRoom: whether a step may run now, by its ordering, what runs, and what it is: one that starts, goes on, starts
// together with others, or belongs to the group that waits.
func TestRoom(t *testing.T) {
	step := func(mode string) *boundStep {
		s := &boundStep{Step: &render.Step{}}
		s.Options.Ordering = mode
		return s
	}
	starts := func(mode string) *turn { return &turn{step: step(mode)} }
	goesOn := func(mode string) *turn { return &turn{step: step(mode), goOn: make(chan struct{})} }
	rests := func(mode string) *turn { return &turn{step: step(mode), rest: func() {}} }
	together := func(mode string) *turn { return &turn{step: step(mode), batch: &batch{}} }
	for name, c := range map[string]struct {
		turn   *turn
		lane   bool
		others int
		want   bool
	}{
		"the first of its file":                   {starts(""), false, 0, true},
		"another of a file runs":                  {starts(""), true, 0, false},
		"one of a file goes on, and another runs": {goesOn(oneByOne), true, 0, false},
		"one of a file goes on":                   {goesOn(oneByOne), false, atMostAtOnce, true},
		"the rest of one, and another runs":       {rests(oneByOne), true, 0, false},
		"beside those of files":                   {starts(atOnce), true, atMostAtOnce - 1, true},
		"as many as there may be":                 {starts(atOnce), false, atMostAtOnce, false},
		"the same, by what it needs":              {starts(implied), false, atMostAtOnce, false},
		"it goes on beside as many":               {goesOn(atOnce), false, atMostAtOnce, true},
		"its rest beside as many":                 {rests(implied), false, atMostAtOnce + 1, true},
		"with others beside as many":              {together(implied), false, atMostAtOnce, true},
	} {
		s := &schedule{lane: c.lane, others: c.others}
		if got := s.room(c.turn); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if started := c.turn.goOn != nil || c.turn.rest != nil; c.turn.started() != started {
			t.Errorf("%s: started %v", name, !started)
		}
		s.occupy(c.turn.step, 1)
		if inFile := c.turn.step.ordering() == oneByOne; s.lane != (c.lane || inFile) || (s.others != c.others) == inFile {
			t.Errorf("%s takes %v and %d", name, s.lane, s.others)
		}
		s.occupy(c.turn.step, -1)
		if inFile := c.turn.step.ordering() == oneByOne; s.others != c.others || inFile && s.lane {
			t.Errorf("%s leaves %v and %d", name, s.lane, s.others)
		}
	}
}
