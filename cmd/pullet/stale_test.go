package main

import (
	"regexp"
	"testing"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// TestStaleWait: what a waiting node said when it looked last is not repeated where its holder is lost or its role
// halted since.
func TestStaleWait(t *testing.T) {
	ada, bob := state.Switch{AllChanges: true, By: "ada"}, state.Switch{AllChanges: true, By: "bob"}
	for name, c := range map[string]struct {
		change func(o *state.Overview)
		want   string
	}{
		"nothing": {func(*state.Overview) {}, "web1 holds it (alive)|no action needed"},
		"lost": {func(o *state.Overview) { o.Alive["web1"] = false },
			"web1 holds it (alive); since its last pull: web1 (not answering)|start web1 again, or give it up: pullet decommission web1"},
		"free": {func(o *state.Overview) { o.Slots = nil }, "web1 holds it (alive); since its last pull: web1 (it holds none)|it looks again at its next pull"},
		"killed": {func(o *state.Overview) { o.Times["web1"] = state.LeaseTimes{Age: time.Minute, Left: time.Hour} },
			"web1 holds it (alive); no pull of web1 is at work since TIME|its next pull goes on, or it counts as lost from TIME: " +
				"then start web1 again, or give it up: pullet decommission web1"},
		"halted": {func(o *state.Overview) { o.Gates["web"] = state.Gate{State: state.Halted, Reason: "x"} },
			"role web (halted): x|push a commit that fixes it, or, when it was the host: pullet rollout resume"},
		"frozen": {func(o *state.Overview) {
			o.Gates["web"] = state.Gate{State: state.Halted, Reason: "x"}
			o.Switches = map[string]state.Switch{"global": ada}
		}, "global (all changes disabled): disabled by ada; drift is not corrected either|pullet enable --global"},
		"frozen twice": {func(o *state.Overview) {
			o.Switches = map[string]state.Switch{"global": ada, "role web": {By: "ada"}, "host web2": bob}
		}, "host web2 (all changes disabled): disabled by bob; drift is not corrected either|pullet enable --host web2"},
		"an exception": {func(o *state.Overview) {
			o.Switches = map[string]state.Switch{"global": ada, "host web2": {Enabled: true, By: "bob"}, "host web1": {Enabled: true, By: "bob"}}
		}, "web1 holds it (alive)|no action needed"},
		"disabled before paused": {func(o *state.Overview) {
			o.Switches = map[string]state.Switch{"pause": {By: "ada"}, "role web": {By: "bob", Reason: "disks"}}
		}, "role web (disabled): disabled by bob: disks|pullet enable --role web"},
		"paused before halted": {func(o *state.Overview) {
			o.Switches = map[string]state.Switch{"pause": {By: "ada"}}
			o.Gates[state.AllGroups] = state.Gate{State: state.Halted, By: "bob"}
		}, "the rollout (paused): paused by ada|pullet rollout resume"},
	} {
		o := waitsOverview(state.Status{Kind: state.WaitSlot, Reason: "web1 holds it (alive)", Remedy: state.NoAction(), Holders: []state.Holder{{Node: "web1", Alive: true}}})
		o.Slots = map[string]map[string]state.Claim{"web": {"0": {Node: "web1"}}}
		c.change(o)
		checkRow(t, name, o, c.want)
	}
}

// waitsOverview is a fleet of two nodes, in which web2 waits for version v2.
func waitsOverview(st state.Status) *state.Overview {
	st.Version = "v2"
	return &state.Overview{
		Current: &state.Version{ID: "v2"}, Nodes: map[string]state.Node{"web1": {Name: "web1", Role: "web"}, "web2": {Name: "web2", Role: "web"}},
		Alive: map[string]bool{"web1": true, "web2": true}, Gates: map[string]state.Gate{}, Times: map[string]state.LeaseTimes{}, Gone: map[string]bool{},
		Switches: map[string]state.Switch{}, Running: map[string]string{},
		Statuses: map[string]map[string]state.StatusLine{"web2": {state.Rollout: {State: state.Pending, Status: st, Revision: 5}}},
	}
}

// checkRow compares the reason of web2, and what clears it, without the times in it.
func checkRow(t *testing.T, name string, o *state.Overview, want string) {
	t.Helper()
	clockTime := regexp.MustCompile(`\d\d:\d\d:\d\d`)
	for _, n := range viewOf(o).Nodes {
		if got := clockTime.ReplaceAllString(n.Why+"|"+n.Clear, "TIME"); n.Node == "web2" && got != want {
			t.Errorf("%s: got  %s\nwant %s", name, got, want)
		}
	}
}

// TestOthersSince: a wait for another node is judged by how that node is now, whoever changed that: the node itself, or
// an operator.
func TestOthersSince(t *testing.T) {
	asLost := state.Holder{Node: "web1", Seen: true}
	off, failed, started := state.Holder{Node: "web1", Alive: true, Off: "host web1"}, state.Holder{Node: "web1", Alive: true, Failed: true}, asLost
	started.Took = []string{"init"}
	says := func(o *state.Overview, in string, st state.Status) {
		st.Version = "v2"
		o.Statuses["web1"] = map[string]state.StatusLine{state.Rollout: {State: in, Status: st, Revision: 5}}
	}
	fails := func(o *state.Overview) {
		says(o, state.Failed, state.Status{Unknown: "init", Remedy: state.Act("look")})
	}
	ends := func(o *state.Overview, revision int64) {
		o.Statuses["web1"] = map[string]state.StatusLine{
			state.Configured: {State: state.Success, Status: state.Status{Version: "v2"}, Revision: revision},
		}
	}
	arrives := func(o *state.Overview, gate string) {
		says(o, state.Pending, state.Status{Kind: state.WaitBarrier, Gate: gate, Remedy: state.NoAction()})
		at := o.Statuses["web1"][state.Rollout]
		at.Revision = 6
		o.Statuses["web1"][state.Rollout] = at
	}
	for name, c := range map[string]struct {
		kind   state.WaitKind
		holder state.Holder
		change func(o *state.Overview)
		want   string
	}{
		"still lost": {state.WaitRole, asLost, func(o *state.Overview) { o.Alive["web1"] = false }, "|start web1 again, or give it up: pullet decommission web1"},
		"back":       {state.WaitRole, asLost, func(*state.Overview) {}, "; since its last pull: web1 (alive)|no action needed"},
		"upgraded": {state.WaitRole, asLost, func(o *state.Overview) {
			o.Running["web1"], o.Times["web1"] = "v2", state.LeaseTimes{Age: time.Second, Left: time.Hour}
		}, "; since its last pull: web1 (upgraded)|it looks again at its next pull"},
		"given up": {state.WaitBarrier, asLost, func(o *state.Overview) {
			delete(o.Nodes, "web1")
			delete(o.Alive, "web1")
			o.Gone["web1"] = true
		}, "; since its last pull: web1 (decommissioned)|it looks again at its next pull"},
		"through":         {state.WaitSerialize, off, func(o *state.Overview) { ends(o, 6) }, "; since its last pull: web1 (its pull ended well)|it looks again at its next pull"},
		"ran it":          {state.WaitResult, off, func(o *state.Overview) { ends(o, 6) }, "; since its last pull: web1 (its pull ended well)|it looks again at its next pull"},
		"ended before":    {state.WaitSerialize, off, func(o *state.Overview) { ends(o, 4) }, "; since its last pull: web1 (alive)|no action needed"},
		"arrived":         {state.WaitBarrier, off, func(o *state.Overview) { arrives(o, "g") }, "; since its last pull: web1 (it is there)|it looks again at its next pull"},
		"waits elsewhere": {state.WaitBarrier, off, func(o *state.Overview) { arrives(o, "another") }, "; since its last pull: web1 (alive)|no action needed"},
		"away, and back":  {state.WaitSlot, state.Holder{Node: "web1", Seen: true, Away: true}, func(*state.Overview) {}, "; since its last pull: web1 (alive)|it looks again at its next pull"},
		"disabled":        {state.WaitRole, off, func(o *state.Overview) { o.Switches["host web1"] = state.Switch{By: "ada"} }, "|pullet enable --host web1"},
		"enabled":         {state.WaitRole, off, func(*state.Overview) {}, "; since its last pull: web1 (alive)|no action needed"},
		"failed":          {state.WaitRole, failed, fails, "|fix web1, or push a commit that does (see pullet failures)"},
		"settled": {state.WaitRole, failed, func(o *state.Overview) {
			fails(o)
			o.Settled = map[string]state.Settlement{"init": {Step: "init", By: "ada", Revision: 6, Nodes: []string{"web1"}, Waiting: []string{"web1"}}}
		}, "|web1: settled since by ada: the step runs again at the next pull"},
		"to run again": {state.WaitResult, started, func(o *state.Overview) {
			o.Settled = map[string]state.Settlement{"init": {Step: "init", By: "ada", Revision: 6, Nodes: []string{"web1"}, Waiting: []string{"web1"}}}
		}, "; since its last pull: web1 (alive)|no action needed"},
		"it waits itself": {state.WaitRole, state.Holder{Node: "web1", Alive: true}, func(o *state.Overview) {
			o.Switches["host web1"] = state.Switch{By: "ada"}
			says(o, state.Pending, state.Status{Kind: state.WaitDisabled, Gate: "host web1 (disabled)", Reason: "x", Remedy: state.Act("pullet enable --host web1")})
		}, "; since its last pull: web1 (disabled)|pullet enable --host web1"},
		"it waited itself": {state.WaitRole, state.Holder{Node: "web1", Alive: true}, func(o *state.Overview) {
			says(o, state.Pending, state.Status{Kind: state.WaitGrace, Gate: "the fleet's record (etcd restarted)", Until: time.Now(), Remedy: state.InTime("it ends")})
		}, "|no action needed"},
	} {
		o := waitsOverview(state.Status{Kind: c.kind, Gate: "g", Reason: "as it was", Remedy: lock.RemedyFor(c.holder), Holders: []state.Holder{c.holder}})
		c.change(o)
		checkRow(t, name, o, "as it was"+c.want)
	}
}

// TestCutOff: the row of a node whose pull was killed in the middle of its upgrade says so.
func TestCutOff(t *testing.T) {
	o := waitsOverview(state.Status{Reason: "x"})
	line := o.Statuses["web2"][state.Rollout]
	line.State = state.Running
	o.Statuses["web2"][state.Rollout] = line
	checkRow(t, "at work", o, "x|")
	o.Times["web2"] = state.LeaseTimes{Age: 10 * time.Second, Left: time.Minute}
	checkRow(t, "renewed just now", o, "x|")
	o.Times["web2"] = state.LeaseTimes{Age: time.Minute, Left: time.Hour}
	checkRow(t, "killed", o, "x; no pull of web2 is at work since TIME|its next pull goes on, or it counts as lost from TIME: "+
		"then start web2 again, or give it up: pullet decommission web2")
	o.Running["web2"] = "v2"
	o.Statuses["web2"] = map[string]state.StatusLine{
		state.Configured: {State: state.Running, Status: state.Status{Version: "v2", Step: "step 2 of 2: a/b"}},
	}
	checkRow(t, "killed while it corrected drift", o, "step 2 of 2: a/b; no pull of web2 is at work since TIME|its next pull goes on, or it counts as lost "+
		"from TIME: then start web2 again, or give it up: pullet decommission web2")
	delete(o.Times, "web2")
	checkRow(t, "corrects drift", o, "step 2 of 2: a/b|")
}

// TestNotLookedYet: a node that has not looked at the version says what its next pull waits for.
func TestNotLookedYet(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *state.Overview)
		want   string
	}{
		"nothing": {func(*state.Overview) {}, "no pull since this version was set|" + takesOrWaits},
		"canaries halted": {func(o *state.Overview) { o.Gates["canary"] = state.Gate{State: state.Halted, Reason: "x"} },
			"no pull since this version was set|" + takesOrWaits},
		"a slot is held": {func(o *state.Overview) { o.Slots = map[string]map[string]state.Claim{"web": {"0": {Node: "web1"}}} },
			"no pull since this version was set|" + takesOrWaits},
		"paused": {func(o *state.Overview) { o.Switches["pause"] = state.Switch{By: "ada", Reason: "busy"} },
			"the rollout (paused): paused by ada: busy|pullet rollout resume"},
		"frozen": {func(o *state.Overview) { o.Switches["role web"] = state.Switch{By: "ada", AllChanges: true} },
			"role web (all changes disabled): disabled by ada; drift is not corrected either|pullet enable --role web"},
		"halted": {func(o *state.Overview) { o.Gates["web"] = state.Gate{State: state.Halted, By: "ada", Reason: "slow"} },
			"role web (halted): halted by ada: slow|push a commit that fixes it, or go back: pullet rollout undo, or go on: pullet rollout resume"},
	} {
		o := waitsOverview(state.Status{})
		delete(o.Statuses, "web2")
		c.change(o)
		if checkRow(t, name, o, c.want); viewOf(o).Nodes[1].State != pending {
			t.Errorf("%s: it is %s", name, viewOf(o).Nodes[1].State)
		}
	}
}

