package lock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

func claims(nodes ...string) map[int]state.Claim {
	out := map[int]state.Claim{}
	for i, n := range nodes {
		node, version, _ := strings.Cut(n, "@")
		if node != "" {
			out[i] = state.Claim{Node: node, Version: version, Rollout: version, Since: time.Unix(0, 0)}
		}
	}
	return out
}

// idle are claims whose nodes wait before they begin with a newer version.
func idle(nodes ...string) map[int]state.Claim {
	out := claims(nodes...)
	for i, c := range out {
		c.Idle = true
		out[i] = c
	}
	return out
}

// slots are claims of another group.
func slots(nodes ...string) (out []Held) {
	for i, c := range claims(nodes...) {
		out = append(out, Held{Key: fmt.Sprint("slot/other/", i), Group: "other", Name: "slot other", Claim: c})
	}
	return out
}

// dead are places whose holders left no mark.
func dead(places ...int) map[int]bool {
	out := map[int]bool{}
	for _, i := range places {
		out[i] = true
	}
	return out
}

var (
	halt = state.Gate{State: state.Halted, Node: "x", Reason: "it broke", Failed: []string{"x"}}
	mine = state.Gate{State: state.Halted, Node: "me", Reason: "it broke", Failed: []string{"me"}}
	wind = state.Gate{State: "open", Clock: true}
)

// off is an operator's word against the scope of a name.
func off(what string) *Switched {
	return &Switched{What: what, Clear: "pullet enable --" + what, Switch: state.Switch{By: "op", Reason: "disk swap"}}
}

// decision is a line: the place and that in the fleet, or why it waits; then what is to be put in order.
func (d Decision) String() string {
	out := fmt.Sprintf("place %d of the group, %d of the fleet", d.Index, d.Total)
	if d.Wait != nil {
		out = d.Wait.Error()
	}
	for what, yes := range map[string]bool{
		fmt.Sprint("; reclaim ", d.Reclaim): len(d.Reclaim) > 0, "; stalled": d.Stalled, "; disarm": d.StopClock, "; arm": d.StartClock, "; aside": d.LeaveQueue,
	} {
		if yes {
			out += what
		}
	}
	return out
}

// decideCase is a view of the node "me", which wants "v2", and parts of the decision, divided by |; what begins with !
// is not in it. A claim is written node@version, "" is a free place.
type decideCase struct {
	name string
	view View
	want string
}

func TestDecide(t *testing.T) {
	for _, c := range append(append(append(limitCases, holderCases...), ruleCases...), clockCases...) {
		t.Run(c.name, func(t *testing.T) {
			c.view.Node, c.view.Name, c.view.Scope, c.view.Rollout = "me", "slot web", "role web", "v2"
			got := Decide(c.view).String()
			for part := range strings.SplitSeq(c.want, "|") {
				if no, ok := strings.CutPrefix(part, "!"); ok && strings.Contains(got, no) || !ok && !strings.Contains(got, part) {
					t.Errorf("got  %s\nwant %s", got, part)
				}
			}
		})
	}
}

