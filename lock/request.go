package lock

import (
	"time"

	"github.com/pullet/pullet/state"
)

// Request is a node's wish to change to a version.
type Request struct {
	Presence   *state.Presence
	Version    *state.Version
	VersionRev int64  // the revision at which the version was agreed: admission compares it
	Stale      bool   // the version is not the fleet's any more, and drift of it is corrected: the fleet may move on
	Apart      bool   // it is a run of a reaction and no move to a version: it ends whatever the fleet moves to
	Reaction   string // its name
	Run        string
	Order      int64 // the node's place in queues: the lower the earlier; 0 is the revision of its registration
	Brief      bool  // it is not waited for longer than Patience
	// it gave its slot back in mid-run, in this rollout: it has been there, and the progress deadline counts
	Parked    bool
	Lasting   bool // the lease outlives the process: a place in a queue needs one of its own
	Rules     Rules
	Inventory map[string]state.Member // the nodes that must exist
	Waiting   func(w *Wait)           // told each new reason; may be nil
}

// Rules are those of one rollout, as they hold for the node's group.
type Rules struct {
	Group       string // in which the node takes turns
	Role        string // switches are by role
	GroupOf     func(node string, m state.Member) string
	Canaries    string                   // the group of the canaries, who count in their roles, too; "" is none
	RoleGroup   func(role string) string // the group of a role, of a canary's as well; it may be nil where there is none
	RoleLimit   func(roster int) int     // of the group of the node's role; likewise
	Limit       func(roster int) int     // of the group, for a roster of that size; 0 freezes
	Raise       string                   // what raises a limit of 0, where it is not the repository
	Total       int                      // nodes of the whole fleet that may change at a time; 0 is any number
	Depends     []string                 // groups that must be through first
	MaxFailures int                      // failures that a group survives
	// MaxHostFailures is how many hosts of a group, of a roster of that size, may have a fault of their own before the
	// group halts; nil is none.
	MaxHostFailures func(roster int) int
	OnLost          string        // what becomes of a node that does not answer: hold, release, fail; "" is hold
	Deadline        time.Duration // when no holder of the group finished for so long, it halts; 0 is never
	Soak            func(group string) time.Duration
	// outside the group's maintenance windows: when they open; "" is open
	Closed func(now time.Time) (until string)
}

// What becomes of a node that does not answer while others wait for it.
const (
	Hold    = "hold"    // it is waited for
	Release = "release" // its claims are taken back, and it is not waited for
	Fail    = "fail"    // the same, and it counts as failed
)

// givesUp reports that lost nodes are not waited for.
func givesUp(onLost string) bool { return onLost == Release || onLost == Fail }

func (q *Request) node() string    { return q.Presence.Node.Name }
func (q *Request) rollout() string { return q.Version.Rollout() }

// follows reports a request that ends when the fleet moves on to another version.
func (q *Request) follows() bool { return !q.Stale && !q.Apart }

func (q *Request) order() int64 {
	if q.Order > 0 {
		return q.Order
	}
	return q.Presence.Revision
}

// status is what is recorded of the node in this rollout.
func (q *Request) status(reason string) state.Status {
	return state.Status{
		Version: q.Version.ID,
		Release: q.Version.Release,
		Run:     q.Run,
		Reason:  reason,
		Time:    time.Now().UTC(),
	}
}
