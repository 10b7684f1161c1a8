package event

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

// reaction is one for the events that a glob matches, which runs on all hosts, or on those that the event is about.
func reaction(name, glob string, perHost bool) *Reaction {
	return &Reaction{
		Name: name, PerHost: perHost, Limiter: Limiter{Window: time.Hour},
		Matches: func(event string) bool { ok, _ := path.Match(glob, event); return ok },
		Hosts: func(about []string) []string {
			if perHost {
				return about
			}
			return []string{"web1", "web2"}
		},
		Holds: func(context.Context, state.Reacted) (bool, error) { return true, nil },
	}
}

// desk is that of a reactor of a fleet whose nodes begin with "web".
func desk(reactions ...*Reaction) *Desk {
	runs := 0
	return &Desk{
		In: &state.Inbox{Told: state.Told{}, Busy: map[string]map[string]bool{}, Paused: map[string]state.PausedReaction{}},
		Find: func(host string) (string, bool) {
			return strings.TrimSuffix(host, ".example.org"), strings.HasPrefix(host, "web")
		},
		Now: at(0), Node: "web1", Version: "v1", Reactions: reactions,
		NewID: func() string { runs++; return fmt.Sprintf("r%d", runs) },
	}
}

// tells puts an event into the inbox.
func (d *Desk) tells(name, by string, with func(e *state.Event)) {
	e := state.Event{ID: fmt.Sprintf("e%d", len(d.In.Events)), Name: name, By: by, Time: d.Now, Hosts: []string{by}}
	if with != nil {
		with(&e)
	}
	d.In.Events = append(d.In.Events, state.Sent{Event: e, Rev: int64(10 + len(d.In.Events))})
}

// steps takes a step and makes what came of it the record, as the store does.
func (d *Desk) steps(t *testing.T) (state.Entry, time.Time) {
	t.Helper()
	entry, look := d.Step(t.Context())
	if ops := 4 + len(entry.Groups) + 2*len(entry.Runs); ops > 128 {
		t.Errorf("%d operations in a transaction", ops)
	}
	if size := sizeOf(entry); size > 3<<19 {
		t.Errorf("a step writes %d bytes", size)
	}
	d.In.Events = d.In.Events[entry.Read:]
	groups := map[string]state.Group{}
	for _, g := range d.In.Groups {
		groups[state.GroupHash(g.Reaction, g.Event)] = g
	}
	for _, g := range entry.Groups {
		groups[state.GroupHash(g.Reaction, g.Event)] = g
		if len(g.Tallies) == 0 {
			delete(groups, state.GroupHash(g.Reaction, g.Event))
		}
	}
	d.In.Groups = slices.Collect(maps.Values(groups))
	if entry.Told != nil {
		d.In.Told = entry.Told
	}
	for _, run := range entry.Runs {
		d.In.Runs++
		for _, host := range run.Hosts {
			if d.In.Busy[run.Reaction] == nil {
				d.In.Busy[run.Reaction] = map[string]bool{}
			}
			d.In.Busy[run.Reaction][host] = true
		}
	}
	return entry, look
}

// worksOff takes steps until nothing is to be written. It returns the runs, and when it is looked at again.
func (d *Desk) worksOff(t *testing.T) (runs []state.ReactionRun, look time.Time) {
	t.Helper()
	for range 1000 {
		entry, look := d.steps(t)
		runs = append(runs, entry.Runs...)
		if entry.Read+len(entry.Groups)+len(entry.Runs) == 0 {
			return runs, look
		}
		d.Now = d.Now.Add(time.Millisecond) // a step takes its time
	}
	t.Fatal("the reactor writes again and again")
	return nil, look
}

