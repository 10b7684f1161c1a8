package lock

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/lock/arbiter"
	"github.com/pullet/pullet/state"
)

// View is what an admission is decided from.
type View struct {
	Node    string
	Kind    state.WaitKind // of its gate
	Name    string         // of what there are places in: "slot web"
	Scope   string         // of its gate: "role web"
	Group   string         // of its gate
	Rollout string         // of the version that the node wants to change to
	Ahead   *Predecessor   // who queues before it; nil is nobody

	Limit         int                 // places; 0 freezes
	Raise         string              // what raises a limit of 0, where it is not the repository
	MaxHostFaults int                 // how many hosts with a fault of their own hold places beside those
	Claims        map[int]state.Claim // by place
	Dead          map[int]bool        // claims whose holder's mark is gone
	Guests        []Held              // claims in other groups whose nodes belong to this one too
	Canaries      bool                // nodes that go first count in this group, too
	RoleGroup     string              // the group of the node's role, in which a canary counts; "": it is none
	Home          *View               // the group of its role, where the node is a canary and that was asked
	Away          []string            // nodes without a claim that were alive once and do not answer, itself left out
	More          int                 // of those, beside the ones that are named

	Total  int                 // places in the whole fleet; 0 is any number
	Totals map[int]state.Claim // by place
	Slots  []Held              // of all groups, where there is a total

	Conditions map[string]state.Holder // what was found out about holders
	Mixed      bool                    // nodes of several roles take turns

	Gate    state.Gate // of the group
	All     state.Gate // of all groups
	Depends []Dependency
	Before  *arbiter.Crossing // the run of a reaction that the node does first; nil: none
	Switch  *Switched         // nil: nothing is switched off
	Unknown bool              // etcd is not in the incarnation on record
	Grace   time.Time         // until when nodes report after a restart of etcd; zero is none
	Closed  string            // when the group's maintenance window opens; "" is now
	OnLost  string
	Timed   bool // there is a progress deadline
	Ticking bool // which has not passed
}

// Dependency is a group that must be through before this one starts.
type Dependency struct {
	Group   string
	Closed  bool // all of it are through
	Soaking bool // and it is still watched
	Until   time.Time
	Gate    state.Gate
	Missing []state.Holder // who is not through, as far as that was asked
	More    int            // beside those
}

// Decision is what a node does about its admission: claim the place, wait, or first put something in order.
type Decision struct {
	Index            int    // the place to claim
	Total            int    // the place in the whole fleet; -1 where none is needed
	Wait             *Wait  // why it waits
	Reclaim          []int  // places to take back first, of holders that are lost
	ReclaimElsewhere []Held // and claims in other groups
	Stalled          bool   // no holder finished in time: the group is to be halted
	StallReason      string // who did not
	Recognise        bool   // etcd's incarnation is to be recorded first
	StopClock        bool   // the progress deadline does not count now
	StartClock       bool   // it counts again, and nobody set it going
	LeaveQueue       bool   // the node waits for its own reason: it is not to be in the way of the others
	Yield            bool   // its place in the whole fleet is given back: those for whom it waits may need it
	AwaitHolders     bool   // it waits for those who hold places
}

