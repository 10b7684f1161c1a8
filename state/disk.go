package state

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pullet/pullet/internal/durable"
)

// Local is what a node knows of itself without its fleet.
type Local struct {
	Name        string      `json:"name,omitempty"`       // under which it pulled last
	Running     *Version    `json:"running,omitempty"`    // what was applied and validated last
	Validated   bool        `json:"validated"`            // false: the last run of Running failed somewhere
	Upgrading   string      `json:"upgrading,omitempty"`  // the version of which half may be on the host
	Failed      string      `json:"failed,omitempty"`     // the version whose upgrade failed last
	Failures    int         `json:"failures,omitempty"`   // in a row, of that version
	RolledBack  *RolledBack `json:"rolledBack,omitempty"` // the rollout whose files were put back here last
	LastFailure time.Time   `json:"lastFailure,omitzero"`
	Untold      *Untold     `json:"untold,omitempty"` // a failure of an upgrade that the fleet may not know of
	// the rollout in which the fleet knows that it runs the version
	Through string `json:"through,omitempty"`
	// the rollout in which it waits for others in mid-run, without a slot
	Parked string            `json:"parked,omitempty"`
	Queued string            `json:"queued,omitempty"` // the rollout in whose queue it had Place
	Place  int64             `json:"place,omitempty"`
	Held   *HeldPlace        `json:"held,omitempty"`   // the slot under which Upgrading began
	Store  Origin            `json:"store,omitzero"`   // the fleet's record as it was seen last
	Labels map[string]string `json:"labels,omitempty"` // as the inventory gave them last
	Frozen *Freeze           `json:"frozen,omitempty"` // the switch that stops all of its changes
	// repository -> why it is not followed; "" is the fleet's version
	Troubles map[string]Trouble `json:"troubles,omitempty"`
	// the services that it announced because base/services.yaml says so
	Offers   []string        `json:"offers,omitempty"`
	LastPull time.Time       `json:"lastPull,omitzero"`
	PullBoot string          `json:"pullBoot,omitempty"` // the boot of the last pull
	PullUp   time.Duration   `json:"pullUp,omitempty"`   // and the time since that
	Gaps     []time.Duration `json:"gaps,omitempty"`     // between its last pulls, the newest last
	Commands Begun           `json:"commands,omitzero"`  // signed ones that it began with
	Reacting *Reacting       `json:"reacting,omitempty"` // the run of a reaction that it is at
	Reacted  []EndedReaction `json:"reacted,omitempty"`  // runs of reactions that it ended, the newest last
	Secret   string          `json:"secret"`             // proves to the fleet that this is the same state directory
}

// Reacting is a run of a reaction that a node began with. The fleet's record could be made to say something else.
type Reacting struct {
	Run     ReactionRun    `json:"run"`
	Version *Version       `json:"version"` // whose jobs it runs
	Result  ReactionResult `json:"result"`
	Held    *HeldPlace     `json:"held,omitempty"` // nil: it waits for others in mid-run, without a place
	Untold  *Untold        `json:"untold,omitempty"`
}