// TestLatestLook: of several nodes that wait for the same thing the one counts that looked last, in the order of etcd,
// whatever their clocks say.
func TestLatestLook(t *testing.T) {
	now := time.Now()
	waits := func(node string, since time.Time, said int64) nodeStatus {
		return nodeStatus{Node: node, State: waiting, Gate: "role db", Why: "role db: as " + node + " saw it", Since: since, said: said, Holders: []state.Holder{{Node: "db1"}}}
	}
	early, late := waits("a", now.Add(-time.Hour), 9), waits("b", now, 5) // the clock of a is behind
	for _, nodes := range [][]nodeStatus{{early, late}, {late, early}} {
		if got := waitsOf(&state.Overview{}, nodes); len(got) != 1 || got[0].Reason != "as a saw it" {
			t.Errorf("%+v", got)
		}
	}
}

// TestNextGate: a node at which a halt or a soak is over says what its next pull meets, by the record of now.
func TestNextGate(t *testing.T) {
	halt, soak := state.Status{Kind: state.WaitHalt, Gate: "role can (halted)", Halt: "can"}, state.Status{Kind: state.WaitSoak, Gate: "role can"}
	const goesOn = "it goes on at its next pull"
	for name, c := range map[string]struct {
		st      state.Status
		depends []string
		change  func(o *state.Overview)
		want    string
	}{
		"resumed, through": {halt, []string{"can"}, func(o *state.Overview) { o.Closed["can"] = true }, "lifted since its last pull: role can (halted)|" + goesOn},
		"resumed, its rules not known": {halt, nil, func(*state.Overview) {},
			"role can: not upgraded yet: can1 (alive)|no action needed"},
		"resumed, its own": {state.Status{Kind: state.WaitHalt, Gate: "role web (halted)", Halt: "web"}, nil, func(*state.Overview) {},
			"lifted since its last pull: role web (halted)|" + goesOn},
		"no longer paused": {state.Status{Kind: state.WaitPause, Gate: "the rollout (paused)"}, nil, func(*state.Overview) {},
			"lifted since its last pull: the rollout (paused)|" + goesOn},
		"no longer disabled": {state.Status{Kind: state.WaitDisabled, Gate: "role web (disabled)"}, nil, func(*state.Overview) {},
			"lifted since its last pull: role web (disabled)|" + goesOn},
		"resumed, not through": {halt, []string{"can"}, func(*state.Overview) {}, "role can: not upgraded yet: can1 (alive)|no action needed"},
		"resumed, which failed": {halt, []string{"can"}, func(o *state.Overview) {
			o.Statuses["can1"] = map[string]state.StatusLine{state.Rollout: {State: state.Failed, Status: state.Status{Version: "v2"}, Revision: 5}}
		}, "role can: not upgraded yet: can1 (failed)|fix can1, or push a commit that does (see pullet failures)"},
		"resumed, one is disabled": {halt, []string{"can"}, func(o *state.Overview) { o.Switches["host can1"] = state.Switch{By: "ada"} },
			"role can: not upgraded yet: can1 (disabled)|pullet enable --host can1"},
		"resumed, a halt beside it": {halt, []string{"can", "db"}, func(o *state.Overview) { o.Gates["db"] = state.Gate{State: state.Halted, Reason: "x"} },
			"role db (halted): x|push a commit that fixes it, or, when it was the host: pullet rollout resume"},
		"resumed, a halt of others": {halt, []string{"can"}, func(o *state.Overview) {
			o.Closed["can"], o.Gates["db"] = true, state.Gate{State: state.Halted, Reason: "x"}
		}, "lifted since its last pull: role can (halted)|" + goesOn},
		"resumed, a slot is held": {halt, []string{}, func(o *state.Overview) { o.Slots = map[string]map[string]state.Claim{"web": {"0": {Node: "web1"}}} },
			"lifted since its last pull: role can (halted)|it looks again at its next pull: slots of its group are held by web1"},
		"resumed, its own slot": {halt, []string{}, func(o *state.Overview) { o.Slots = map[string]map[string]state.Claim{"web": {"0": {Node: "web2"}}} },
			"it holds a slot for version -|"},
		"resumed, then a soak": {halt, []string{"can"}, func(o *state.Overview) { o.Closed["can"], o.Soaks["can"] = true, time.Now() },
			"role can: it is upgraded, and watched until TIME before others follow|no action needed"},
		"soaks": {soak, []string{"can"}, func(o *state.Overview) { o.Soaks["can"] = time.Now() }, "as it was|no action needed"},
		"is soaked": {soak, []string{"can"}, func(o *state.Overview) { o.Closed["can"], o.Soaks["db"] = true, time.Now() },
			"role can: its soak ended since the last pull|" + goesOn},
		"is soaked, and the next is not through": {soak, []string{"can", "web"}, func(o *state.Overview) { o.Closed["can"] = true },
			"role web: not upgraded yet: web1 (alive), web2 (alive)|no action needed"},
	} {
		c.st.Reason, c.st.Remedy, c.st.Depends = "as it was", state.NoAction(), c.depends
		o := waitsOverview(c.st)
		o.Nodes["can1"], o.Alive["can1"] = state.Node{Name: "can1", Role: "can"}, true
		o.Closed, o.Soaks = map[string]bool{}, map[string]time.Time{}
		c.change(o)
		checkRow(t, name, o, c.want)
	}
}

// TestDoubtNamesNobody: a node that doubts the fleet's record waits for an operator, and not for whom it waited before.
func TestDoubtNamesNobody(t *testing.T) {
	o := waitsOverview(state.Status{Kind: state.WaitSerialize, Gate: "step x", Reason: "web1 holds it", Until: time.Now(), Holders: []state.Holder{{Node: "web1", Alive: true}}})
	o.Doubting = map[string]state.Doubt{"web2": {Reason: "it was restored", At: time.Now()}}
	v := viewOf(o)
	if len(v.Waits) != 1 || v.Waits[0].Kind != state.WaitStore || len(v.Waits[0].Holders) > 0 || !v.Nodes[1].Until.IsZero() {
		t.Errorf("%+v %+v", v.Waits, v.Nodes[1])
	}
}