// TestStep: what comes of the events in an inbox: the runs, as reaction, hosts and occurrences, and what the tallies
// that are left wait for.
func TestStep(t *testing.T) {
	chain := func(names ...string) func(*state.Event) {
		return func(e *state.Event) {
			for _, name := range names {
				e.Chain = append(e.Chain, state.Cause{Run: "r-" + name, Reaction: name})
			}
		}
	}
	about := func(hosts ...string) func(*state.Event) { return func(e *state.Event) { e.Hosts = hosts } }
	for name, c := range map[string]struct {
		reactions []*Reaction
		with      func(d *Desk)
		runs      []string
		waits     []string
	}{
		"one answers":   {[]*Reaction{reaction("a", "x", false)}, func(d *Desk) { d.tells("x", "web1", nil) }, []string{"a [web1 web2] 1"}, nil},
		"none answers":  {[]*Reaction{reaction("a", "y", false)}, func(d *Desk) { d.tells("x", "web1", nil) }, nil, nil},
		"two answer":    {[]*Reaction{reaction("a", "x", false), reaction("b", "*", false)}, func(d *Desk) { d.tells("x", "web1", nil) }, []string{"a [web1 web2] 1", "b [web1 web2] 1"}, nil},
		"read together": {[]*Reaction{reaction("a", "x", false)}, func(d *Desk) { d.tells("x", "web1", nil); d.tells("x", "web2", nil) }, []string{"a [web1 web2] 2"}, nil},
		"told twice": {[]*Reaction{reaction("a", "x", false)}, func(d *Desk) {
			for range 2 {
				d.tells("x", "web1", func(e *state.Event) { e.Dedupe = "d" })
			}
		}, []string{"a [web1 web2] 1"}, nil},
		"told yesterday": {[]*Reaction{reaction("a", "x", false)}, func(d *Desk) {
			d.In.Told[state.TellsOf(state.Event{Name: "x", Dedupe: "d"})] = d.Now.Add(-state.DedupeTime)
			d.tells("x", "web1", func(e *state.Event) { e.Dedupe = "d" })
		}, []string{"a [web1 web2] 1"}, nil},
		"told by a reactor whose clock is ahead": {[]*Reaction{reaction("a", "x", false)}, func(d *Desk) {
			d.In.Told[state.TellsOf(state.Event{Name: "x", Dedupe: "d"})] = d.Now.Add(10 * state.DedupeTime)
			d.tells("x", "web1", func(e *state.Event) { e.Dedupe = "d" })
		}, []string{"a [web1 web2] 1"}, nil},
		"told under another name": {[]*Reaction{reaction("a", "*", false)}, func(d *Desk) {
			d.In.Told[state.TellsOf(state.Event{Name: "y", Dedupe: "d"})] = d.Now
			d.tells("x", "web1", func(e *state.Event) { e.Dedupe = "d" })
		}, []string{"a [web1 web2] 1"}, nil},
		"its own chain":    {[]*Reaction{reaction("a", "x", false), reaction("b", "x", false)}, func(d *Desk) { d.tells("x", "web1", chain("a")) }, []string{"b [web1 web2] 1"}, nil},
		"a chain of 7":     {[]*Reaction{reaction("a", "x", false)}, func(d *Desk) { d.tells("x", "web1", chain("1", "2", "3", "4", "5", "6", "7")) }, []string{"a [web1 web2] 1"}, nil},
		"a chain of 8":     {[]*Reaction{reaction("a", "x", false)}, func(d *Desk) { d.tells("x", "web1", chain("1", "2", "3", "4", "5", "6", "7", "8")) }, nil, nil},
		"per host":         {[]*Reaction{reaction("a", "x", true)}, func(d *Desk) { d.tells("x", "web3", nil); d.tells("x", "web1", nil); d.tells("x", "web3", nil) }, []string{"a [web1 web3] 3"}, nil},
		"about several":    {[]*Reaction{reaction("a", "x", true)}, func(d *Desk) { d.tells("x", "web1", about("web2.example.org", "web3", "web2")) }, []string{"a [web2 web3] 2"}, nil},
		"about none":       {[]*Reaction{reaction("a", "x", true)}, func(d *Desk) { d.tells("x", "web1", about()) }, []string{"a [] 1: no host of the fleet runs it"}, nil},
		"about an unknown": {[]*Reaction{reaction("a", "x", true)}, func(d *Desk) { d.tells("x", "web1", about("db1")) }, []string{"a [] 1: the event is about hosts that the fleet does not have: db1"}, nil},
		"about one of two": {[]*Reaction{reaction("a", "x", true)}, func(d *Desk) { d.tells("x", "web1", about("db1", "web2")) }, []string{"a [web2] 1"}, nil},
		"at work":          {[]*Reaction{reaction("a", "x", false)}, func(d *Desk) { d.In.Busy["a"] = map[string]bool{"web9": true}; d.tells("x", "web1", nil) }, nil, []string{"a: its last run is not over"}},
		"at work there": {[]*Reaction{reaction("a", "x", true)}, func(d *Desk) {
			d.In.Busy["a"] = map[string]bool{"web1": true}
			d.tells("x", "web1", nil)
			d.tells("x", "web2", nil)
		}, []string{"a [web2] 1"}, []string{"a web1: its last run is not over"}},
		"paused": {[]*Reaction{reaction("a", "x", false), reaction("b", "x", false)}, func(d *Desk) {
			d.In.Paused["a"] = state.PausedReaction{By: "ada", Reason: "too loud"}
			d.tells("x", "web1", nil)
		}, []string{"b [web1 web2] 1"}, []string{"a: paused by ada: too loud"}},
		"too many runs":      {[]*Reaction{reaction("a", "x", false)}, func(d *Desk) { d.In.Runs = maxRuns; d.tells("x", "web1", nil) }, nil, []string{"a: 50 runs of reactions are not over"}},
		"its condition":      {[]*Reaction{{Name: "a", Limiter: Limiter{Window: time.Hour}, Matches: reaction("", "x", false).Matches, Hosts: reaction("", "x", false).Hosts, Holds: func(_ context.Context, e state.Reacted) (bool, error) { return e.Occurrences > 1, nil }}}, func(d *Desk) { d.tells("x", "web1", nil) }, nil, []string{"a: its condition does not hold"}},
		"a broken condition": {[]*Reaction{{Name: "a", Limiter: Limiter{Window: time.Hour}, Matches: reaction("", "x", false).Matches, Hosts: reaction("", "x", false).Hosts, Holds: func(context.Context, state.Reacted) (bool, error) { return false, errors.New("no such key") }}}, func(d *Desk) { d.tells("x", "web1", nil) }, nil, []string{"a: its condition cannot be judged: no such key"}},
		"it is gone": {nil, func(d *Desk) {
			d.In.Groups = []state.Group{{Reaction: "a", Event: "x", Tallies: []state.Tally{{Seen: []state.Seen{{At: d.Now, N: 1}}}}}}
		}, nil, nil},
	} {
		d := desk(c.reactions...)
		c.with(d)
		given, _ := d.worksOff(t)
		var runs, waits []string
		for _, r := range given {
			line := fmt.Sprintf("%s %v %d", r.Reaction, r.Hosts, r.Event.Occurrences)
			if r.Why != "" {
				line += ": " + r.Why
			}
			runs = append(runs, line)
			if err := r.Event.Check(); err != nil || r.Chain[len(r.Chain)-1] != (state.Cause{Run: r.ID, Reaction: r.Reaction}) {
				t.Errorf("%s: %v, chain %v", name, err, r.Chain)
			}
		}
		for _, g := range d.In.Groups {
			for _, tally := range g.Tallies {
				waits = append(waits, strings.TrimSpace(g.Reaction+" "+tally.Host)+": "+tally.Why)
			}
		}
		if !slices.Equal(runs, c.runs) || !slices.Equal(waits, c.waits) {
			t.Errorf("%s: runs %q, want %q; waits %q, want %q", name, runs, c.runs, waits, c.waits)
		}
	}
}

