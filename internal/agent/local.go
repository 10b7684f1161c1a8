package agent

import (
	"errors"
	"fmt"
	"maps"

	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/internal/journal"
	"github.com/pullet/pullet/state"
)

// local is what the node knows of itself: its record on disk, and the journal of its runs.
type local struct {
	state.Local
	fleet   *joined // as which the node registered
	dir     string
	journal *journal.Journal
	known   map[string]state.Trouble // as they are on disk
}

// open reads what the node of this name knows of itself.
func (l *local) open(node string) (err error) {
	l.Local, err = loadLocal(l.dir, node)
	l.known = l.Troubles
	return err
}

// ReadLocal reads what the node knows of itself. A record that does not say what it should is a *durable.DamagedError,
// which says what helps.
func (c Config) ReadLocal() (state.Local, error) { return loadLocal(c.Paths.State, c.Node.Name) }

func loadLocal(dir, node string) (state.Local, error) {
	local, err := state.LoadLocal(dir)
	if damaged, is := errors.AsType[*durable.DamagedError](err); is {
		const then = "%w, and tell the fleet that this is a new node: pullet decommission --force %s"
		return local, fmt.Errorf(then, damaged, node)
	}
	return local, err
}

// openJournal reads the journal of its runs. A pull has joined before: the fleet hears of one that is damaged.
func (l *local) openJournal() (err error) {
	l.journal, err = journal.Open(l.dir)
	return err
}

func (l *local) close() error {
	if l.journal == nil {
		return nil
	}
	return l.journal.Close()
}

// belongsTo gives the record to the node of this name. One that has none yet gets its secret.
func (l *local) belongsTo(node string) error {
	l.Rename(node)
	if l.Secret != "" {
		return nil
	}
	l.Secret = randomID() + randomID()
	return l.save()
}

// save writes the record, the last claim included.
func (l *local) save() error {
	if l.dir == "" { // the working directory is nobody's
		return errors.New("the node's record has no directory")
	}
	if p := l.fleet.presence; p != nil {
		l.Store = p.Seen(l.Store)
	}
	return l.Save(l.dir)
}

// saveTroubles keeps what changed in why the node does not follow its repositories.
func (l *local) saveTroubles() error {
	if maps.Equal(l.Troubles, l.known) {
		return nil
	}
	l.known = l.Troubles
	return l.save()
}

// upToDate reports that the node runs the version and its last run was validated.
func (l *local) upToDate(v *state.Version) bool {
	return v.Same(l.Running) && l.Validated && !l.halfway()
}

// slot is the slot that the node holds, as its own disk has it; nil: it holds none. A run of a reaction has that of an
// upgrade in its own.
func (l *local) slot() *state.HeldPlace {
	if at := l.Reacting; at != nil && at.Held != nil {
		return at.Held
	}
	return l.Held
}

// changes reports that the node is about to change to a version, or in the midst of that. One whose upgrade failed is
// not: what is to fix it may run.
func (l *local) changes(v *state.Version) bool {
	return !v.Same(l.Running) && l.Failed != v.ID
}

// halfway reports that half of another version than the one that runs here may be on the host.
func (l *local) halfway() bool {
	_, cutOff := l.journal.Unfinished()
	return l.Failed != "" || l.Upgrading != "" || cutOff != "" && (l.Running == nil || cutOff != l.Running.ID)
}

// staysAtWork remembers that the fleet's record stays as it was in mid-run: the next pull goes on where this one ended.
func (l *local) staysAtWork(v *state.Version, slot *state.HeldPlace) error {
	if l.Held = slot; slot == nil {
		l.Parked = v.Rollout()
	}
	return l.save()
}

// fallback is the version to work on while the node cannot take the fleet's: the one that runs here, or nil while half
// of a newer one may be here.
func (l *local) fallback() *state.Version {
	if l.halfway() {
		return nil
	}
	return l.Running
}
