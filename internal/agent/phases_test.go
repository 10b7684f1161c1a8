package agent

import (
	"slices"
	"testing"
)

// Phases leave nothing out: each begins where the one before ended. One that goes on is the same.
func TestPhases(t *testing.T) {
	t.Parallel()
	var seen []PhaseName
	p := phases{watch: func(name PhaseName) { seen = append(seen, name) }}
	for _, name := range []PhaseName{PhaseJoin, PhaseFetch, PhaseFetch, PhaseApply, PhaseWait, PhaseApply} {
		p.begin(name)
	}
	all := p.end()
	want := []PhaseName{PhaseJoin, PhaseFetch, PhaseApply, PhaseWait, PhaseApply}
	var got []PhaseName
	for i, phase := range all {
		got = append(got, phase.Name)
		if i > 0 && !phase.Began.Equal(all[i-1].Ended) || phase.Ended.Before(phase.Began) {
			t.Errorf("phase %d (%s) is from %s to %s, behind one that ended at %s",
				i, phase.Name, phase.Began, phase.Ended, all[i-1].Ended)
		}
	}
	if !slices.Equal(got, want) || !slices.Equal(seen, want) {
		t.Errorf("the phases are %v and %v was seen, want %v", got, seen, want)
	}
}