// TestHeldBack: what keeps a reaction from starting is looked at again, is written once, and the occurrences start it
// when it is gone.
func TestHeldBack(t *testing.T) {
	d := desk(reaction("a", "x", false))
	d.In.Paused["a"] = state.PausedReaction{By: "ada"}
	d.tells("x", "web1", nil)
	runs, look := d.worksOff(t)
	if len(runs) > 0 || look.Before(d.Now) || look.After(d.Now.Add(recheck)) {
		t.Errorf("%d runs, looks at %v, now is %v", len(runs), look, d.Now)
	}
	for range 5 {
		d.Now = d.Now.Add(recheck)
		d.worksOff(t)
	}
	delete(d.In.Paused, "a")
	if runs, _ = d.worksOff(t); len(runs) != 1 || runs[0].Event.Occurrences != 1 {
		t.Errorf("%+v", runs)
	}
}

// TestHeldBackByAWrongClock: what an earlier reactor wrote by a clock that was days ahead keeps no condition from being
// judged again.
func TestHeldBackByAWrongClock(t *testing.T) {
	d := desk(reaction("a", "x", false))
	late := d.Now.Add(8 * 24 * time.Hour)
	d.In.Groups = []state.Group{{Reaction: "a", Event: "x", Tallies: []state.Tally{
		{Seen: []state.Seen{{At: late, N: 1}}, Ready: late, Next: late, Why: conditionFalse},
	}}}
	if runs, _ := d.worksOff(t); len(runs) != 1 {
		t.Errorf("%d runs", len(runs))
	}
}

