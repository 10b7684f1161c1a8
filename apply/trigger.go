package apply

import (
	"fmt"
	"slices"
)

// triggeredBy is what the step reacts to, in words.
func (s *running) triggeredBy() string {
	switch s.step.why {
	case "prune":
		return "something that it watches was removed"
	case "restore":
		return "something that it watches was put back"
	}
	seen := slices.Concat(s.step.needs["watch"], s.step.needs["watch_any"], s.step.needs["listen"])
	changed := slices.DeleteFunc(seen, func(t *boundStep) bool {
		return s.x.outcome(t) != Changed
	})
	if len(changed) == 0 {
		return "something that it watches changed before"
	}
	most := min(len(changed), 3)
	more := ""
	if n := len(changed) - most; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return names(changed[:most]) + more + " changed"
}
