package agent

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/state"
)

// Leftover is a thing that a job brought to this host and that no job declared any longer in the last run.
type Leftover struct {
	Thing string `json:"thing"` // "file /etc/motd"
	Job   string `json:"job"`   // that brought it
}

// Leftovers are what the last run left on this host, by job.
func Leftovers(c Config) ([]Leftover, error) {
	journal, err := state.OpenJournal(c.Paths.State)
	if err != nil {
		return nil, err
	}
	return leftovers(journal.Managed()), journal.Close()
}

func leftovers(m *state.Managed) []Leftover {
	out := []Leftover{}
	for id, t := range m.Things {
		if name := title(id, t); slices.Contains(m.Left, name) {
			out = append(out, Leftover{name, t.Job})
		}
	}
	slices.SortFunc(
		out,
		func(a, b Leftover) int { return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Thing, b.Thing)) },
	)
	return out
}

// title is the name that people see of a thing.
func title(id string, t state.Thing) string {
	for _, spec := range action.All() {
		if spec.Name == t.Absent {
			return spec.Title(id)
		}
	}
	return id
}

// Forget keeps leftovers on the host and no longer reports them: those that which says. It returns them. Nothing of the
// host is touched.
func Forget(c Config, which func(Leftover) bool) (forgotten []Leftover, err error) {
	lock, err := state.LockRun(c.Paths.State, runID())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	journal, err := state.OpenJournal(c.Paths.State)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	m := journal.Managed()
	for _, l := range leftovers(m) {
		if which(l) {
			forgotten = append(forgotten, l)
		}
	}
	maps.DeleteFunc(m.Things, func(id string, t state.Thing) bool {
		return slices.Contains(forgotten, Leftover{title(id, t), t.Job})
	})
	m.Left = slices.DeleteFunc(m.Left, func(name string) bool {
		return slices.ContainsFunc(forgotten, func(l Leftover) bool { return l.Thing == name })
	})
	return forgotten, journal.SaveManaged()
}