// Decide says whether the node of a view may change now, or why not. It is a pure function.
//
// The limit bounds nodes that are changing or away: a node counts when it holds a claim, or lived once and does not
// answer. A node never seen costs nothing, and the one that asks is not counted. Hosts with a fault of their own keep
// their claims beside the limit, up to MaxHostFaults of them.
//
// A node that holds a claim keeps its place. One for the same rollout is retried inside also while the group is halted
// or paused; one of an older version still has to wait for what the new version depends on.
func Decide(v View) Decision {
	own, holds := v.own(v.Claims)
	switch {
	case v.Switch != nil &&
		(v.Switch.What == state.HostScope(v.Node).String() || v.Mixed && strings.HasPrefix(v.Switch.What, "role ")):
		return Decision{Wait: v.Switch.wait(), LeaveQueue: true}
	case v.Switch != nil && !v.Switch.forAll():
		return v.wait(v.Switch.wait())
	case holds && v.Claims[own].Rollout == v.Rollout:
		return v.retry(own)
	case v.Switch != nil:
		return v.wait(v.Switch.wait())
	case v.Before != nil:
		return Decision{Wait: runFirst(v.Before), LeaveQueue: true}
	case v.Unknown:
		return Decision{Wait: graceTime(time.Time{}), Recognise: true}
	case !v.Grace.IsZero():
		return v.wait(graceTime(v.Grace))
	}
	if w := v.haltWait(); w != nil {
		return v.wait(w)
	}
	if v.Closed != "" { // the canaries, whose window may be open, may need its place
		out := v.wait(
			&Wait{
				Kind:   state.WaitWindow,
				Gate:   "maintenance window of " + v.Scope,
				Reason: "it is closed",
				Remedy: state.InTime("it opens " + v.Closed),
			},
		)
		out.Yield = v.yields()
		return out
	}
	for _, d := range v.Depends {
		if w := d.wait(); w != nil {
			out := v.wait(w)
			out.Yield = v.yields()
			return out
		}
	}
	total, room := v.total()
	switch {
	case holds && v.canaryFirst(own):
		return v.waitForHolders(v.busyWait())
	case holds && room:
		return Decision{Index: own, Total: total}
	case !holds && v.Ahead != nil:
		return Decision{Wait: v.queueWait()}
	case !holds && v.full():
		return v.waitForHolders(v.busyWait())
	case !holds && v.Home != nil && v.Home.full():
		return v.waitForHome()
	case !room:
		return v.waitForFleet()
	}
	return Decision{Index: firstFree(v.Claims), Total: total}
}

// runFirst is the wait of a node for an open run of a reaction. The node's own pulls end it.
func runFirst(c *arbiter.Crossing) *Wait {
	const how = "see pullet reactions show %[1]s, or take the run out: pullet reactions cancel %[1]s"
	return &Wait{
		Kind:   state.WaitReaction,
		Gate:   c.Item.Name,
		Reason: "this host does it before it begins with the version",
		Remedy: state.Itself(fmt.Sprintf(how, c.Item.Run)),
	}
}

// retry goes on inside the node's claim. A host with a fault of its own gave its place in the total away, and needs one
// again.
func (v View) retry(own int) Decision {
	if !v.Claims[own].Idle {
		return Decision{Index: own, Total: -1}
	}
	total, room := v.total()
	if !room {
		return v.waitForFleet()
	}
	return Decision{Index: own, Total: total}
}

// firstFree is the lowest free place.
func firstFree[V any](taken map[int]V) int {
	for free := 0; ; free++ {
		if _, is := taken[free]; !is {
			return free
		}
	}
}

// roomBehindQueue reports that the node would be admitted if nobody was ahead of it.
func (v View) roomBehindQueue() bool {
	behind := v.Ahead != nil
	v.Ahead = nil
	return behind && Decide(v).Wait == nil
}

// wait is a decision to wait for something that no holder can do anything about.
func (v View) wait(w *Wait) Decision {
	return Decision{Wait: w, StopClock: v.Gate.Clock && v.Gate.State != state.Halted}
}

// waitForHolders is a decision to wait for holders, and to reclaim from lost ones.
func (v View) waitForHolders(w *Wait) Decision {
	d := Decision{Wait: w, AwaitHolders: true}
	if w.Frees = givesUp(v.OnLost); w.Frees {
		for _, i := range slices.Sorted(maps.Keys(v.Dead)) {
			if v.Dead[i] && v.Claims[i].Node != v.Node {
				d.Reclaim = append(d.Reclaim, i)
			}
		}
		d.ReclaimElsewhere = deadOnes(v.Guests)
	}
	inRole := v.Home != nil && v.Home.full() && len(v.Home.Guests) > 0
	if v.Timed && (len(v.Claims) > 0 || inRole) && v.Gate.State != state.Halted {
		if d.Stalled, d.StartClock = v.Gate.Clock && !v.Ticking, !v.Gate.Clock; d.Stalled {
			d.StallReason = v.busyWait().Reason
			if inRole {
				d.StallReason = v.Home.busyWait().Reason
			}
		}
	}
	return d
}

// waitForFleet is waitForHolders for the total. In the groups of those holders there may be no queue.
func (v View) waitForFleet() Decision {
	d := v.waitForHolders(v.fleetBusyWait())
	if givesUp(v.OnLost) {
		d.ReclaimElsewhere = deadOnes(v.Slots)
		d.ReclaimElsewhere = slices.DeleteFunc(d.ReclaimElsewhere, func(h Held) bool { return h.Idle || h.Node == v.Node })
	}
	return d
}