// TestLongestChain: a run that answers an event from elsewhere and one that a reaction caused continues the chain.
func TestLongestChain(t *testing.T) {
	d := desk(reaction("a", "x", false))
	d.tells("x", "web1", func(e *state.Event) { e.Chain = []state.Cause{{Run: "r0", Reaction: "b"}} })
	d.tells("x", "web1", nil)
	if runs, _ := d.worksOff(t); len(runs) != 1 || len(runs[0].Chain) != 2 || runs[0].Chain[0].Reaction != "b" {
		t.Errorf("%+v", runs)
	}
}

// TestManyNames: 100 events of 100 names that globs match make no step that is too large, and each is answered.
func TestManyNames(t *testing.T) {
	var all []*Reaction
	for i := range 10 {
		r := reaction(fmt.Sprintf("a%d", i), "x/*", true)
		all = append(all, r)
	}
	d := desk(all...)
	for i := range 100 {
		d.tells(fmt.Sprintf("x/%d", i), fmt.Sprintf("web%d", i), func(e *state.Event) {
			e.Data = map[string]any{"text": strings.Repeat("x", state.MaxEventData-100)}
		})
	}
	answered := map[string]bool{}
	for range 1000 {
		runs, _ := d.worksOff(t)
		if len(runs) == 0 {
			break
		}
		for _, r := range runs {
			if answered[r.Reaction+r.Event.Name] {
				t.Errorf("%s is started twice for %s", r.Reaction, r.Event.Name)
			}
			answered[r.Reaction+r.Event.Name] = true
		}
		d.In.Busy, d.In.Runs = map[string]map[string]bool{}, 0 // they are over
		d.Now = d.Now.Add(recheck)
	}
	if len(answered) != 1000 {
		t.Errorf("%d of 1000 are answered", len(answered))
	}
}

// TestManyEvents: as many events as an inbox may have, all different, are read in steps that etcd takes.
func TestManyEvents(t *testing.T) {
	d := desk(reaction("a", "x", false))
	for i := range 3000 {
		d.tells("x", fmt.Sprintf("web%d", i%30), func(e *state.Event) { e.Data = map[string]any{"n": i} })
	}
	pages, n := 0, 0
	for len(d.In.Events) > 0 {
		entry, _ := d.steps(t)
		for pages++; len(entry.Page) > state.MaxPage || entry.Read == 0; {
			t.Fatalf("a step reads %d events and writes %d", entry.Read, len(entry.Page))
		}
		for _, h := range entry.Page {
			n += h.Count
		}
	}
	if n != 3000 || pages > 10 {
		t.Errorf("%d events on %d pages", n, pages)
	}
}

