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
	WaitService   WaitKind = "service"    // without which the version does not compile
	WaitInRun     WaitKind = "in run"     // a service or a condition that a step waits for
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
	WaitStale      WaitKind = "stale"      // the repository is unreachable or behind, and the last good commit stays in force
	WaitLease      WaitKind = "lease"      // of the node ended
	WaitOrphan     WaitKind = "orphan"     // a command outlived its pull
	WaitTime       WaitKind = "time"       // the time to wait is over
	WaitClone      WaitKind = "clone"      // two hosts use one state directory
	WaitName       WaitKind = "name"       // another host has it
	WaitDisk       WaitKind = "disk"       // is full
)

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

// NoAction is what clears a wait that ends without anybody.
const NoAction = "no action needed"

// Cure is what ends a wait of a kind, and where that is shown.
type Cure struct {
	Kind  WaitKind
	Clear string // a part of the text beside such a wait: a command, or NoAction
	Shown string // a script of cmd/pullet, or a test's file, that has it
}

// Cures are those of all kinds.
func Cures() []Cure {
	return []Cure{
		{WaitSlot, NoAction, "gate_slot"},
		{WaitTotal, NoAction, "gate_total"},
		{WaitQueue, NoAction, "gate_slot"},
		{WaitRole, NoAction, "gate_roles"},
		{WaitSoak, NoAction, "gate_canary"},
		{WaitBarrier, "pullet decommission", "gate_sync"},
		{WaitSerialize, NoAction, "gate_serialize"},
		{WaitResult, NoAction, "gate_target"},
		{WaitService, "base/services.yaml", "services_lacking"},
		{WaitInRun, "pullet rollout fail", "gate_canary_waits"},
		{WaitNewer, "the next pull follows", "gate_abandoned"},

		{WaitWindow, "it opens", "gate_canary_shut"},
		{WaitPause, "pullet rollout resume", "rollout_pause"},
		{WaitDisabled, "pullet enable", "switches"},
		{WaitOneVersion, "pullet enable", "switches_role"},
		{WaitFreeze, "pullet enable", "switches_all_changes"},
		{WaitLimit, "rollingRules", "gate_frozen"},
		{WaitHalt, "pullet rollout resume", "gate_halt"},
		{WaitUnknown, "pullet rollout settle", "target_unknown"},
		{WaitStore, "pullet rollout resume --store", "store_restored"},
		{WaitGrace, NoAction, "store_restored_grace"},
		{WaitRecord, "rollout start", "hostile_test.go"},
		{WaitEtcd, "pullet doctor", "doctor"},
		{WaitRepository, "pullet pull --accept-rewind", "fleet_lost_commit"},
		{WaitRefused, "pullet pull --accept-rewind", "repository_refused"},
		{WaitStale, "git ls-remote", "repository_stale"},
		{WaitLease, "the next pull", "../../lock/turn_test.go"},
		{WaitOrphan, "kill -- -", "gate_orphan"},
		{WaitTime, "the next pull goes on", "pull_stopped"},
		{WaitClone, "pullet decommission --force", "cloned"},
		{WaitName, "pullet decommission --force", "name_taken"},
		{WaitDisk, "space", "status_full_disk"},

		{HolderAlive, NoAction, "gate_slot"},
		{HolderLost, "pullet decommission", "gate_killed"},
		{HolderKeeps, "pullet rollout settle", "target_gone"},
		{HolderUnseen, "nodes/", "gate_canary"},
		{HolderFailed, "pullet failures", "gate_host_fault"},
		{HolderParked, "pullet status", "gate_canary_waits"},
		{HolderOff, "pullet enable", "gate_canary_shut"},
	}
}
