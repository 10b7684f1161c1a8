package main

import "github.com/pullet/pullet/state"

// cure is what ends a wait of a kind, and where that is shown.
type cure struct {
	kind  state.WaitKind
	clear string // a part of the text beside such a wait: a command, or that none is needed
	shown string // a script, or a test's file, that has it
}

// cures are those of all kinds.
func cures() []cure {
	return []cure{
		{state.WaitSlot, "no action needed", "gate_slot"},
		{state.WaitTotal, "no action needed", "gate_total"},
		{state.WaitQueue, "no action needed", "gate_slot"},
		{state.WaitRole, "no action needed", "gate_roles"},
		{state.WaitSoak, "no action needed", "gate_canary"},
		{state.WaitBarrier, "pullet decommission", "gate_sync"},
		{state.WaitSerialize, "no action needed", "gate_serialize"},
		{state.WaitResult, "no action needed", "gate_target"},
		{state.WaitService, "base/services.yaml", "services_lacking"},
		{state.WaitCondition, "push a commit", "condition_named"},
		{state.WaitInRun, "pullet rollout fail", "gate_canary_waits"},
		{state.WaitNewer, "the next pull follows", "gate_abandoned"},

		{state.WaitWindow, "it opens", "gate_canary_shut"},
		{state.WaitPause, "pullet rollout resume", "rollout_pause"},
		{state.WaitDisabled, "pullet enable", "switches"},
		{state.WaitOneVersion, "pullet enable", "switches_role"},
		{state.WaitFreeze, "pullet enable", "switches_all_changes"},
		{state.WaitLimit, "rollingRules", "gate_frozen"},
		{state.WaitHalt, "pullet rollout resume", "gate_halt"},
		{state.WaitUnknown, "pullet rollout settle", "target_unknown"},
		{state.WaitStore, "pullet rollout resume --store", "store_restored"},
		{state.WaitGrace, "no action needed", "store_restored_grace"},
		{state.WaitRecord, "rollout start", "hostile_test.go"},
		{state.WaitEtcd, "pullet doctor", "doctor"},
		{state.WaitRepository, "pullet pull --accept-rewind", "fleet_lost_commit"},
		{state.WaitRefused, "pullet pull --accept-rewind", "repository_refused"},
		{state.WaitStale, "git ls-remote", "repository_stale"},
		{state.WaitLease, "the next pull", "../../lock/turn_test.go"},
		{state.WaitOrphan, "kill -- -", "gate_orphan"},
		{state.WaitTime, "the next pull goes on", "pull_stopped"},
		{state.WaitClone, "pullet decommission --force", "cloned"},
		{state.WaitName, "pullet decommission --force", "name_taken"},
		{state.WaitDisk, "space", "status_full_disk"},

		{state.HolderAlive, "no action needed", "gate_slot"},
		{state.HolderLost, "pullet decommission", "gate_killed"},
		{state.HolderKeeps, "pullet rollout settle", "target_gone"},
		{state.HolderUnseen, "nodes/", "gate_canary"},
		{state.HolderFailed, "pullet failures", "gate_host_fault"},
		{state.HolderParked, "pullet status", "gate_canary_waits"},
		{state.HolderOff, "pullet enable", "gate_canary_shut"},
	}
}