// limitCases are about who counts.
var limitCases = []decideCase{
	{"nobody there", View{Limit: 1}, "place 0 of the group, -1 of the fleet"},
	{"the first free place", View{Limit: 3, Claims: claims("a@v2", "", "b@v2")}, "place 1 of"},
	{"full", View{Limit: 2, Claims: claims("a@v2", "b@v2")}, "slot web (2 at a time)|a holds it|b holds it|(alive)|no action needed"},
	{"full of an older version", View{Limit: 1, Claims: claims("a@v1")}, "a holds it"},
	{"lowered", View{Limit: 1, Claims: claims("", "", "", "a@v1")}, "a holds it"},
	{"frozen", View{Limit: 0}, "its limit is 0|raise rollout.rollingRules"},
	{"a dead holder", View{Limit: 1, Claims: claims("a@v2"), Dead: dead(0)}, "a holds it|not answering|pullet decommission a|!reclaim"},
	{"an away node counts", View{Limit: 1, Away: []string{"a"}}, "a does not answer|pullet decommission a"},
	{"an away node and a claim", View{Limit: 2, Away: []string{"a"}, Claims: claims("b@v2")}, "a does not answer|b holds it|pullet decommission a"},
	{"many away nodes count", View{Limit: 9, More: 9}, "nodes that do not answer: 9|pullet nodes --missing"},
	{"many away nodes leave room", View{Limit: 10, More: 9}, "place 0 of"},
	{"an away node leaves room", View{Limit: 2, Away: []string{"a"}}, "place 0 of"},
	{"a ticket that cannot be read", View{Limit: 5, Ahead: &Predecessor{Unread: &state.BadRecordError{Key: "queue/x", Clear: "pullet doctor --remove queue/x"}}},
		"slot web|the ticket queue/x, which cannot be read, comes first in the queue|pullet doctor --remove queue/x"},
	{"somebody comes first", View{Limit: 5, Ahead: &Predecessor{Node: "a"}}, "slot web|a comes first in the queue|no action needed"},
	{"somebody comes first, and who holds the place is dead", View{Limit: 1, Ahead: &Predecessor{Node: "a"}, Claims: claims("b@v2"), Dead: dead(0)},
		"slot web|a comes first in the queue, and b holds it|not answering|pullet decommission b"},
	{"somebody comes first, and the group is halted", View{Limit: 1, Ahead: &Predecessor{Node: "a"}, Gate: halt}, "role web (halted)|it broke|!queue"},
	{"the fleet has room", View{Limit: 5, Total: 3, Totals: claims("a@v2", "", "b@v2")}, "place 0 of the group, 1 of the fleet"},
	{"the fleet is full", View{Limit: 5, Total: 2, Totals: claims("a@v2", "b@v2")}, "slots of the fleet (2 at a time)|a holds it|b holds it"},
	{"a claim of another group", View{Limit: 1, Guests: slots("a@v1")}, "slot web (1 at a time)|a holds slot other|counts here|no action needed"},
	{"a claim of another group leaves room", View{Limit: 2, Guests: slots("a@v1")}, "place 0 of"},
	{"a claim of another group and one of its own", View{Limit: 2, Guests: slots("a@v1"), Claims: claims("b@v2")}, "a holds slot other|b holds it"},
	{"a claim without a place in the total", View{Limit: 5, Total: 2, Totals: claims("a@v2"), Slots: slots("a@v2", "b@v1")}, "slots of the fleet (2 at a time)|a holds it|b holds it"},
	{"claims that count twice", View{Limit: 5, Total: 2, Totals: claims("a@v2"), Slots: slots("a@v2", "me@v1")}, "place 0 of the group, 1 of the fleet"},
	{"an idle claim leaves room in the total", View{Limit: 5, Total: 1, Slots: []Held{{Claim: idle("a@v1")[0]}}}, "place 0 of the group, 0 of the fleet"},
	{"the fleet's cap was lowered", View{Limit: 5, Total: 1, Totals: claims("", "", "b@v1")}, "slots of the fleet (1 at a time)|b holds it"},
}