// EndedReaction is how a run of a reaction ended on a node. By a record that was restored it may not be over: the node
// does not begin it again.
type EndedReaction struct {
	Run    string `json:"run"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// keptReacted is how many runs a node remembers that it ended.
const keptReacted = 256

// Ends remembers how a run of a reaction ended.
func (l *Local) Ends(r EndedReaction) {
	if l.Ended(r.Run).Run == "" {
		l.Reacted = append(l.Reacted, r)
	}
	l.Reacted = l.Reacted[max(0, len(l.Reacted)-keptReacted):]
}

// Ended returns how a run of a reaction ended here; nothing where the node knows of no end.
func (l *Local) Ended(run string) (r EndedReaction) {
	if at := slices.IndexFunc(l.Reacted, func(r EndedReaction) bool { return r.Run == run }); at >= 0 {
		r = l.Reacted[at]
	}
	return r
}

// Untold is a failure that the fleet may not know of: the node was killed since, or etcd did not answer. The node does
// not give its slot to others before it has told of it.
type Untold struct {
	Rollout   string `json:"rollout"` // or the run of a reaction
	Reason    string `json:"reason"`
	Unsettled string `json:"unsettled,omitempty"` // the targeted step because of whose unknown result it failed
	Host      bool   `json:"host,omitempty"`      // a fault of the host
}

// RolledBack is what a node knows of a version whose files it put back: it is not tried again while all of this stays.
type RolledBack struct {
	Rollout string    `json:"rollout"`
	Digest  string    `json:"digest"`         // of the program, with the host's variables
	Gate    int64     `json:"gate,omitempty"` // the revision of the group's gate behind the failure
	Why     string    `json:"why"`
	At      time.Time `json:"at"`
}

// LoadLocal reads the node's record; a node without one is new. One that does not say what it should is a
// *durable.DamagedError.
func LoadLocal(dir string) (Local, error) {
	var l Local
	err := durable.ReadJSON(filepath.Join(dir, "node.json"), &l)
	return l, err
}

// Order is the node's place in the queue of a rollout; 0 is none yet.
func (l Local) Order(rollout string) int64 {
	if l.Queued != rollout {
		return 0
	}
	return l.Place
}

// Fails remembers that an upgrade to a version failed.
func (l *Local) Fails(version string, at time.Time) {
	if l.Failed != version {
		l.Failures = 0
	}
	l.Failures, l.Failed, l.LastFailure = l.Failures+1, version, at
}

// SincePull is how long ago the last pull was. Within one boot the clock that somebody may have set does not count.
func (l Local) SincePull(boot string) time.Duration {
	return since(l.LastPull, l.PullBoot, l.PullUp, boot)
}

// since is how long ago something was: by the time since the boot, or, where that was another boot, by the clock of the
// host.
func since(at time.Time, atBoot string, up time.Duration, boot string) time.Duration {
	if atBoot == boot {
		return bootClock() - up
	}
	return time.Since(at)
}

// keptGaps tell how often a node pulls.
const keptGaps = 4

// Cadence is how often the node pulls, this pull included: 0 before there were two. One long gap among its last ones is
// a time when it was off.
func (l Local) Cadence(boot string) time.Duration {
	if l.LastPull.IsZero() {
		return 0
	}
	gaps := slices.Sorted(slices.Values(l.gaps(boot)))
	return gaps[max(0, len(gaps)-2)]
}

// gaps are those between the last pulls and this one.
func (l Local) gaps(boot string) []time.Duration {
	all := append(slices.Clone(l.Gaps), max(0, l.SincePull(boot)))
	return all[max(0, len(all)-keptGaps):]
}

// Pulls remembers that a pull is made now.
func (l *Local) Pulls(at time.Time, boot string) {
	if !l.LastPull.IsZero() {
		l.Gaps = l.gaps(boot)
	}
	l.LastPull, l.PullBoot, l.PullUp = at, boot, bootClock()
}

// Rename makes it the record of a node of a name. What only its fleet's record gave it under another one is forgotten.
func (l *Local) Rename(name string) {
	if l.Name != "" && l.Name != name {
		l.Store.Revision, l.Through, l.Parked, l.Queued, l.Place, l.Labels = 0, "", "", "", 0, nil
	}
	l.Name = name
}

// Save writes the node's record, whole and durable.
func (l Local) Save(dir string) error { return durable.WriteJSON(filepath.Join(dir, "node.json"), l) }

// LoadView reads the fleet as the node saw it last; a node that never saw one leaves v alone.
func LoadView(dir string, v any) error { return durable.ReadJSON(filepath.Join(dir, "view.json"), v) }

// SaveView keeps the fleet as the node sees it. What is on disk already is not written again.
func SaveView(dir string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "view.json")
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
		return nil
	}
	return durable.Replace(path, data)
}
