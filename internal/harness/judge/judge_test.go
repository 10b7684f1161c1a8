package judge

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/internal/harness/rules"
)

// shorthand returns a log from lines that are shorthand: "db1 work v1 #20" is a step from its begin to its end under
// claim 20, "db1+ work" is its begin alone, "db1- work" its end, "db1-! work" one that failed, with the version and
// claim as the node had them last. Other lines are as in a log.
func shorthand(t *testing.T, versions []*rules.Version, lines ...string) *Log {
	t.Helper()
	var b strings.Builder
	for _, v := range versions {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "version %s\n", text)
	}
	last, pid := map[string][2]string{}, 0
	pids := map[string]int{}
	for _, line := range lines {
		word := strings.Fields(line)
		who := strings.TrimRight(word[0], "+-!")
		if len(word) < 2 || !slices.Contains([]string{rules.Work, rules.Serial, rules.Token, rules.Join, rules.Meet, rules.Behind, rules.Last, "run1"}, word[1]) {
			fmt.Fprintln(&b, line)
			continue
		}
		if len(word) > 2 {
			last[who] = [2]string{word[2], strings.TrimPrefix(word[3], "#")}
		}
		node, _, _ := strings.Cut(who, "@") // web1@clone is web1 on another host
		kind, step := word[0][len(who):], node+" "+who+" "+last[who][0]+" "+word[1]+" "+last[who][1]
		if kind == "" || kind == "+" {
			pid++
			pids[who] = pid
			fmt.Fprintf(&b, "begin %s %d\n", step, pid)
		}
		if kind != "+" {
			fmt.Fprintf(&b, "end %s %d %d\n", step, pids[who], strings.Count(kind, "!"))
		}
	}
	l, err := Read(b.String())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// judgedRules returns the rules of the logs of TestStormJudge, with a change: edge1 is the canary, web depends on db,
// and one node of a group may change at a time.
func judgedRules(change func(*rules.Rules)) *rules.Rules {
	r := &rules.Rules{Canary: map[string]bool{"edge1": true}, Limit: 1, Depends: true, Serial: 1, OnLost: "hold",
		Roles: map[string]string{"edge1": "edge", "edge2": "edge", "edge3": "edge", "db1": "db", "db2": "db", "web1": "web"}}
	change(r)
	return r
}

