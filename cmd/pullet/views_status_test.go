package main

import (
	"strings"
	"time"

	"github.com/pullet/pullet/state"
)

// before returns the time that was so long ago.
func before(ago time.Duration) time.Time { return time.Now().Add(-ago).UTC() }

// commitOf returns the version of the one commit whose ID repeats a digit.
func commitOf(digit string, subject string) *state.Version {
	id := strings.Repeat(digit, 40)
	return &state.Version{ID: id, By: "web1", At: before(5 * time.Minute),
		Commits: []state.Commit{{Repo: "main", Commit: id, Subject: subject, Author: "Ada"}}}
}

// storedFleet returns a fleet at a version, whose hosts live and run that version.
func storedFleet(v *state.Version, nodes ...string) *state.Overview {
	o := &state.Overview{
		Current: v, Revision: 1000, Nodes: map[string]state.Node{}, Alive: map[string]bool{}, Gone: map[string]bool{},
		Running: map[string]string{}, Releases: map[string]string{}, Statuses: map[string]map[string]state.StatusLine{},
		Slots: map[string]map[string]state.Claim{}, Gates: map[string]state.Gate{}, Times: map[string]state.LeaseTimes{},
		Switches: map[string]state.Switch{}, Soaks: map[string]time.Time{}, Services: map[string]map[string]state.Service{},
	}
	for _, name := range nodes {
		role := strings.TrimRight(name, "0123456789")
		o.Nodes[name] = state.Node{Name: name, Role: role, Agent: "1.2.0", FirstSeen: before(72 * time.Hour), LastSeen: before(10 * time.Second)}
		o.Alive[name] = true
		if v != nil {
			o.Running[name] = v.ID
			says(o, name, state.Rollout, state.Success, state.Status{Time: before(4 * time.Minute)})
			says(o, name, state.Configured, state.Success, state.Status{Time: before(10 * time.Second)})
		}
	}
	return o
}

// says files what a host said, of the fleet's version unless the status names one.
func says(o *state.Overview, node, category, value string, st state.Status) {
	if st.Version == "" && o.Current != nil {
		st.Version, st.Release = o.Current.ID, o.Current.Release
	}
	if o.Statuses[node] == nil {
		o.Statuses[node] = map[string]state.StatusLine{}
	}
	o.Statuses[node][category] = state.StatusLine{State: value, Status: st, Revision: 100}
}

// upgrade moves the fleet to a version that no host runs yet.
func upgrade(o *state.Overview, to *state.Version) *state.Overview {
	if to.Previous = o.Current.ID; o.Current.Release != "" {
		o.Releases[o.Current.ID] = o.Current.Release
	}
	o.Current = to
	return o
}

// statusOf prints a fleet as status does.
func statusOf(o *state.Overview, more ...func(*fleetStatus)) func(a *app) error {
	return func(a *app) error {
		v := viewOf(o)
		for _, change := range more {
			change(v)
		}
		return v.show(a)
	}
}

func statusViews() []shown {
	failed := failedFleet()
	return append([]shown{
		{"a fleet before its first pull", "status", 0, statusOf(storedFleet(nil))},
		{"all is well", "status", 0, statusOf(storedFleet(commitOf("1", "the first"), "web1", "web2", "db1"))},
		{"a failure is named once, below the table", "status", 0, statusOf(failed)},
		{"the same on terminals: no line is wider, and none is broken within a word", "status", 80, statusOf(failed)},
		{"", "status", 60, statusOf(failed)},
		{"", "status -o wide", 80, statusOf(failed)},
		{"", "status --times absolute", 0, statusOf(failed)},
		{"for programs", "status -o json", 0, statusOf(failed)},
	}, append(append(midRunViews(), waitViews()...), append(commitViews(), fleetLineViews()...)...)...)
}

