package apply

import (
	"testing"

	"github.com/pullet/pullet/internal/journal"
	"github.com/pullet/pullet/render"
)

// TestStanding: what becomes of a step that one node takes for all, from what the fleet has on record and what the node
// still knows.
func TestStanding(t *testing.T) {
	result := func(word, of string) Record {
		return Record{Attempt: of, Of: of, Fresh: true, Result: render.StepResult{Result: word}}
	}
	began, ended := journal.Attempt{ID: "1", Began: true}, journal.Attempt{ID: "1"}
	for name, c := range map[string]struct {
		fleet Record
		known journal.Attempt
		done  bool
		want  Standing
	}{
		"never started":                                {Record{}, journal.Attempt{}, false, StandsOpen},
		"started, and killed before it began":          {Record{Attempt: "1"}, ended, false, StandsOpen},
		"killed before the fleet was told":             {Record{}, ended, false, StandsOpen},
		"killed in the middle":                         {Record{Attempt: "1"}, began, false, StandsUnknown},
		"killed in the middle, the store is older":     {Record{}, began, false, StandsUnknown},
		"the journal is lost":                          {Record{Attempt: "1"}, journal.Attempt{}, false, StandsUnknown},
		"done, not told yet":                           {Record{Attempt: "1"}, journal.Attempt{}, true, Stands},
		"done, and the journal is lost":                {result("ok", "1"), journal.Attempt{}, false, Stands},
		"done, and the disk is reverted to its middle": {result("ok", "1"), began, false, Stands},
		"failed, and told":                             {result("failed", "1"), ended, false, StandsOpen},
		"failed, and the journal is lost":              {result("failed", "1"), journal.Attempt{}, false, StandsOpen},
		"failed, not told yet":                         {Record{Attempt: "1"}, ended, false, StandsOpen},
		"failed, tried again, and the journal is lost": {Record{Attempt: "2", Of: "1", Fresh: true, Result: render.StepResult{Result: "failed"}}, journal.Attempt{}, false, StandsUnknown},
		"failed, tried again, the disk is reverted":    {Record{Attempt: "2", Of: "1", Fresh: true, Result: render.StepResult{Result: "failed"}}, ended, false, StandsUnknown},
		"others gave it up":                            {result(unknown, ""), journal.Attempt{}, false, StandsOpen},
		"others gave it up in its middle":              {Record{Attempt: "1", Fresh: true, Result: render.StepResult{Result: unknown}}, began, false, StandsUnknown},
		"others gave it up, the journal is lost":       {Record{Attempt: "1", Fresh: true, Result: render.StepResult{Result: unknown}}, journal.Attempt{}, false, StandsUnknown},
		"others gave it up, and it had failed":         {Record{Attempt: "1", Fresh: true, Result: render.StepResult{Result: unknown}}, ended, false, StandsOpen},
		"unknown to itself":                            {result(unknown, "1"), journal.Attempt{}, false, StandsUnknown},
		"too old":                                      {Record{Attempt: "1", Of: "1", Result: render.StepResult{Result: "ok"}}, journal.Attempt{}, false, StandsOpen},
		"too old, and killed when it was made anew":    {Record{Attempt: "2", Of: "1", Result: render.StepResult{Result: "ok"}}, journal.Attempt{}, false, StandsUnknown},
	} {
		if got := c.fleet.Standing(c.known, c.done, false); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		want := StandsOpen
		if c.want == Stands {
			want = Stands
		}
		if got := c.fleet.Standing(c.known, c.done, true); got != want {
			t.Errorf("%s, and it may run twice: %s, want %s", name, got, want)
		}
	}
}
