package main

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// fleetStatus is the fleet as status shows it.
type fleetStatus struct {
	Current *state.Version    `json:"current"`
	Skipped *skippedHead      `json:"skipped,omitempty"` // the newest commit that the fleet does not take
	Held    bool              `json:"held"`              // nobody proposes a newer version now, by the clock of etcd
	Counts  map[string]int    `json:"counts"`
	Nodes   []nodeStatus      `json:"nodes"`
	Halted  []state.GroupGate `json:"halted"`
	Waits   []waitGroup       `json:"waits"`
	Parked  int               `json:"parked"` // waiting nodes that gave their slot back in mid-run

	Settled []state.Settlement `json:"settled,omitempty"` // steps that are to run again and have not begun

	Ahead    []string                `json:"ahead,omitempty"` // nodes that were seen in the future, by their clocks
	Switches map[string]state.Switch `json:"switches"`        // by scope, with "pause"
	Bad      []string                `json:"bad,omitempty"`   // the records that cannot be read, and what helps

	Ending []state.EndingSoon `json:"ending,omitempty"` // certificates near their end
	// for what the next change of the datastore's members waits
	Members string `json:"members,omitempty"`

	Reactions *reactionCounts `json:"reactions,omitempty"` // that are at work or want attention; null: none

	// the pullets that nodes run, where these are several
	Pullets []programGroup `json:"pullets,omitempty"`

	Decommissioned []string `json:"decommissioned,omitempty"` // nodes that are listed under nodes/ all the same

	names map[string]string      // version -> release
	held  map[string]state.Claim // the slots, by node
	gone  map[string]bool        // nodes that were decommissioned
	none  error                  // why there is no version
}

type nodeStatus struct {
	Node    string    `json:"node"`
	Role    string    `json:"role,omitempty"`
	Version string    `json:"version,omitempty"` // that it runs
	Release string    `json:"release,omitempty"`
	State   string    `json:"state"`
	Alive   bool      `json:"alive"`
	Since   time.Time `json:"since,omitzero"`
	Why     string    `json:"why,omitempty"`
	state.Remedy
	Host bool `json:"hostFault,omitempty"` // it failed by a fault of the host

	Kind    state.WaitKind `json:"kind,omitempty"`    // what it waits for
	Gate    string         `json:"gate,omitempty"`    // at which it waits
	Halt    string         `json:"halt,omitempty"`    // the group whose halt it waits for
	Holders []state.Holder `json:"holders,omitempty"` // for whom
	Until   time.Time      `json:"until,omitzero"`    // when the wait is over, by the node's clock
	Parked  bool           `json:"parked,omitempty"`
	Step    string         `json:"step,omitempty"` // that has run there for a while

	through bool     // it runs the fleet's version, and is not in the middle of another
	depends []string // the groups that must be through before its own; nil: not known

	left []state.Holder // those of Holders for whom it waits still

	unknown string    // the step because of whose unknown result it failed
	told    time.Time // when it said so, by its clock
	said    int64     // and at which revision of etcd: what operators do is compared with that, because clocks differ
	lasts   bool      // Since is the beginning of what Why says, and not just the last time that it was said
}

// The states of a node as people see them.
const (
	upToDate  = "ok"
	upgrading = "upgrading"
	waiting   = "waiting"
	failed    = "failed"
	pending   = "pending" // an update is available and the node has not looked yet
	lost      = "lost"
	missing   = "missing" // listed under nodes/ and never seen
)

// viewOf sums the fleet's record up.
func viewOf(o *state.Overview) *fleetStatus {
	v := &fleetStatus{
		Current:  o.Current,
		Held:     o.Held,
		Counts:   map[string]int{},
		Nodes:    []nodeStatus{},
		Halted:   stopsOf(o).Halts,
		names:    releases(o),
		held:     slotsByNode(o),
		none:     o.NoVersion(),
		Switches: o.Switches,
		Ending:   o.Ending,
		Members:  o.Carriers,
	}
	var run []state.Reader
	for _, name := range slices.Sorted(maps.Keys(o.Nodes)) {
		v.Nodes = append(v.Nodes, v.node(o, o.Nodes[name]))
		run = append(run, o.Nodes[name].Reader())
		if inFuture(o.Nodes[name].LastSeen) {
			v.Ahead = append(v.Ahead, name)
		}
	}
	if groups := programsOf(run); len(groups) > 1 {
		v.Pullets = groups
	}
	v.follow(o)
	for _, n := range v.Nodes {
		v.Counts[n.State]++
	}
	v.Skipped, v.Settled = skippedOf(o), toRunAgain(o)
	v.gone = o.Gone
	never := awaited(o)
	v.Nodes, v.Decommissioned = append(v.Nodes, never...), stillListed(o)
	v.Counts[missing] += len(never)
	v.Waits = waitsOf(o, v.Nodes)
	for _, n := range v.Nodes {
		if n.Parked {
			v.Parked++
		}
	}
	return v
}