// failedFleet is halted by web1, disabled, and has a commit with a long subject.
func failedFleet() *state.Overview {
	o := upgrade(storedFleet(commitOf("1", "the first"), "web1", "web2"),
		commitOf("2", "a version with a long subject that says what it is about and why somebody wanted it"))
	reason := "site/motd (jobs/site.yaml:1:9): echo a long message about what is wrong here; false: exit code 1: a long message"
	says(o, "web1", state.Rollout, state.Failed, state.Status{Reason: reason, Run: "20000101T000000Z-aaaaaa", Time: before(20 * time.Second)})
	o.Gates["web"] = state.Gate{State: state.Halted, Node: "web1", Failed: []string{"web1"}, Reason: reason, At: before(20 * time.Second)}
	o.Switches["global"] = state.Switch{By: "ada@laptop", At: before(time.Minute), Until: before(-2 * time.Hour),
		Reason: "a reason that does not fit into one line of a terminal, because the operator had the time to write it"}
	return o
}

// midRunViews are fleets whose hosts are in the middle of a run.
func midRunViews() []shown {
	step := storedFleet(commitOf("1", "a long step"), "web1")
	step.Running = map[string]string{}
	says(step, "web1", state.Rollout, state.Running, state.Status{Time: before(9 * time.Second)})
	says(step, "web1", state.Configured, state.Running, state.Status{Step: "step 2 of 3: site/slow: run sleep 60", Time: before(3 * time.Second)})

	killed := storedFleet(commitOf("1", "a deadly validation"), "web1")
	says(killed, "web1", state.Configured, state.Success, state.Status{Reason: "in the middle of a run", Time: before(3 * time.Second)})

	frozen := upgrade(storedFleet(commitOf("1", "the first"), "web1"), commitOf("2", "a deadly step"))
	frozen.Switches["role web"] = state.Switch{AllChanges: true, By: "ada@laptop", At: before(time.Second)}
	says(frozen, "web1", state.Rollout, state.Running, state.Status{Time: before(9 * time.Second)})
	says(frozen, "web1", state.Configured, state.Pending, state.Status{Kind: state.WaitFreeze, Gate: "role web (all changes disabled)",
		Reason: "disabled by ada@laptop; drift is not corrected either", Remedy: state.Act("pullet enable --role web"), Time: before(time.Second)})
	line := frozen.Statuses["web1"][state.Configured]
	line.Revision++ // it was said after the upgrade began
	frozen.Statuses["web1"][state.Configured] = line

	v1, v2 := commitOf("1", "the first release"), commitOf("2", "all at once")
	v1.Release, v2.Release = "v1", "v2"
	parked := upgrade(storedFleet(v1, "web1", "web2"), v2)
	parked.Listed = map[string]string{"web1": "web", "web2": "web", "web3": "web"}
	for _, node := range []string{"web1", "web2"} {
		says(parked, node, state.Rollout, state.Pending, state.Status{
			Kind: state.WaitBarrier, Gate: "barrier site/together", Reason: "barrier site/together: not arrived yet: web3 (never seen)",
			Remedy: state.Act("start web3, remove it from nodes/, or give it up: pullet decommission web3"), Parked: true,
			Holders: []state.Holder{{Node: "web3"}}, Time: before(8 * time.Second), Since: before(8 * time.Second),
		})
		says(parked, node, state.Configured, state.Running, state.Status{Step: "step 1 of 4: site/short", Time: before(9 * time.Second)})
	}
	return []shown{
		{"a step that takes long, with its place in the run", "status", 0, statusOf(step)},
		{"", "status -o json", 0, statusOf(step)},
		{"a host that was killed in the middle of a run", "status", 0, statusOf(killed)},
		{"one that was killed in its upgrade, and frozen since, does not look as if it worked", "status", 0, statusOf(frozen)},
		{"hosts at a barrier show it and not their last step, and the release that they still run", "status", 0, statusOf(parked)},
		{"", "status -o json", 0, statusOf(parked)},
	}
}
