package main

import (
	"time"

	"github.com/pullet/pullet/state"
)

func nodesViews() []shown {
	o := storedFleet(commitOf("1", "the first"), "web1", "db1")
	o.Listed = map[string]string{"web1": "web", "web2": "web", "db1": "db", "backup1": "backups"}
	o.Alive["db1"] = false
	says(o, "web7", state.Provisioned, state.Success, state.Status{Reason: "image 12", Time: before(3 * time.Second)})
	says(o, "web1", state.Validated, state.Success, state.Status{Time: before(10 * time.Second)})
	of := func(l listed) func(a *app) error {
		return func(a *app) error { return nodesCmd{a}.listNodes(o, nil, l) }
	}
	return []shown{
		{"hosts that live, are lost, were provisioned, or are listed and never came", "nodes", 0, of(listed{})},
		{"", "nodes", 60, of(listed{})},
		{"", "nodes -o wide", 0, of(listed{})},
		{"", "nodes --role db -o json", 0, of(listed{role: "db"})},
		{"", "nodes --state lost,missing", 0, of(listed{states: []string{lost, missing}})},
		{"", "nodes --missing", 0, of(listed{missing: true})},
		{"", "nodes --role wbe", 0, of(listed{role: "wbe"})},
	}
}

func failuresViews() []shown {
	o := upgrade(storedFleet(commitOf("1", "the first"), "web1", "web2"), commitOf("2", "broken"))
	of := func(o *state.Overview, category string) func(a *app) error {
		return func(a *app) error { return printFailures(a, failuresOf(o, category)) }
	}
	none := of(storedFleet(commitOf("1", "the first"), "web1"), "")
	failure := state.Status{Reason: "site/motd (jobs/site.yaml:1:9): exit code 1: no disk", Run: "20000101T000000Z-aaaaaa", Time: before(20 * time.Second)}
	says(o, "web2", state.Configured, state.Failed, failure)
	failure.Log = "http://192.0.2.9/default/web2/20000101T000000Z-aaaaaa.log"
	says(o, "web2", state.Rollout, state.Failed, failure)
	says(o, "web1", state.Validated, state.Failed, state.Status{Reason: "the shop answers 503", Time: before(3 * time.Second)})
	o.Statuses["web9"] = map[string]state.StatusLine{state.Provisioned: {State: state.Failed,
		Status: state.Status{Reason: "no image", Time: before(2 * time.Second)}}} // a tool said it, of no version
	return []shown{
		{"nothing failed", "failures", 0, none},
		{"", "failures -o json", 0, none},
		{"by category", "failures", 0, of(o, "")},
		{"", "failures", 80, of(o, "")},
		{"", "failures --category validated", 0, of(o, state.Validated)},
		{"", "failures -o json", 0, of(o, "")},
	}
}

func servicesViews() []shown {
	o := storedFleet(commitOf("1", "the first"), "db1", "db2", "db3", "web1")
	offer := func(name, node string, one state.Service) {
		if o.Services[name] == nil {
			o.Services[name] = map[string]state.Service{}
		}
		one.Announced = before(time.Hour)
		o.Services[name][node] = one
	}
	ready := before(time.Minute)
	offer("db", "db1", state.Service{Address: "192.0.2.1", Port: 5432, Ready: ready, Tags: []string{"primary", "ssd"},
		Addresses: map[string]any{"eth0": "192.0.2.1", "eth1": []any{"198.51.100.1", "2001:db8::1"}}})
	offer("db", "db2", state.Service{Address: "192.0.2.2", Port: 5432, Ready: ready})
	offer("db", "db3", state.Service{Address: "192.0.2.3", Port: 5432, Why: "tcp 5432: connection refused"})
	offer("cache", "web1", state.Service{Address: "192.0.2.9", Port: 11211, Ready: ready})
	offer("queue", "web1", state.Service{Ready: ready})
	alive := func(lost ...string) *state.Overview {
		now := *o
		now.Alive = map[string]bool{"db1": true, "db2": true, "db3": true, "web1": true}
		for _, node := range lost {
			now.Alive[node] = false
		}
		return &now
	}
	of := func(o *state.Overview, ready bool, args ...string) func(a *app) error {
		return func(a *app) error { return servicesCmd{a}.show(o, args, ready) }
	}
	return []shown{
		{"nobody offers anything", "services", 0, of(storedFleet(nil), false)},
		{"announced is not ready", "services", 0, of(alive(), false)},
		{"", "services", 40, of(alive(), false)},
		{"", "services db -o wide", 0, of(alive(), false, "db")},
		{"", "services --ready", 0, of(alive(), true)},
		{"", "services -o hosts", 0, of(alive(), false)},
		{"", "services -o hiera", 0, of(alive(), false)},
		{"", "services dbs", 0, of(alive(), false, "dbs")},
		{"a host that does not answer is left out of lists for other tools", "services", 0, of(alive("db2"), false)},
		{"", "services --ready", 0, of(alive("db2"), true)},
		{"", "services db -o json", 0, of(alive("db2"), false, "db")},
		{"", "services -o hosts", 0, of(alive("db2"), false)},
		{"", "services -o hiera", 0, of(alive("db2"), false)},
		{"most do not answer: nothing is left out", "services db", 0, of(alive("db1", "db2"), false, "db")},
		{"", "services db --ready -o hosts", 0, of(alive("db1", "db2"), true, "db")},
	}
}

func locksViews() []shown {
	o := upgrade(storedFleet(commitOf("1", "the first"), "web1", "web2", "web3", "db1"), commitOf("2", "the second"))
	waits := state.Status{Kind: state.WaitSlot, Gate: "slot web (1 at a time)", Reason: "slot web (1 at a time): web1 holds it", Remedy: state.NoAction(),
		Holders: []state.Holder{{Node: "web1", Alive: true}}, Time: before(time.Minute)}
	says(o, "web2", state.Rollout, state.Pending, waits)
	says(o, "web3", state.Rollout, state.Pending, waits)
	waits.Kind, waits.Gate, waits.Reason = state.WaitTotal, "slots of the fleet (1 at a time)", "web1 holds it"
	waits.Remedy = state.Act("fix web1, or push a commit that does (see pullet failures)")
	says(o, "db1", state.Rollout, state.Pending, waits)
	o.Slots["web"] = map[string]state.Claim{"0": {Node: "web1", Version: o.Current.ID, Step: "site/slow", Since: before(time.Minute)}}
	locks := []state.Lock{
		{Kind: "slot", Name: "web", Place: "0", Node: "web1", Step: "site/slow", Since: before(time.Minute), Alive: true},
		{Kind: "barrier", Name: "site/together", In: 1, Missing: []string{"web2", "web3"}},
		{Kind: "barrier", Name: "site/through", In: 3},
		{Kind: "election", Name: "1 of role=web", Node: "web1", Step: "site/once", Alive: true},
		{Kind: "serialize", Name: "site/one", Place: "0", Node: "web9", Since: before(time.Hour)},
		{Kind: "slot", Name: "db", Place: "0", Unread: "it cannot be read"},
	}
	of := func(locks []state.Lock) func(a *app) error {
		return func(a *app) error { return locksCmd{a}.print(locksOf(o, locks)) }
	}
	return []shown{
		{"", "locks", 0, of(nil)},
		{"each kind, with who waits: a slot counts in the total of the fleet, too", "locks", 0, of(locks)},
		{"", "locks", 80, of(locks)},
		{"", "locks -o wide", 0, of(locks)},
		{"", "locks -o json", 0, of(locks[:2])},
	}
}
