package main

import (
	"fmt"
	"time"

	"github.com/pullet/pullet/state"
)

// waitViews are fleets whose hosts wait, and what changed since they looked.
func waitViews() []shown {
	failure := state.Status{Reason: "site/broken: test -e etc/fixed: exit code 1", Run: "20000101T000000Z-aaaaaa", Time: before(20 * time.Second)}
	resumed := func() *state.Overview {
		o := upgrade(storedFleet(commitOf("1", "the first"), "web1", "web2"), commitOf("2", "broken"))
		says(o, "web1", state.Rollout, state.Failed, failure)
		o.Gates["web"] = state.Gate{State: "open", Failed: []string{"web1"}, Resumed: "ada@laptop", Seen: 500}
		return o
	}
	off := resumed()
	off.Switches["host web1"] = state.Switch{By: "ada@laptop", At: before(time.Second)}

	gone := storedFleet(commitOf("1", "the first"), "web1", "web2")
	gone.Alive["web1"] = false
	gone.Listed, gone.Gone["db1"] = map[string]string{"web1": "web", "web2": "web", "db1": "db", "db2": "db"}, true

	soaking := func(rest time.Duration) *state.Overview {
		o := upgrade(storedFleet(commitOf("1", "the first"), "can1", "web1"), commitOf("2", "watched"))
		o.Running["can1"] = o.Current.ID
		says(o, "can1", state.Rollout, state.Success, state.Status{Time: before(3 * time.Second)})
		says(o, "web1", state.Rollout, state.Pending, state.Status{Kind: state.WaitSoak, Gate: "role canary", Depends: []string{"canary"},
			Reason: "role canary: it is upgraded, and watched until 00:00:09 before others follow", Remedy: state.NoAction(),
			Until: before(-rest), Time: before(3 * time.Second), Since: before(3 * time.Second)})
		if rest > 0 {
			o.Soaks["canary"] = before(-rest)
		}
		return o
	}
	return []shown{
		{"a host that failed tries again after a resume", "status", 0, statusOf(resumed())},
		{"but not where it is disabled", "status", 0, statusOf(off)},
		{"hosts that do not answer, never came, or were decommissioned and are still listed", "status", 0, statusOf(gone)},
		{"a host waits while a canary is watched", "status", 0, statusOf(soaking(9 * time.Second))},
		{"the soak ended since its last pull", "status", 0, statusOf(soaking(-time.Second))},
		{"the nearest switch that stops all changes is named, also where it was set after the last pull", "status", 0, statusOf(frozenFleet(true))},
		{"and what was lifted since is not", "status", 0, statusOf(frozenFleet(false))},
		{"a large fleet: the exceptions, and the waits by their gates", "status", 0, statusOf(largeFleet())},
	}
}

// frozenFleet returns a fleet that waited for a switch of all changes when it looked last. Since then another switch
// of web1 was set, which stops that host, too, or is an exception for it.
func frozenFleet(stops bool) *state.Overview {
	o := storedFleet(commitOf("1", "the first"), "web1", "web2")
	all := state.Switch{AllChanges: true, By: "ada@laptop", Reason: "repair by hand", At: before(time.Minute), Until: before(-time.Hour)}
	for _, node := range []string{"web1", "web2"} {
		says(o, node, state.Configured, state.Pending, state.Status{Kind: state.WaitFreeze, Gate: "global (all changes disabled)",
			Reason: "disabled by ada@laptop until 2000-01-01 01:00:00: repair by hand; drift is not corrected either",
			Remedy: state.Act("pullet enable --global"), Time: before(9 * time.Second)})
	}
	o.Switches["global"] = all
	if stops {
		o.Switches["host web1"] = state.Switch{AllChanges: true, By: "bob@laptop", Reason: "bad memory", At: before(2 * time.Second)}
	} else {
		o.Switches["host web1"] = state.Switch{Enabled: true, By: "bob@laptop", At: before(2 * time.Second)}
		o.Switches["role web"] = state.Switch{By: "ada@laptop", At: before(2 * time.Second)}
	}
	return o
}

