package agent

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/internal/journal"
	"github.com/pullet/pullet/state"
)

// Leftover is a thing that a job brought to this host and that no job declared any longer in the last run.
type Leftover struct {
	Thing string `json:"thing"` // "file /etc/motd"
	Job   string `json:"job"`   // that brought it
}

// Leftovers are what the last run left on this host, by job.
func Leftovers(c Config) ([]Leftover, error) {
	past, err := journal.Open(c.Paths.State)
	if err != nil {
		return nil, err
	}
	return leftovers(past.Managed(), titles()), past.Close()
}

// titles gives things the names that people see.
func titles() func(id string, t journal.Thing) string {
	specs := apply.ByName(action.All())
	return func(id string, t journal.Thing) string { return specs[t.Absent].Title(id) }
}

func leftovers(m *journal.Managed, title func(string, journal.Thing) string) []Leftover {
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

// Forget keeps leftovers on the host and no longer reports them: those that which says. It returns them. Nothing of the
// host is touched.
func Forget(c Config, which func(Leftover) bool) (forgotten []Leftover, err error) {
	lock, err := state.LockRun(c.Paths.State, runID())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	past, err := journal.Open(c.Paths.State)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, past.Close()) }()
	m, title := past.Managed(), titles()
	for _, l := range leftovers(m, title) {
		if which(l) {
			forgotten = append(forgotten, l)
		}
	}
	maps.DeleteFunc(m.Things, func(id string, t journal.Thing) bool {
		return slices.Contains(forgotten, Leftover{title(id, t), t.Job})
	})
	m.Left = slices.DeleteFunc(m.Left, func(name string) bool {
		return slices.ContainsFunc(forgotten, func(l Leftover) bool { return l.Thing == name })
	})
	return forgotten, past.SaveManaged()
}