// full reports that no further node may change, also above a limit that was lowered.
func (v View) full() bool {
	return len(v.Claims)-v.faultyHosts()+len(v.Guests)+v.countAway() >= v.Limit
}

// countAway is how many nodes count beside the holders. Lost nodes that are given up do not count.
func (v View) countAway() int {
	if givesUp(v.OnLost) {
		return 0
	}
	return len(v.Away) + v.More
}

// own is the node's own place.
func (v View) own(claims map[int]state.Claim) (int, bool) {
	for i, c := range claims {
		if c.Node == v.Node {
			return i, true
		}
	}
	return 0, false
}

// total is the node's place in the total, and whether it may have one.
func (v View) total() (index int, room bool) {
	if v.Total == 0 {
		return -1, true
	}
	if i, holds := v.own(v.Totals); holds {
		return i, true
	}
	index = firstFree(v.Totals)
	if own, holds := v.own(v.Claims); holds && !v.Claims[own].Idle { // it counts since before there was a total
		return index, true
	}
	return index, len(v.Totals)+len(v.uncounted()) < v.Total
}

// yields reports that the node, which waits for another group, counts where that group may need the place: in the
// total, in a group that the node left, or against canaries of its role.
func (v View) yields() bool {
	if _, counts := v.own(v.Totals); counts {
		return true
	}
	own, holds := v.own(v.Claims)
	c := v.Claims[own]
	left := slices.ContainsFunc(c.Groups, func(g string) bool { return g != v.RoleGroup })
	return holds && ((v.Total > 0 || v.Canaries) && !c.Idle || left)
}

// haltWait says why nobody of the group is admitted. A node whose failure counts may try again.
func (v View) haltWait() *Wait {
	halts := func(g state.Gate) bool { return g.State == state.Halted && !g.Counts(v.Node) }
	switch {
	case halts(v.All):
		return halted("the rollout", state.AllGroups, v.All)
	case halts(v.Gate):
		return halted(v.Scope, v.Group, v.Gate)
	case v.Home != nil && halts(v.Home.Gate):
		return halted("role "+v.Home.Group, v.Home.Group, v.Home.Gate)
	case v.Limit == 0:
		return &Wait{
			Kind:   state.WaitLimit,
			Gate:   v.Name,
			Reason: "the role is frozen: its limit is 0",
			Remedy: state.Act(cmp.Or(v.Raise, "raise rollout.rollingRules in pullet.yaml")),
		}
	}
	return nil
}

func halted(scope, group string, g state.Gate) *Wait {
	kind := state.WaitHalt
	if g.Unknown != "" {
		kind = state.WaitUnknown
	}
	return &Wait{Kind: kind, Gate: scope + " (halted)", Reason: g.Why(), Remedy: state.Act(g.Clear()), Halt: group}
}

// wait says which nodes of the group are not through yet.
func (d Dependency) wait() *Wait {
	switch {
	case d.Gate.State == state.Halted: // also when only a node that joined later failed: nobody follows into a halt
		return halted("role "+d.Group, d.Group, d.Gate)
	case d.Soaking:
		return &Wait{
			Kind:   state.WaitSoak,
			Gate:   "role " + d.Group,
			Reason: "it is upgraded, and watched until " + d.Until.Local().Format(time.TimeOnly) + " before others follow",
			Remedy: state.NoAction(),
		}
	case d.Closed:
		return nil
	}
	if len(d.Missing) == 0 { // nobody asked who
		return &Wait{
			Kind:   state.WaitRole,
			Gate:   "role " + d.Group,
			Reason: "not all of it is upgraded yet",
			Remedy: state.Itself("see pullet rollout status"),
		}
	}
	names := make([]string, 0, len(d.Missing)+1)
	for _, h := range d.Missing {
		names = append(names, h.Node+" ("+Condition(h)+")")
	}
	if d.More > 0 {
		names = append(names, fmt.Sprintf("%d more", d.More))
	}
	return &Wait{
		Kind:    state.WaitRole,
		Gate:    "role " + d.Group,
		Reason:  "not upgraded yet: " + strings.Join(names, ", "),
		Remedy:  RemedyFor(d.Missing...),
		Holders: d.Missing,
	}
}