// holderCases are about the node's own claims, and those of lost nodes.
var holderCases = []decideCase{
	{"its own claim", View{Limit: 1, Claims: claims("me@v2")}, "place 0 of the group, -1"},
	{"its own, at a limit of 0", View{Limit: 0, Claims: claims("", "me@v2")}, "place 1 of"},
	{"its own, halted", View{Limit: 1, Claims: claims("me@v2"), Gate: halt}, "place 0 of"},
	{"its own, paused", View{Limit: 1, Claims: claims("me@v2"), Switch: off("pause")}, "place 0 of"},
	{"its own, out of the window", View{Limit: 1, Claims: claims("me@v2"), Closed: "Mon 22:00 UTC"}, "place 0 of"},
	{"its own, disabled", View{Limit: 1, Claims: claims("me@v2"), Switch: off("host me")}, "host me (disabled)|; aside"},
	{"its own, others over the limit", View{Limit: 1, Claims: claims("a@v2", "me@v2")}, "place 1 of"},
	{"its older claim", View{Limit: 1, Claims: claims("", "", "me@v1"), Ahead: &Predecessor{Node: "a"}}, "place 2 of"},
	{"its older claim, halted", View{Limit: 1, Claims: claims("me@v1"), Gate: halt}, "role web (halted)|x failed: it broke|push a commit"},
	{"its older claim, paused", View{Limit: 1, Claims: claims("me@v1"), Switch: off("pause")}, "the rollout (paused)"},
	{"its older claim, frozen", View{Limit: 0, Claims: claims("me@v1")}, "frozen"},
	{"its older claim, out of the window", View{Limit: 1, Claims: claims("me@v1"), Closed: "Mon 22:00 UTC"}, "maintenance window"},
	{"its older claim, what it depends on", View{Limit: 1, Claims: claims("me@v1"), Depends: []Dependency{{Group: "db", Missing: []state.Holder{{Node: "d"}}}}}, "role db|d (never seen)"},
	{"its older claim, a fleet's place too", View{Limit: 1, Total: 1, Claims: claims("me@v1"), Totals: claims("", "", "me@v1")}, "place 0 of the group, 2 of the fleet"},
	{"its older claim, which counts in the total", View{Limit: 1, Total: 1, Claims: claims("me@v1"), Totals: claims("a@v2")}, "place 0 of the group, 1 of the fleet"},
	{"its older claim, idle", View{Limit: 1, Total: 1, Claims: idle("me@v1"), Totals: claims("a@v2")}, "slots of the fleet (1 at a time)|a holds it"},
	{"its older claim, idle, and room", View{Limit: 1, Total: 2, Claims: idle("me@v1"), Totals: claims("a@v2")}, "place 0 of the group, 1 of the fleet"},
	{"its own, idle", View{Limit: 1, Total: 1, Claims: idle("me@v2"), Totals: claims("a@v2")}, "slots of the fleet (1 at a time)|a holds it"},
	{"its own, idle, and room, halted", View{Limit: 1, Total: 2, Claims: idle("me@v2"), Totals: claims("a@v2"), Gate: halt}, "place 0 of the group, 1 of the fleet"},
	{"lost holders are released", View{Limit: 2, Claims: claims("a@v2", "b@v2"), Dead: dead(1), OnLost: Release}, "b holds it|; reclaim [1]"},
	{"only lost ones are", View{Limit: 2, Claims: claims("a@v2", "b@v2"), Dead: map[int]bool{0: false, 1: true}, OnLost: Fail}, "; reclaim [1]"},
	{"lost holders fail", View{Limit: 1, Claims: claims("a@v1", "b@v1"), Dead: dead(0, 1), OnLost: Fail}, "; reclaim [0 1]"},
	{"lost holders of the fleet's places", View{Limit: 5, Total: 1, Claims: claims("a@v2"), Totals: claims("a@v2"), Dead: dead(0), OnLost: Release}, "of the fleet (1|; reclaim [0]"},
	{"room enough: nothing is taken back", View{Limit: 2, Claims: claims("a@v2"), Dead: dead(0), OnLost: Release}, "place 1 of|!reclaim"},
	{"away nodes are released", View{Limit: 1, Away: []string{"a"}, OnLost: Release}, "place 0 of"},
	{"away nodes fail", View{Limit: 1, Away: []string{"a"}, OnLost: Fail}, "place 0 of"},
	{"away nodes are held", View{Limit: 1, Away: []string{"a"}, OnLost: Hold}, "a does not answer"},
}