// TestManyHosts: a reaction for each of 10,000 hosts is started for all of them, whether it waits for more or is
// limited; and a name of a host as long as can be keeps nobody from going on.
func TestManyHosts(t *testing.T) {
	for name, c := range map[string]struct {
		limiter Limiter
		host    string
		least   int
	}{
		"at once":   {Limiter{Window: time.Hour}, "web%d", 10_000},
		"limited":   {Limiter{Window: time.Hour, Delay: time.Hour}, "web%d", 10_000},
		"waiting":   {Limiter{Window: time.Hour, Timeout: time.Minute, Max: time.Hour}, "web%d", 10_000},
		"long name": {Limiter{Window: time.Hour, Timeout: time.Minute, Max: time.Hour}, "web" + strings.Repeat("x", 190) + "%d", 3000},
	} {
		r := reaction("a", "x", true)
		r.Limiter = c.limiter
		d := desk(r)
		for i := range 10_000 {
			d.tells("x", fmt.Sprintf(c.host, i), func(e *state.Event) { e.Data = map[string]any{"step": "restart"} })
		}
		runs, _ := d.worksOff(t)
		for range 20 {
			d.Now = d.Now.Add(2 * time.Minute)
			d.In.Busy, d.In.Runs = map[string]map[string]bool{}, 0
			more, _ := d.worksOff(t)
			runs = append(runs, more...)
		}
		hosts := map[string]int{}
		for _, run := range runs {
			if err := run.Event.Check(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, host := range run.Hosts {
				hosts[host]++
			}
		}
		if len(hosts) < c.least {
			t.Errorf("%s: started on %d hosts", name, len(hosts))
		}
		for host, n := range hosts {
			if n > 1 {
				t.Fatalf("%s: started %d times on %s", name, n, host)
			}
		}
		if len(d.In.Events) > 0 {
			t.Errorf("%s: %d events are not read", name, len(d.In.Events))
		}
		t.Logf("%s: %d runs, %d groups left", name, len(runs), len(d.In.Groups))
	}
}

// TestGroupsAreBounded: who tells ever new names that a glob matches fills no record, and what is counted already is
// counted on.
func TestGroupsAreBounded(t *testing.T) {
	r := reaction("a", "ci/*", false)
	r.Limiter.MinOccurrences, r.Limiter.Window = 10_000, time.Hour
	d := desk(r)
	for i := range maxGroups + 50 {
		d.tells(fmt.Sprint("ci/n", i), "web1", nil)
	}
	d.worksOff(t)
	if n := len(d.In.Groups); n != maxGroups {
		t.Errorf("%d groups, want %d", n, maxGroups)
	}
	d.tells("ci/n0", "web1", nil)
	d.worksOff(t)
	for _, g := range d.In.Groups {
		if g.Event == "ci/n0" && len(g.Tallies[0].Seen) != 2 {
			t.Errorf("%+v", g.Tallies)
		}
	}
}

// TestToldByHosts: what only the fleet's record knows counts where the reactor found it there, and not where a host
// tells it.
func TestToldByHosts(t *testing.T) {
	d := desk(reaction("a", "pullet/*/*", false))
	d.tells(nodeLost, "web1", nil)
	if runs, _ := d.worksOff(t); len(runs) != 0 {
		t.Errorf("a host started %d runs", len(runs))
	}
	d.Next = &state.Observed{}
	d.Changes = []Change{{state.Event{Name: nodeLost, Hosts: []string{"web2"}, Time: d.Now}, func(*state.Observed) {}}}
	if entry, _ := d.steps(t); len(entry.Runs) != 1 {
		t.Errorf("the reactor started %d runs", len(entry.Runs))
	}
}