// TestStormJudge: a log that breaks a promise is a breach of that promise and of no other.
func TestStormJudge(t *testing.T) {
	same := func(*rules.Rules) {}
	two := func(r *rules.Rules) { r.Limit = 2 }
	release := func(r *rules.Rules) { r.OnLost = "release" }
	canary := []string{"current 0 10 v1 v1", "edge1 work v1 #11", "edge1 serial", "edge1 last"}
	db1, db2 := []string{"db1 work v1 #20", "db1 token", "db1 join", "db1 meet"}, []string{"db2 work v1 #22", "db2 join", "db2 meet"}
	db := slices.Concat(canary, db1, db2, []string{"db1 behind v1 #24", "db1 last", "db2 behind v1 #26", "db2 last"})
	both := func(head []string, tail ...string) []string { return append(slices.Clone(head), tail...) }
	for _, c := range []struct {
		name     string
		promises string // that are broken, "" for a log that is whole
		one, two func(*rules.Rules)
		log      []string
	}{
		{"a rollout from end to end", "", same, same, both(db, "web1 work v1 #30", "web1 join", "web1 meet", "web1 behind v1 #31", "web1 last", "edge2 work v1 #32", "edge2 last")},
		{"limit: two at a time where one may", "limit", same, same, both(canary, "db1+ work v1 #20", "db2 work v1 #22", "db1- work")},
		{"limit: between the steps of one another one begins", "limit", same, same, both(canary, "db1 work v1 #20", "db2 work v1 #22", "db1 token")},
		{"limit: two where two may", "", two, same, both(canary, "db1+ work v1 #20", "db2 work v1 #22", "db1- work")},
		{"limit: three where two may", "limit", func(r *rules.Rules) { two(r); r.Roles["db3"] = "db" }, same, both(canary, "db1+ work v1 #20", "db2+ work v1 #22", "db3 work v1 #23", "db1- work", "db2- work")},
		{"limit: the older claim's first step comes later", "limit", same, same, both(canary, "db2+ work v1 #22", "db1 work v1 #20", "db2- work")},
		{"limit: the next one waits", "", same, same, both(canary, "db1 work v1 #20", "db2 work v1 #22", "db1 token v1 #24")},
		{"limit: a node of another group becomes a canary", "limit", same, func(r *rules.Rules) { r.Canary["db1"] = true }, both(canary, "db1+ work v1 #20", "current 0 40 v2 v2", "edge1 work v2 #41", "db1- work", "edge1 last")},
		{"limit: a canary beside a node of its role", "limit", same, same, both(canary, "edge2+ work v1 #20", "current 0 40 v2 v2", "edge1 work v2 #41", "edge2- work")},
		{"limit: a node of its role beside a canary", "limit", same, func(r *rules.Rules) { r.Canary = map[string]bool{"edge3": true} }, both(canary[:1], "edge1+ work v1 #11", "current 0 40 v2 v2", "edge3 last v2 #41", "edge1- work")},
		{"limit: two of a role, which may be two", "", same, two, both(canary, "edge2+ work v1 #20", "current 0 40 v2 v2", "edge1 work v2 #41", "edge2- work")},
		{"limit: a node of its role waits for the canary", "", same, same, both(canary, "edge2+ work v1 #20", "edge2- work", "current 0 40 v2 v2", "idle 0 40 edge2 on", "edge1 work v2 #41", "edge1 last", "idle 0 42 edge2 off", "edge2 work v2 #20")},
		{"limit: a canary is one no more", "limit", same, func(r *rules.Rules) { r.Canary = map[string]bool{} }, both(canary[:1], "edge1+ work v1 #11", "current 0 40 v2 v2", "edge2 work v2 #41", "edge1- work")},
		{"limit: a failed canary is one no more, and others begin", "limit", same, func(r *rules.Rules) { r.Canary = map[string]bool{} }, both(canary[:1], "edge1+ work v1 #11", "edge1-! work", "current 0 40 v2 v2", "edge2+ work v2 #41", "moved 0 42 edge1 11", "edge1 work v2 #42", "edge2- work")},
		{"limit: two that change are of one group now, and go on", "", func(r *rules.Rules) { r.Depends = false }, func(r *rules.Rules) { r.Mapped = true }, both(canary, "db1+ work v1 #20", "web1+ work v1 #21", "current 0 40 v2 v2", "edge1 work v2 #41", "edge1 last", "db1- work", "moved 0 45 db1 20", "db1 work v2 #45", "web1- work")},
		{"limit: a claim that moved twice", "limit", func(r *rules.Rules) { r.Depends = false }, func(r *rules.Rules) { r.Mapped = true }, both(canary, "db1+ work v1 #20", "current 0 40 v2 v2", "edge1 work v2 #41", "edge1 last", "moved 0 42 db1 20", "moved 0 44 db1 42", "web1+ work v2 #43", "db1- work", "db1 work v2 #44", "web1- work")},
		{"limit: it left the group, and waits for the canaries", "", func(r *rules.Rules) { r.Depends = false }, func(r *rules.Rules) { r.Roles["db1"] = "web" }, both(canary, "db1+ work v1 #20", "db1- work", "current 0 40 v2 v2", "edge1 work v2 #41", "edge1 last", "moved 0 42 db1 20", "idle 0 43 db1 on", "db2+ work v2 #44", "idle 0 45 db1 off", "db1 work v2 #42", "db2- work")},
		{"limit: it left the group, waited for the canaries, and goes on", "", func(r *rules.Rules) { r.Depends = false }, func(r *rules.Rules) { r.Roles["db1"] = "web" }, both(canary, "db1+ work v1 #20", "db1- work", "current 0 40 v2 v2", "edge1 work v2 #41", "edge1 last", "moved 0 42 db1 20", "idle 0 43 db1 on", "idle 0 44 db1 off", "db2+ work v2 #45", "db1 work v2 #42", "db2- work")},
		{"limit: it left the group, and goes on at once", "limit", func(r *rules.Rules) { r.Depends = false }, func(r *rules.Rules) { r.Roles["db1"] = "web" }, both(canary, "db1+ work v1 #20", "db1- work", "current 0 40 v2 v2", "edge1 work v2 #41", "edge1 last", "moved 0 42 db1 20", "db2+ work v2 #45", "db1 work v2 #42", "db2- work")},
		{"dependencies: who was silent before is given up", "", release, release, both(canary, "silent 0 39 db1", "current 0 40 v2 v2", "edge1 work v2 #41", "edge1 last", "db2 last v2 #42", "web1 work v2 #43")},
		{"dependencies: who was silent came back before the version", "dependencies", release, release, both(canary, "silent 0 38 db1", "alive 0 39 db1", "current 0 40 v2 v2", "edge1 work v2 #41", "edge1 last", "db2 last v2 #42", "web1 work v2 #43")},
		{"limit: it was taken back", "", same, same, both(canary, "db1+ work v1 #20", "lost 0 21 db1 20", "db2 work v1 #22", "db1- work")},
		{"limit: it was taken back later", "limit", same, same, both(canary, "db1+ work v1 #20", "lost 0 23 db1 20", "db2 work v1 #22", "db1- work")},
		{"limit: the node was given up", "", same, same, both(canary, "db1+ work v1 #20", "decommission db1", "db2 work v1 #22", "db1- work")},
		{"limit: its commands were killed, and it holds nothing", "", same, same, both(canary, "db1+ work v1 #20", "gone 4", "db2 work v1 #22")},
		{"limit: it goes on under the claim after a kill", "limit", same, same, both(canary, "db1+ work v1 #20", "gone 4", "db2 work v1 #22", "db1 work")},
		{"limit: its commands were killed, which is a host fault", "", same, same, both(canary, "db1+ work v1 #20", "sick db1", "gone 4", "db2 work v1 #22", "db1 work")},
		{"limit: a host fault leaves room", "", same, same, both(canary, "db1+ work v1 #20", "sick db1", "db2 work v1 #22", "db1- work")},
		{"total: a third", "total", func(r *rules.Rules) { r.Total = 2; r.Depends = false }, same, both(canary, "db1+ work v1 #20", "edge2+ work v1 #22", "web1 work v1 #23", "db1- work", "edge2- work")},
		{"total: a second", "", func(r *rules.Rules) { r.Total = 2; r.Depends = false }, same, both(canary, "db1+ work v1 #20", "web1 work v1 #23", "db1- work")},
		{"total: it is new, and those of before count", "total", same, func(r *rules.Rules) { r.Total = 1 }, both(canary, "db1+ work v1 #20", "current 0 40 v2 v2", "edge1 work v2 #41", "db1- work")},
		{"serialize: one by one", "", two, same, both(canary, "db1 serial v1 #20", "db2 serial v1 #22", "db1 meet")},
		{"serialize: beside each other", "serialize", two, same, both(canary, "db1+ serial v1 #20", "db2 serial v1 #22", "db1- serial")},
		{"serialize: another job", "", func(r *rules.Rules) { two(r) }, same, both(canary, "db1+ serial v1 #20", "edge2 serial v1 #22", "db1- serial")},
		{"barrier: before all came", "barrier", same, same, both(canary, slices.Concat(db1, []string{"db1 behind"})...)},
		{"barrier: who was there is in its step", "barrier", two, same, both(canary, slices.Concat(db1[:3], []string{"db2+ meet v1 #22", "db1 meet", "db1 behind", "db2- meet"})...)},
		{"barrier: who came failed", "barrier", two, same, both(canary, slices.Concat(db1, []string{"db2-! meet v1 #22", "db1 behind"})...)},
		{"barrier: who was disabled is left out", "", same, same, both(canary, slices.Concat([]string{"switch 0 19 host/db2 off"}, db1, []string{"db1 behind"})...)},
		{"barrier: who was disabled in the middle of it is not", "barrier", two, same, both(canary, slices.Concat([]string{"db2 work v1 #18", "switch 0 19 role/db off", "switch 0 20 role/db -"}, []string{"db1 work v1 #21", "db1 token", "db1 join", "db1 meet"}, []string{"db1 behind"})...)},
		{"barrier: who was enabled before the version is in it", "barrier", same, same, both([]string{"switch 0 2 host/db2 off", "switch 0 3 host/db2 -"}, slices.Concat(canary, db1, []string{"db1 behind"})...)},
		{"dependencies: before db is through", "dependencies", same, same, both(canary, slices.Concat(db1, []string{"web1 work v1 #30"})...)},
		{"dependencies: the last step of db failed", "dependencies", same, same, both(slices.Concat(canary, db1, db2, []string{"db1 behind v1 #24", "db1 last", "db2 behind v1 #28", "db2+ last", "db2-! last"}), "web1 work v1 #30")},
		{"dependencies: before the canary is through", "dependencies", same, same, []string{"current 0 10 v1 v1", "edge1 work v1 #11", "db1 work v1 #12", "edge1 last"}},
		{"soak: the canaries are watched", "soak", same, same, both(canary, "soak 0 15 v1 canary on", "edge2 work v1 #20")},
		{"soak: they were", "", same, same, both(canary, "soak 0 15 v1 canary on", "soak 0 18 v1 canary off", "edge2 work v1 #20")},
		{"elections: once for a version", "", same, same, both(canary, "db1 token v1 #20", "current 0 40 v2 v2", "edge1 work v2 #41", "edge1 last", "db1 token v2 #50")},
		{"elections: twice", "elections", same, same, both(canary, "db1 token v1 #20", "db2 token v1 #22")},
		{"elections: again by who did it", "elections", same, same, both(canary, "db1 token v1 #20", "db1 token v1 #22")},
		{"elections: cut off, and again", "elections", same, same, both(canary, "db1+ token v1 #20", "gone 4", "db1 token v1 #22")},
		{"elections: it failed, and again", "", same, same, both(canary, "db1+ token v1 #20", "db1-! token", "db1 token v1 #20")},
		{"results: one for all", "", same, same, both(canary, "db1 token v1 #20", "value db1 v1 a", "value db2 v1 a")},
		{"results: another one", "results", same, same, both(canary, "db1 token v1 #20", "value db1 v1 a", "value db2 v1 b")},
		{"halt: admitted after it", "halt", same, same, both(canary, "gate 0 21 v1 db halted", "db2 work v1 #22")},
		{"halt: after all groups were", "halt", same, same, both(canary, "gate 0 21 v1 * halted", "db2 work v1 #22")},
		{"halt: under an older claim", "", same, same, both(canary, "gate 0 21 v1 db halted", "db2 work v1 #20")},
		{"halt: resumed", "", same, same, both(canary, "gate 0 21 v1 db halted", "gate 0 23 v1 db open", "db2 work v1 #24")},
		{"halt: of another version", "", same, same, both(canary, "gate 0 21 v1 edge halted", "current 0 40 v2 v2", "edge1 work v2 #41")},
		{"pause: admitted in it", "pause", same, same, both(canary, "switch 0 21 pause off", "db2 work v1 #22")},
		{"pause: lifted", "", same, same, both(canary, "switch 0 21 pause off", "switch 0 23 pause -", "db2 work v1 #24")},
		{"disable: the role", "disable", same, same, both(canary, "switch 0 21 role/db off", "db2 work v1 #22")},
		{"disable: the host was enabled", "", same, same, both(canary, "switch 0 20 role/db off", "switch 0 21 host/db2 on", "db2 work v1 #22")},
		{"disable: another version than the one that is enabled", "disable", same, same, both(canary, "switch 0 21 role/db v2", "db2 work v1 #22")},
		{"disable: enabled before a compaction, and etcd was restored", "", same, same, both(canary, "switch 0 12 host/db2 off", "switch 0 13 host/db2 -", "restored 1", "kept 1 13", "accepted", "db2 work v1 #22")},
		{"disable: before a compaction, and etcd was restored", "disable", same, same, both(canary, "switch 0 13 host/db2 off", "restored 1", "kept 1 13", "accepted", "db2 work v1 #22")},
		{"disable: it is enabled in a future that was lost", "disable", same, same, both(canary, "switch 0 12 host/db2 off", "switch 0 15 host/db2 -", "restored 1", "kept 1 13", "accepted", "db2 work v1 #22")},
		{"halt: before a compaction, and etcd was restored twice", "halt", same, same, both(canary, "gate 0 12 v1 db halted", "restored 1", "kept 1 13", "accepted", "restored 2", "kept 2 14", "accepted", "db2 work v1 #22")},
		{"halt: the copy was older", "", same, same, both(canary, "gate 0 14 v1 db halted", "restored 1", "kept 1 13", "accepted", "db2 work v1 #22")},
		{"window: it is closed", "window", func(r *rules.Rules) { r.Closed = true }, same, both(canary, "edge2 work v1 #20")},
		{"forward: back to the version before", "forward", same, same, both(canary, "edge2 work v1 #20", "current 0 40 v2 v2", "edge1 work v2 #41", "edge1 last", "edge1 work v1 #44")},
		{"forward: an operator went back", "", same, same, both(canary, "edge2 work v1 #20", "current 0 40 v2 v2", "edge1 work v2 #41", "edge1 last", "current 0 43 v1 v1.1", "edge1 work v1 #44")},
		{"forward: its disk was older", "", same, same, both(canary, "edge2 work v1 #20", "current 0 40 v2 v2", "edge1 work v2 #41", "edge1 last", "reverted edge1", "edge1 work v1 #44")},
		{"versions: one that the fleet was never at", "versions", same, same, []string{"current 0 10 v1 v1", "edge1 work v3 #11"}},
		{"claims: without one", "claims", same, same, both(canary, "db1 work v1 #0")},
		{"claims: drift", "", same, same, both(canary, "edge1 serial v1 #0")},
		{"abandoned: the step in progress and one more", "", two, same, both(canary, "db1+ work v1 #20", "current 0 40 v2 v2", "db1- work", "db1 token")},
		{"abandoned: two more", "abandoned", two, same, both(canary, "db1+ work v1 #20", "current 0 40 v2 v2", "db1- work", "db1 token", "db1 join")},
		{"abandoned: back to it", "", two, same, both(canary, "db1+ work v1 #20", "current 0 40 v2 v2", "current 0 41 v1 v1.1", "db1- work", "db1 token", "db1 join")},
		{"without etcd: the step in progress and one more", "", same, same, both(canary, "db1+ work v1 #20", "away", "db1- work", "db1 token", "back", "db1 join")},
		{"without etcd: two more", "without etcd", same, same, both(canary, "db1+ work v1 #20", "away", "db1- work", "db1 token", "db1 join", "back")},
		{"restore: who goes on is not counted", "limit", same, same, both(canary, "db1+ work v1 #20", "restored 1", "accepted", "current 1 10 v1 v1", "db2 work v1 #15", "db1- work")},
		{"restore: before it was accepted", "restore", same, same, both(canary, "restored 1", "kept 1 11", "switch 1 14 store off", "edge2 work v1 #15", "switch 1 16 store -", "accepted")},
		{"restore: who is in the middle of it puts its claim back", "", same, same, both(canary, "db1 work v1 #20", "restored 1", "kept 1 11", "switch 1 14 store off", "putback 1 15 db1", "db1 token v1 #15", "switch 1 16 store -", "accepted")},
		{"restore: who puts its claim back counts", "limit", same, same, both(canary, "db1 work v1 #20", "restored 1", "kept 1 11", "switch 1 14 store off", "putback 1 15 db1", "switch 1 16 store -", "accepted", "db2 work v1 #17", "db1 token v1 #15")},
		{"restore: it gave its claim back, and puts it back long after", "", same, same, both(canary, "db1 work v1 #20", "db2 work v1 #21", "db2 token", "restored 1", "kept 1 21", "switch 1 22 store off", "switch 1 23 store -", "accepted", "putback 1 24 db1", "db1 token v1 #24")},
		{"restore: a claim that was put back and never seen before", "", same, same, both(canary, "restored 1", "kept 1 11", "switch 1 14 store off", "putback 1 15 db1", "switch 1 16 store -", "accepted", "db1 work v1 #15")},
		{"abandoned: etcd was restored, and the fleet is back at it", "", two, same, both(canary, "db1+ work v1 #20", "current 0 40 v2 v2", "restored 1", "kept 1 30", "db1- work", "db1 token", "db1 join")},
		{"restore: after it was accepted", "", same, same, both(canary, "restored 1", "kept 1 11", "switch 1 14 store off", "switch 1 15 store -", "accepted", "edge2 work v1 #16")},
		{"restore: nobody who knows better came", "", same, same, both(canary, "db1+ work v1 #20", "restored 1", "kept 1 11", "db2 work v1 #15", "db1- work")},
		{"restore: who knows better came before", "limit", same, same, both(canary, "db1+ work v1 #20", "restored 1", "kept 1 11", "switch 1 14 store off", "switch 1 15 store -", "accepted", "db2 work v1 #16", "db1- work")},
		{"total: it waits for other groups, and gave its place back", "", func(r *rules.Rules) { r.Total = 1; r.Depends = false }, same, both(canary, "idle 0 21 db1 on", "web1 work v1 #22", "idle 0 23 db1 off", "db1 work v1 #20")},
		{"total: it does not wait any more", "total", func(r *rules.Rules) { r.Total = 1; r.Depends = false }, same, both(canary, "idle 0 21 db1 on", "idle 0 22 db1 off", "web1 work v1 #23", "db1 work v1 #20")},
		{"one host a node: a clone", "one host a node", same, same, both(canary, "db1+ work v1 #20", "db1@clone work v1 #20", "db1- work")},
		{"one host a node: in turns", "one host a node", same, same, both(canary, "db1 work v1 #20", "db1@clone token v1 #20", "db1 join")},
		{"one host a node: beside the command of a pull that was killed", "one host a node", same, same, both(canary, "db1+ work v1 #20", "db1 work v1 #20")},
		{"run: three at a time", "run", same, same, both(canary, "db1+ run1 - #0", "db2+ run1 - #0", "edge2+ run1 - #0", "db1- run1", "db2- run1", "edge2- run1")},
		{"run: twice on a host", "run", same, same, both(canary, "db1 run1 - #0", "db1 run1 - #0")},
		{"run: a node of the stage before is in it", "run", same, same, both(canary, "given 0 15 run1 db1,db2;edge2", "db1 run1 - #0", "db2+ run1 - #0", "edge2 run1 - #0", "db2- run1")},
		{"run: it failed in the stage before", "run", same, same, both(canary, "given 0 15 run1 db1;edge2", "db1+ run1 - #0", "db1-! run1", "edge2 run1 - #0")},
		{"run: stage after stage", "", same, same, both(canary, "given 0 15 run1 db1,db2;edge2", "db1 run1 - #0", "decommission db2", "edge2 run1 - #0")},
		{"run: twice, and etcd was restored", "", same, same, both(canary, "db1 run1 - #0", "restored 1", "kept 1 11", "accepted", "db1 run1 - #0")},
		{"run: two at a time", "", same, same, both(canary, "db1+ run1 - #0", "db2 run1 - #0", "db1- run1")},
	} {
		t.Run(c.name, func(t *testing.T) {
			one := judgedRules(c.one)
			second := judgedRules(c.two)
			j := Judge(shorthand(t, []*rules.Version{one.Version(1, "v1"), second.Version(2, "v2")}, c.log...))
			broken := []string{}
			for _, b := range j.Breaches {
				if !slices.Contains(broken, b.Promise) {
					broken = append(broken, b.Promise)
				}
			}
			if strings.Join(broken, ", ") != c.promises {
				t.Errorf("broken: %q, want %q\n%s", strings.Join(broken, ", "), c.promises, j)
			}
		})
	}
}

// TestStormLog judges a log that a storm kept, again: PULLET_STORM_LOG names it.
func TestStormLog(t *testing.T) {
	path := os.Getenv("PULLET_STORM_LOG")
	if path == "" {
		t.Skip("PULLET_STORM_LOG names no log")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Read(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if j := Judge(l); len(j.Breaches) > 0 {
		t.Error(j)
	}
}
