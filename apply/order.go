package apply

import (
	"slices"
	"strings"

	"github.com/pullet/pullet/render"
)

// order sorts steps so that each comes after what it requires or reads, and otherwise as they stand in the files. It returns the loop
// instead when steps require each other.
func order(steps []*boundStep) (sorted, loop []*boundStep) {
	done := map[*boundStep]bool{}
	var path []*boundStep
	var visit func(s *boundStep) bool
	visit = func(s *boundStep) bool {
		if i := slices.Index(path, s); i >= 0 {
			loop = append(slices.Clone(path[i:]), s)
			return false
		}
		if done[s] {
			return true
		}
		path = append(path, s)
		for _, r := range slices.Concat(s.requires, s.reads) {
			if !visit(r) {
				return false
			}
		}
		path, done[s] = path[:len(path)-1], true
		sorted = append(sorted, s)
		return true
	}
	for _, s := range steps {
		if !visit(s) {
			return nil, loop
		}
	}
	return sorted, nil
}

// cycleError shows a loop of requirements with the place of each step.
func cycleError(loop []*boundStep) *render.Error {
	parts := make([]string, len(loop))
	for i, s := range loop {
		parts[i] = s.ID() + " (" + s.Pos.String() + ")"
	}
	return loop[0].ErrorAt(loop[0].Pos, "these steps require each other: %s", strings.Join(parts, " -> "))
}