// largeFleet has more hosts than a screen has lines: many failed, were lost or wait.
func largeFleet() *state.Overview {
	var names []string
	for i := range 90 {
		names = append(names, fmt.Sprintf("web%02d", i))
	}
	o := upgrade(storedFleet(commitOf("1", "the first"), names...), commitOf("2", "the second"))
	for i, node := range names {
		switch {
		case i < 15:
			says(o, node, state.Rollout, state.Failed, state.Status{Reason: "site/check: exit code 1", Time: before(time.Minute)})
		case i < 30:
			o.Alive[node] = false
		case i == 30:
			says(o, node, state.Rollout, state.Running, state.Status{Time: before(time.Minute)})
			o.Slots["web"] = map[string]state.Claim{"0": {Node: node, Version: o.Current.ID, Step: "site/motd", Since: before(time.Minute)}}
		case i < 80:
			says(o, node, state.Rollout, state.Pending, state.Status{Kind: state.WaitSlot, Gate: "slot web (1 at a time)",
				Reason: "slot web (1 at a time): web30 holds it", Remedy: state.NoAction(),
				Holders: []state.Holder{{Node: "web30", Alive: true}}, Time: before(time.Minute), Since: before(2 * time.Minute)})
		default:
			o.Running[node] = o.Current.ID
			says(o, node, state.Rollout, state.Success, state.Status{Time: before(time.Minute)})
		}
	}
	return o
}

// commitViews are fleets that do not take the newest commit.
func commitViews() []shown {
	skipped := func(kind, reason string, change func(o *state.Overview)) func(a *app) error {
		o := storedFleet(commitOf("1", "the first"), "web1", "web2")
		next := commitOf("2", "break \x1b[31mall")
		next.Reason, next.Commits[0].Author = reason, "Bob"
		o.Skipped = &state.Skipped{Version: *next, Kind: kind}
		change(o)
		return statusOf(o)
	}
	none := func(*state.Overview) {}
	held := func(o *state.Overview) {
		o.Held, o.Current.By, o.Current.Reason = true, "ada@laptop", "customers complain"
		o.Current.Previous = o.Skipped.ID
	}
	stuck := func(o *state.Overview) {
		o.Running["web1"], o.Nodes["web1"] = "", state.Node{Name: "web1", Role: "canary", LastSeen: before(10 * time.Second)}
		says(o, "web1", state.Rollout, state.Failed, state.Status{Reason: "site/broken: exit code 1", Time: before(time.Minute)})
	}
	lines := skipped(state.SkipBroken, "it does not compile: jobs/site.yaml:1:27: there is no action \"nonsense\" ...", none)
	return []shown{
		{"a commit that does not compile; its text cannot steer a terminal", "status", 0, lines},
		{"", "status -o json", 0, lines},
		{"one that was undone", "status", 0, skipped(state.SkipBad, "", held)},
		{"one that came while the fleet is held", "status", 0, skipped(state.SkipHeld, "", held)},
		{"one that waits for canaries", "status", 0, skipped(state.SkipCanaries, "", stuck)},
		{"one that lacks a service", "status", 0, skipped(state.SkipLacking, "it does not compile without the service cache", none)},
		{"one that does not compile on another host", "status", 0, skipped(state.SkipElsewhere, "it does not compile for web2", none)},
		{"one that a fault of the host keeps from compiling", "status", 0, skipped(state.SkipHost, "it does not compile: no space left", none)},
	}
}

// fleetLineViews have the lines about the fleet above and below the table.
func fleetLineViews() []shown {
	o := storedFleet(commitOf("1", "the first"), "web1", "web2", "web3")
	o.Switches[state.PauseScope] = state.Switch{By: "ada@laptop", Reason: "look at it", At: before(time.Minute)}
	o.Switches[state.StoreScope] = state.Switch{By: "web1", Reason: "it is older than what web1 knows", At: before(time.Minute)}
	o.Switches["role db"] = state.Switch{Enabled: true, Version: o.Current.ID, By: "ada@laptop", At: before(time.Minute)}
	o.Switches["host web3"] = state.Switch{Enabled: true, By: "ada@laptop", At: before(time.Minute)}
	o.Carriers = "web2 is not in step"
	o.Ending = []state.EndingSoon{{Name: "web3", Until: before(-240 * time.Hour)}}
	old, ahead := o.Nodes["web2"], o.Nodes["web3"]
	old.Agent, ahead.LastSeen = "1.1.0", before(-time.Hour)
	o.Nodes["web2"], o.Nodes["web3"] = old, ahead
	says(o, "web1", state.Configured, state.Failed, state.Status{Reason: "/var/lib/pullet/node.json cannot be written: no space left on device",
		Kind: state.WaitDisk, Remedy: state.Act("make space on that disk"), Time: before(9 * time.Second)})
	o.Settled = map[string]state.Settlement{"cluster/migrate": {Step: "cluster/migrate", By: "ada@laptop", At: before(time.Minute),
		Version: o.Current.ID, Nodes: []string{"web1"}, Waiting: []string{"web1"}}}
	return []shown{{"each line that status can have beside its table", "status", 0, statusOf(o, func(v *fleetStatus) {
		v.Reactions = &reactionCounts{AtWork: 2, Waiting: 3, Paused: 1, Failed: 1}
		v.Bad = []string{"the record status/rollout/failed/web9 cannot be read: it is not JSON; pullet doctor"}
	})}}
}
