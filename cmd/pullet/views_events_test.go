package main

import (
	"time"

	"github.com/pullet/pullet/state"
)

// storedEvent is an event of web1 about hosts.
func storedEvent(id, name string, data map[string]any, hosts ...string) state.Event {
	return state.Event{ID: id, Name: name, By: "web1", Time: before(time.Minute), Hosts: hosts, Data: data}
}

func eventsViews() []shown {
	lines := []eventLine{
		{Happened: state.Happened{Event: storedEvent("e1", "backup/failed", map[string]any{"disk": "sda"}, "web1", "web2"),
			Count: 3, Last: before(50 * time.Second), From: []string{"web1", "web2"}}},
		{Happened: state.Happened{Event: storedEvent("e2", "backup/done", map[string]any{"n": 2.0, "text": "two words"}, "web1"), Count: 1,
			Last: before(time.Minute), From: []string{"web1"}}},
		{Happened: state.Happened{Event: storedEvent("e3", "backup/failed", nil, "web2"), Count: 1, Last: before(time.Minute), Again: true}},
	}
	caused := storedEvent("e4", "backup/again", nil)
	caused.Chain = []state.Cause{{Run: "gone", Reaction: "clean"}}
	lines = append(lines, eventLine{Happened: state.Happened{Event: caused, Count: 4, Last: before(time.Minute), IDs: []string{"e5"}}},
		unread(storedEvent("e6", "backup/late", map[string]any{"disk": "sda"}, "web9", "web8", "web7")))
	of := func(lines []eventLine, follow bool) func(a *app) error {
		return func(a *app) error {
			e := eventsCmd{app: a, follow: follow}
			if follow {
				return e.more(lines, true)
			}
			return e.print(lines)
		}
	}
	one := func(line eventLine, more func(v *eventView)) func(a *app) error {
		v := &eventView{eventLine: line}
		more(v)
		return func(a *app) error { return onPage(a.out, v.print) }
	}
	run := newReactionsView(nil, nil, storedRuns()).Runs[0]
	return []shown{
		{"", "events", 0, of(nil, false)},
		{"one line for those that say the same; told before; of a reaction; not read by the reactor yet", "events", 0, of(lines, false)},
		{"", "events", 60, of(lines, false)},
		{"", "events -o wide", 0, of(lines, false)},
		{"", "events -o json", 0, of(lines[:2], false)},
		{"", "events --follow", 0, of(lines, true)},
		{"", "events --follow -o json", 0, of(lines[:2], true)},
		{"what an event started", "events show e1", 0, one(lines[0], func(v *eventView) {
			v.Started = []runLine{run}
			v.Counted = []reactionLine{{Reaction: "often", Event: "backup/failed", Why: "it occurred too rarely", Next: before(-time.Minute)}}
		})},
		{"what caused it", "events show e4", 0, one(lines[3], func(v *eventView) {
			v.Causes = []eventCause{{Cause: caused.Chain[0]}}
		})},
		{"one that was told before", "events show e3", 0, one(lines[2], func(*eventView) {})},
		{"one that the reactor has not read", "events show e6", 0, one(lines[4], func(*eventView) {})},
	}
}

// storedRuns are runs of reactions: at work, failed, through, without hosts, halted.
func storedRuns() []state.ReactionStatus {
	event := state.Reacted{Event: storedEvent("e1", "backup/failed", nil, "web1"), Occurrences: 2}
	run := func(id, reaction string, results ...state.ReactionResult) state.ReactionStatus {
		return state.ReactionStatus{ReactionRun: state.ReactionRun{ID: id, Reaction: reaction, Event: event, Hosts: []string{"web1", "web2"},
			Version: "v1", By: "web1", At: before(30 * time.Second)}, Open: true, Results: results}
	}
	result := func(node, value, reason, remedy string) state.ReactionResult {
		r := state.ReactionResult{Node: node, State: value, Reason: reason, Remedy: remedy, Started: before(20 * time.Second)}
		if value != state.ReactionWaits && value != state.Running {
			r.Ended, r.Changed, r.Run = before(17*time.Second), 2, "20000101T000000Z-aaaaaa"
		}
		return r
	}
	halted := run("r4", "halted", result("web1", state.Failed, "repair disk: exit code 1", ""), result("web2", state.ReactionLeft, "it failed on web1", ""))
	halted.Halted = "it failed on web1: repair disk: exit code 1"
	nobody := run("r5", "nobody")
	nobody.Hosts, nobody.Why = nil, "no host has a job of it"
	return []state.ReactionStatus{
		run("r1", "repair"),
		run("r2", "mixed", result("web1", state.ReactionWaits, "role web: all places are taken", "pullet locks"),
			result("web2", state.Failed, "repair disk: exit code 1", "")),
		run("r3", "done", result("web1", state.ReactionDone, "", ""), result("web2", state.ReactionDone, "", "")),
		halted, nobody,
	}
}

func reactionsViews() []shown {
	tally := func(why string, n int) state.Tally {
		t := state.Tally{Hosts: []string{"web1"}, Unknown: []string{"db9"}, Why: why, Next: before(-10 * time.Minute)}
		if n > 0 {
			t.Seen = []state.Seen{{At: before(time.Minute), N: n}}
		} else {
			t.Hosts, t.Unknown, t.Reacted = nil, nil, before(3*time.Second)
		}
		return t
	}
	group := func(reaction, why string, n int) state.Group {
		return state.Group{Reaction: reaction, Event: "backup/failed", Tallies: []state.Tally{tally(why, n)}}
	}
	groups := []state.Group{
		group("each", "paused by ada@laptop: too loud", 1), group("more", "it waits for more occurrences", 1),
		group("never", "its condition does not hold", 1), group("often", "it occurred too rarely", 1), group("repair", "", 0),
	}
	groups[1].Dropped = 4
	paused := map[string]state.PausedReaction{"each": {Reaction: "each", By: "ada@laptop", Reason: "too loud", At: before(time.Minute), Until: before(-2 * time.Hour)}}
	all := newReactionsView(groups, paused, storedRuns())
	late := newReactionsView(groups[3:4], nil, nil)
	late.Unread = &unreadEvents{Events: 1, Since: before(5 * time.Second)}
	led := newReactionsView(groups[3:4], nil, nil)
	led.Reactor, led.Unread = "web2", late.Unread
	of := func(v *reactionsView) func(a *app) error { return func(a *app) error { return v.show(a) } }
	show := func(i int) func(a *app) error {
		run := storedRuns()[i]
		return func(a *app) error { return onPage(a.out, runView{lineOf(run), run}.print) }
	}
	return []shown{
		{"", "reactions", 0, of(newReactionsView(nil, nil, nil))},
		{"what each waits for, and how runs ended", "reactions", 0, of(all)},
		{"", "reactions", 80, of(all)},
		{"", "reactions -o wide", 0, of(all)},
		{"", "reactions -o json", 0, of(led)},
		{"events that nobody reads", "reactions", 0, of(late)},
		{"", "reactions", 0, of(led)},
		{"a run, host after host", "reactions show r1", 0, show(0)},
		{"", "reactions show r2", 0, show(1)},
		{"", "reactions show r3", 0, show(2)},
		{"", "reactions show r4", 0, show(3)},
		{"in one line of status", "status", 0, func(a *app) error {
			v := viewOf(storedFleet(commitOf("1", "the first"), "web1"))
			v.Reactions = all.counts()
			return v.show(a)
		}},
	}
}