// inFuture reports a time that is yet to come, and not because clocks differ a little.
func inFuture(t time.Time) bool { return time.Until(t) > time.Minute }

// releases are the names of the versions that are known by one.
func releases(o *state.Overview) map[string]string {
	out := map[string]string{}
	maps.Copy(out, o.Releases) // what a node runs that changes is named nowhere else
	for _, categories := range o.Statuses {
		for _, s := range categories {
			if s.Release != "" {
				out[s.Version] = s.Release
			}
		}
	}
	if o.Current != nil && o.Current.Release != "" {
		out[o.Current.ID] = o.Current.Release
	}
	return out
}

// node is one node's line.
func (v *fleetStatus) node(o *state.Overview, n state.Node) nodeStatus {
	out := nodeStatus{
		Node:    n.Name,
		Role:    n.Role,
		Version: o.Running[n.Name],
		Alive:   o.Alive[n.Name],
		Since:   n.LastSeen,
		State:   pending,
	}
	out.Release = v.names[out.Version]
	current := o.Runs(n.Name)
	out.through = current
	rollout, c := o.Statuses[n.Name][state.Rollout], o.Statuses[n.Name][state.Configured]
	if current || c.State == state.Success { // also of a node that keeps another version: it may say why
		out.Why = c.Reason
	}
	if current {
		out.State = upToDate
		if rollout.Version == out.Version {
			out.Since = rollout.Time
		}
	}
	if c.State == state.Success && c.Kind == state.WaitStale {
		out.waitsAt(c)
	}
	if o.Current != nil && rollout.Version == o.Current.ID && !current {
		out.State = map[string]string{state.Running: upgrading, state.Pending: waiting, state.Failed: failed,
			state.Success: upToDate}[rollout.State]
		out.waitsAt(rollout)
	}
	if waitsSince := rollout.State == state.Pending && rollout.Time.After(c.Time); !waitsSince {
		out.Step = c.Step
	}
	if c.State == state.Running && out.Step != "" {
		out.Why, out.Remedy = out.Step, state.Remedy{}
	}
	if c.State == state.Failed && c.Time.After(rollout.Time) && out.State != upToDate &&
		(c.Version == "" || o.Current != nil && c.Version == o.Current.ID) {
		out.State = failed // the pull could not be made: no room, a repository that cannot be read
		out.waitsAt(c)
	}
	settled := out.State == upToDate || o.Current == nil || // a first version that did not compile is nobody's rollout
		out.State == pending &&
			(c.Version == o.Current.ID || c.Kind == state.WaitRefused) // nor is one that the node does not have, or refuses
	frozen := out.State == upgrading && c.Kind == state.WaitFreeze && c.Revision > rollout.Revision // its next pull was
	if (settled || frozen) && (c.State == state.Failed || c.State == state.Pending) {
		out.State = map[string]string{state.Failed: failed, state.Pending: waiting}[c.State]
		out.waitsAt(c)
	} else if checked := o.Statuses[n.Name][state.Validated]; settled && checked.State == state.Failed {
		out.State = failed
		out.waitsAt(checked)
	}
	out.refresh(o)
	if c.Kind == state.WaitClone && c.State == state.Failed {
		out.State = failed
		out.waitsAt(c)
		return out
	}
	slot, held := v.held[n.Name]
	if held && slot.Reaction != "" {
		out.Why = cmp.Or(out.Why, "it runs reaction "+slot.Reaction)
	} else if held && overtaken(rollout, slot) {
		out.State = waiting
		out.waitsAt(rollout)
	} else if held && out.State == pending && failedUnder(rollout, slot) {
		out.Why = "it failed in version " + v.versionName(slot.Version) + ", and keeps its slot"
	} else if held && out.holds(slot) {
		out.Why = holdsSlot(v.versionName(slot.Version), slot.Step)
	}
	d, doubts := o.Doubting[n.Name]
	if atWork := held && out.Alive && out.State == upgrading && slot.Version != d.Running; doubts && !atWork {
		out.doubts(d)
	} else if !out.Alive {
		out.Why = strings.TrimSuffix("was "+out.State+": "+out.Why, ": ")
		out.State, out.Since, out.Parked = lost, n.LastSeen, false
		out.Remedy = state.Act(startAgain(n.Name))
	}
	return out
}