// ruleCases are about who is let in at all.
var ruleCases = []decideCase{
	{"halted", View{Limit: 5, Gate: halt}, "role web (halted)|x failed: it broke|pullet rollout resume"},
	{"halted by itself", View{Limit: 5, Gate: mine}, "place 0 of"},
	{"all halted", View{Limit: 5, All: state.Gate{State: state.Halted, Reason: "stop"}}, "the rollout (halted): stop"},
	{"all halted by itself", View{Limit: 5, All: mine}, "place 0 of"},
	{"the host disabled", View{Limit: 5, Switch: off("host me")}, "host me (disabled): disabled by op: disk swap; pullet enable --host me|; aside"},
	{"the role disabled", View{Limit: 5, Switch: off("role web")}, "role web (disabled)|!aside"},
	{"all disabled", View{Limit: 5, Switch: off("global")}, "global (disabled)|!aside"},
	{"one version", View{Limit: 5, Switch: &Switched{What: "role web", Switch: state.Switch{Enabled: true, Version: "0123456789"}}}, "role web (one version)|only version 01234567 is admitted"},
	{"paused", View{Limit: 5, Switch: off("pause")}, "the rollout (paused): paused by op: disk swap"},
	{"paused for a while", View{Limit: 5, Switch: &Switched{What: "pause", Switch: state.Switch{Until: time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)}}}, "paused until 2026-01-02 03:04:05"},
	{"paused, before a halt", View{Limit: 5, Switch: off("pause"), Gate: halt}, "(paused)"},
	{"halted, before the window", View{Limit: 5, Gate: halt, Closed: "Mon 22:00 UTC"}, "(halted)"},
	{"out of the window", View{Limit: 5, Closed: "Mon 22:00 UTC"}, "maintenance window of role web: it is closed; it opens Mon 22:00 UTC"},
	{"a dependency is through", View{Limit: 1, Depends: []Dependency{{Group: "db", Closed: true}}}, "place 0 of"},
	{"a dependency is watched", View{Limit: 1, Depends: []Dependency{{Group: "db", Closed: true, Soaking: true}}}, "role db|watched until"},
	{"a dependency is not through", View{Limit: 1, Depends: []Dependency{{Group: "db", Missing: []state.Holder{{Node: "d", Alive: true}, {Node: "e", Seen: true}, {Node: "f"}}}}},
		"role db|d (alive)|e (not answering)|f (never seen)|start e again"},
	{"only one never seen is missing", View{Limit: 1, Depends: []Dependency{{Group: "db", Missing: []state.Holder{{Node: "f"}}}}}, "start f, remove it from nodes/"},
	{"many are missing", View{Limit: 1, Depends: []Dependency{{Group: "db", Missing: []state.Holder{{Node: "d"}}, More: 3}}}, "d (never seen), 3 more"},
	{"a dependency is halted", View{Limit: 1, Depends: []Dependency{{Group: "db", Gate: halt}}}, "role db (halted)|x failed"},
	{"a dependency is through and halted", View{Limit: 1, Depends: []Dependency{{Group: "db", Closed: true, Gate: halt}}}, "role db (halted)"},
	{"the second dependency", View{Limit: 1, Depends: []Dependency{{Group: "db", Closed: true}, {Group: "lb"}}}, "role lb"},
}

// clockCases are about the progress deadline.
var clockCases = []decideCase{
	{"in time", View{Limit: 1, Claims: claims("a@v2"), Timed: true, Ticking: true, Gate: wind}, "a holds it|!stalled|!arm|!disarm"},
	{"stalled", View{Limit: 1, Claims: claims("a@v2"), Timed: true, Gate: wind}, "a holds it|; stalled"},
	{"stalled for the fleet's places", View{Limit: 5, Total: 1, Claims: claims("a@v2"), Totals: claims("a@v2"), Timed: true, Gate: wind}, "; stalled"},
	{"nobody there to be late", View{Limit: 1, Away: []string{"a"}, Timed: true, Gate: wind}, "a does not answer|!stalled"},
	{"not wound", View{Limit: 1, Claims: claims("a@v2"), Timed: true}, "a holds it|; arm|!stalled"},
	{"halted already", View{Limit: 1, Claims: claims("a@v2"), Timed: true, Gate: mine}, "a holds it|!arm|!stalled"},
	{"no deadline", View{Limit: 1, Claims: claims("a@v2")}, "!arm|!stalled"},
	{"paused meanwhile", View{Limit: 1, Claims: claims("a@v2"), Timed: true, Gate: wind, Switch: off("pause")}, "paused|; disarm|!stalled"},
	{"out of the window meanwhile", View{Limit: 1, Claims: claims("a@v2"), Timed: true, Gate: wind, Closed: "Mon"}, "; disarm|!stalled"},
	{"the role disabled meanwhile", View{Limit: 1, Claims: claims("a@v2"), Timed: true, Gate: wind, Switch: off("role web")}, "; disarm"},
	{"only this host disabled", View{Limit: 1, Claims: claims("a@v2"), Timed: true, Gate: wind, Switch: off("host me")}, "!disarm"},
	{"halted meanwhile", View{Limit: 1, Timed: true, Gate: state.Gate{State: state.Halted, Clock: true}}, "(halted)|!disarm"},
}

// TestFrees: a wait for places says whether the place of a node that is lost is freed.
func TestFrees(t *testing.T) {
	for onLost, want := range map[string]bool{"": false, "hold": false, "release": true, "fail": true} {
		d := Decide(View{Node: "me", Limit: 1, OnLost: onLost, Claims: map[int]state.Claim{0: {Node: "other"}}})
		if d.Wait == nil || d.Wait.Frees != want {
			t.Errorf("onLost %q: %+v, want %v", onLost, d.Wait, want)
		}
	}
}
