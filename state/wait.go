package state

// WaitKind is what a node waits for, or is held by. Decisions read it, and people read the texts beside it.
type WaitKind string

// What a node waits for at a gate.
const (
	WaitSlot      WaitKind = "slot"       // of its group
	WaitTotal     WaitKind = "total"      // of the fleet
	WaitQueue     WaitKind = "queue"      // another node comes first
	WaitRole      WaitKind = "role"       // that goes before its own, canaries too
	WaitSoak      WaitKind = "soak"       // such a role is watched
	WaitBarrier   WaitKind = "barrier"    // of a step
	WaitSerialize WaitKind = "serialize"  // a place at a step
	WaitResult    WaitKind = "result"     // of a step that one node takes for all
	WaitSealed    WaitKind = "sealed"     // that result is not encrypted for this node yet
	WaitService   WaitKind = "service"    // without which the version does not compile
	WaitNode      WaitKind = "node"       // of the inventory that never came; the same
	WaitCondition WaitKind = "condition"  // of a step or a job
	WaitInRun     WaitKind = "in run"     // a service that a step waits for
	WaitReaction  WaitKind = "reaction"   // a run of one, on this host
	WaitMembers   WaitKind = "members"    // of the datastore: this host's may not be away now
	WaitNewer     WaitKind = "superseded" // the version is not the fleet's any more
)

// What holds a node.
const (
	WaitWindow     WaitKind = "window"     // maintenance window that is closed
	WaitPause      WaitKind = "pause"      // of the rollout
	WaitDisabled   WaitKind = "disabled"   // host, role or all
	WaitOneVersion WaitKind = "version"    // its role may only take another one
	WaitFreeze     WaitKind = "freeze"     // all changes are disabled
	WaitLimit      WaitKind = "limit"      // of the role is 0
	WaitHalt       WaitKind = "halt"       // of the group, or of the rollout
	WaitUnknown    WaitKind = "unknown"    // result of a step
	WaitStore      WaitKind = "store"      // the fleet's record is not accepted
	WaitGrace      WaitKind = "grace"      // time after a restart of etcd
	WaitRecord     WaitKind = "record"     // of the fleet that cannot be read
	WaitEtcd       WaitKind = "etcd"       // is unreachable
	WaitRepository WaitKind = "repository" // lacks the commit, or is unreachable
	WaitRefused    WaitKind = "refused"    // what the repository offers, or the fleet's version
	// the repository is unreachable or behind, and the host continues with the last good commit
	WaitStale  WaitKind = "stale"
	WaitLease  WaitKind = "lease"  // of the node ended
	WaitOrphan WaitKind = "orphan" // a command outlived its pull
	WaitTime   WaitKind = "time"   // the time to wait is over
	WaitClone  WaitKind = "clone"  // two hosts use one state directory
	WaitName   WaitKind = "name"   // another host has it
	WaitDisk   WaitKind = "disk"   // is full
)

// Switched reports a wait that an operator set for the host, its role or all, and that an operator ends.
func (k WaitKind) Switched() bool {
	switch k {
	case WaitPause, WaitDisabled, WaitOneVersion, WaitFreeze:
		return true
	}
	return false
}

// How a node is for which others wait.
const (
	HolderAlive  WaitKind = "alive"
	HolderLost   WaitKind = "lost"   // does not answer
	HolderKeeps  WaitKind = "keeps"  // does not answer, and started steps that chosen nodes take
	HolderUnseen WaitKind = "unseen" // is listed, and never came
	HolderFailed WaitKind = "failed"
	HolderParked WaitKind = "parked" // waits itself in mid-run
	HolderOff    WaitKind = "off"    // is disabled or paused
)