// overtaken reports that the pull which made a claim ended because the fleet moved on: the node's next pull goes on
// inside the claim.
func overtaken(rollout state.StatusLine, c state.Claim) bool {
	return rollout.State == state.Pending && rollout.Kind == state.WaitNewer && rollout.Version == c.Version &&
		rollout.Time.After(c.Since)
}

// failedUnder reports that the upgrade for which a claim was made failed.
func failedUnder(rollout state.StatusLine, c state.Claim) bool {
	return rollout.State == state.Failed && rollout.Version == c.Version && rollout.Time.After(c.Since)
}

// holdsSlot says for which version a node holds a slot, and at which step it is.
func holdsSlot(version, step string) string {
	text := "it holds a slot for version " + version
	if step != "" {
		text += ", last in step " + step
	}
	return text
}

// holds says of a node with a slot that it is upgrading, where its status does not know: the slot is of another
// version, or the fleet forgot what the node said since it made the claim.
func (n *nodeStatus) holds(c state.Claim) bool {
	if n.State != upToDate && n.State != pending && !(n.State == waiting && c.Since.After(n.told)) {
		return false
	}
	n.State, n.Since, n.Kind, n.Gate, n.Halt, n.Holders, n.Remedy = upgrading, c.Since, "", "", "", nil, state.Remedy{}
	return true
}

// doubts says of a node that it lives, and does not accept the fleet's record: that may know the lease of an earlier
// pull, and what the node said before.
func (n *nodeStatus) doubts(d state.Doubt) {
	if d.Reason += "; it lives, and starts nothing new"; n.State == upgrading {
		d.Reason += "; was upgrading: " + n.Why
	}
	w := lock.DoubtedWait(n.Node, d.Reason)
	n.waitsNow(w)
	n.State, n.Until, n.Parked, n.Since, n.lasts = waiting, time.Time{}, false, d.At, true
}

// slotsByNode are the claims of slots, of whatever version, by their nodes.
func slotsByNode(o *state.Overview) map[string]state.Claim {
	out := map[string]state.Claim{}
	for _, claims := range o.Slots {
		for _, c := range claims {
			out[c.Node] = c
		}
	}
	return out
}

// waitsAt takes what a status says of the node.
func (n *nodeStatus) waitsAt(s state.StatusLine) {
	n.Host = s.Host && s.State == state.Failed
	n.Kind, n.Since, n.Why, n.Remedy = s.Kind, s.Time, s.Reason, s.Remedy
	n.Gate, n.Halt, n.Holders, n.Until = s.Gate, s.Halt, s.Holders, s.Until
	n.Parked = s.Parked && s.State == state.Pending
	n.unknown, n.told, n.said, n.depends, n.left = s.Unknown, s.Time, s.Revision, s.Depends, s.Holders
	if n.lasts = !s.Since.IsZero(); n.lasts {
		n.Since = s.Since
	}
}

// why is the node's reason in so many columns, with its age and what clears it: these are not cut off.
func (n nodeStatus) why(w io.Writer, most int) string {
	text := shorten(n.Why, most) + n.age(w)
	if n.Clear != "" {
		text += "; " + n.Clear
	}
	return text
}

// mostReason is how much of a reason a terminal shows in a table: what clears it has to have room, too.
const mostReason = 120

// reasonRoom is how much of a reason is shown.
func reasonRoom(w io.Writer) int {
	if lookOf(w).most == 0 {
		return wholeReason
	}
	return mostReason
}

// wholeReason is room for all of any reason.
const wholeReason = 1 << 20

// age is for how long a node waits, or when it failed.
func (n nodeStatus) age(w io.Writer) string {
	switch {
	case n.Why == "" || n.Since.IsZero() || n.State != waiting && n.State != failed && n.Kind != state.WaitStale:
		return ""
	case n.lasts:
		return " (" + during(w, n.Since) + ")"
	}
	return " (" + when(w, n.Since) + ")"
}

// versionName is a version by its release or its short id.
func (v *fleetStatus) versionName(version string) string {
	if version == "" {
		return "-"
	}
	if name := v.names[version]; name != "" {
		return name
	}
	return state.Short(version)
}
