package main

import "github.com/pullet/pullet/state"

// cure is what ends a wait of a kind, and where that is shown.
type cure struct {
	kind  state.WaitKind
	clear string // a part of the text beside such a wait: a command, or that none is needed
	says  string // how the script has that text; "": as clear
	shown string // a script; or a test's file, where only who writes into etcd makes such a wait
	does  string // the lines of the script that then do it and show that it helps, in their order
}

// cures are those of all kinds.
func cures() []cure {
	return []cure{
		{state.WaitSlot, "no action needed", "", "gate_slot", "wait web2"},
		{state.WaitTotal, "no action needed", "", "gate_total", "exits 0 pullet pull --wait 0s"},
		{state.WaitQueue, "no action needed", "web2 comes first in the queue; no action needed", "gate_slot", "wait web2"},
		{state.WaitRole, "no action needed", "", "gate_roles", "as db1; exits 0 pullet pull"},
		{state.WaitSoak, "no action needed", `others follow \(for \d+s\); no action needed`, "status_soak", "exits 0 pullet pull --wait 0s"},
		{state.WaitBarrier, "pullet decommission", "", "gate_sync", "as web2; exits 0 pullet pull --wait 0s"},
		{state.WaitSerialize, "no action needed", "", "gate_serialize", "wait web2"},
		{state.WaitResult, "start a host that has it", "", "gate_target", "as m1; exits 0 pullet pull; as w1; exits 0 pullet pull"},
		{state.WaitSealed, "pullet rollout settle", "", "secrets_later", "as web1; exits 3 pullet pull --wait 0s; as web2; exits 0 pullet pull"},
		{state.WaitService, "base/services.yaml", "it goes on when a host offers it", "services_lacking", "as db1; exits 0 pullet pull; as web1; exits 0 pullet pull"},
		{state.WaitNode, "nodes/", "start it, or remove it from nodes/", "nodes_lacking", "as d1; exits 0 pullet pull; as web1; exits 0 pullet pull"},
		{state.WaitCondition, "push a commit", "", "condition_named", "exits 0 pullet pull"},
		{state.WaitInRun, "pullet rollout fail", "", "gate_canary_waits", "exits 0 pullet pull"},
		{state.WaitReaction, "pullet rollout resume", "waiting for reaction disk/full: the rollout", "reaction_limits", "exits 0 pullet rollout resume; exits 0 pullet pull"},
		{state.WaitMembers, "pullet datastore status", "look at pullet-etcd on web2: pullet datastore status", "datastore_turn", "exec sh -eu etcd.sh 2; exits 0 pullet pull"},
		{state.WaitNewer, "the next pull follows", "", "gate_abandoned", "as web1; exits 0 pullet pull"},

		{state.WaitWindow, "it opens", "", "gate_canary", "cp soon repo/pullet.yaml; exits 0 pullet pull --wait 60s"},
		{state.WaitPause, "pullet rollout resume", "", "rollout_pause", "exits 0 pullet rollout resume"},
		{state.WaitDisabled, "pullet enable", "", "switches", "exits 0 pullet enable --role web"},
		{state.WaitOneVersion, "pullet enable", `(one version\)`, "switches", "exits 0 pullet enable --role web; exits 0 pullet pull"},
		{state.WaitFreeze, "pullet enable", "", "switches_all_changes", "exits 0 pullet enable --host web1"},
		{state.WaitLimit, "rollingRules", `its limit is 0; raise rollout\.rollingRules`, "gate_slot", "cp thawed repo/pullet.yaml; exits 0 pullet pull --wait 0s"},
		{state.WaitHalt, "pullet rollout resume", "", "rollout_resume", "exits 0 pullet rollout resume --role canary; exits 0 pullet pull --wait 0s"},
		{state.WaitUnknown, "pullet rollout settle", "", "target_unknown", "exits 0 pullet rollout settle cluster/migrate --done; exits 0 pullet pull"},
		{state.WaitStore, "pullet rollout resume --store", "", "store_restored", "exits 0 pullet rollout resume --store; exits 0 pullet pull"},
		{state.WaitGrace, "no action needed", "report first", "store_restored_grace", "member calm; exits 0 pullet pull"},
		{state.WaitRecord, "rollout start", "", "hostile_test.go", ""},
		{state.WaitEtcd, "pullet doctor", "", "gate_etcd_away", "exits 0 pullet pull"},
		{state.WaitRepository, "pullet pull --accept-rewind", "", "fleet_lost_commit", "exits 0 pullet pull --accept-rewind; exits 0 pullet pull"},
		{state.WaitRefused, "pullet pull --accept-rewind", "", "repository_refused", "exits 0 pullet pull --accept-rewind; exits 0 pullet failures"},
		{state.WaitStale, "git ls-remote", "", "repository_stale", "mv away repo; exits 0 pullet pull"},
		{state.WaitLease, "the next pull", "", "../../lock/turn_test.go", ""},
		{state.WaitOrphan, "kill -- -", "", "gate_killed", "exits 0 pullet pull"},
		{state.WaitTime, "the next pull goes on", "", "pull_stopped", "exits 0 pullet pull"},
		{state.WaitClone, "pullet decommission --force", "with copies of one state directory", "cloned", "exits 0 pullet decommission --force web1; exits 0 pullet pull"},
		{state.WaitName, "pullet decommission --force", "if this host replaces it, stop pullet there, then run: pullet decommission --force web1", "cloned", "exits 0 pullet decommission --force web1; exits 0 pullet pull"},
		{state.WaitDisk, "space", "", "status_full_disk", "exits 0 pullet pull"},

		{state.HolderAlive, "no action needed", "", "gate_slot", "wait web2"},
		{state.HolderLost, "pullet decommission", "", "gate_killed", "exits 0 pullet decommission --force web1"},
		{state.HolderKeeps, "pullet rollout settle", "", "target_gone", "exits 0 pullet decommission m1; exits 0 pullet rollout settle 'cluster/get token' --again; exits 0 pullet pull"},
		{state.HolderUnseen, "nodes/", "", "gate_canary", "as can1; exits 0 pullet pull --wait 0s"},
		{state.HolderFailed, "pullet failures", "", "status_soak", "as can1; exits 0 pullet pull; as web1; exits 0 pullet pull --wait 60s"},
		{state.HolderParked, "pullet status", "can1 waits itself for", "gate_canary_waits", "as can1; exits 0 pullet pull; as db1; exits 0 pullet pull"},
		{state.HolderOff, "pullet enable", "", "gate_canary_halted", "exits 0 pullet enable --host can1"},
	}
}

// rowCures are what ends the states of nodes that are no waits: of those that somebody has to end.
func rowCures() map[string]cure {
	return map[string]cure{
		lost:     {says: "start it again, or give it up: pullet decommission web1", shown: "status_cures", does: "as web1; exits 0 pullet pull; exits 0 pullet decommission web1"},
		missing:  {says: "start it, remove it there, or give it up: pullet decommission db1", shown: "listed", does: "as db1; exits 0 pullet pull; exits 0 pullet decommission db2"},
		failed:   {says: "is halted at", shown: "gate_halt", does: "commit repo 'a good port'; exits 0 pullet pull"},
		pending:  {says: "it goes on at its next pull", shown: "status_soak", does: "exits 0 pullet pull --wait 0s"},
		upToDate: {}, upgrading: {}, waiting: {}, // nothing is wrong, or it has a kind
	}
}
