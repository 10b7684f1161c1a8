package journal

import (
	"slices"
	"strings"
)

// Entry is what the journal says of a step of the run in progress.
type Entry struct {
	Step  string `json:"step"`
	State string `json:"state"` // started, done, failed, booting
}

// Entries are the steps of the run in progress, by name.
func (j *Journal) Entries() []Entry {
	var out []Entry
	for step, line := range j.steps {
		e := Entry{step, "started"}
		switch {
		case line.End && line.OK:
			e.State = "done"
		case line.End:
			e.State = "failed"
		case line.Boot != "":
			e.State = "booting"
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Step, b.Step) })
	return out
}

// DoneForGood are the steps that succeeded and do not run again for the same version and parameters, by name.
func (j *Journal) DoneForGood() []string {
	var out []string
	for step := range j.done {
		out = append(out, step)
	}
	slices.Sort(out)
	return out
}
