package event

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/state"
)

// Reaction is one of the repository, as the reactor needs it.
type Reaction struct {
	Name     string
	Limiter  Limiter
	OnChange bool // its runs go on beside a rollout
	PerHost  bool // occurrences count for each host that they are about, and these hosts alone run it
	Matches  func(event string) bool
	Hosts    func(about []string) []string // that run it, for an event that is about some nodes
	// Holds says whether its condition holds for occurrences of an event.
	Holds func(ctx context.Context, e state.Reacted) (bool, error)
}

// Desk is what the reactor decides from: what is on record, the reactions, and the time.
type Desk struct {
	In        *state.Inbox
	Reactions []*Reaction
	Find      func(host string) (node string, known bool) // a node by name, address or fully qualified name
	Version   string                                      // of the fleet
	Node      string                                      // the reactor
	Now       time.Time
	NewID     func() string
}

// The most that one step does.
const (
	maxRuns  = 50        // runs that are not over
	pageSize = 300 << 10 // about how many bytes of events a page has
	maxFrom  = 200       // hosts that an entry of the log names
)

// recheck is how long after a condition did not hold, or could not be asked, it is asked again.
const recheck = 30 * time.Second

// step is a step of the reactor in the making.
type step struct {
	*Desk
	entry   state.Entry
	groups  map[string]*state.Group // by hash
	changed map[string]bool         // that were counted in
	begun   map[string][]string     // the hosts of runs that this step starts, by reaction
	size    int
	look    time.Time
}

// Step decides what the reactor writes next, and when it looks again although nothing happens; zero: never. It is a
// pure function, as the conditions of the reactions are.
func (d *Desk) Step(ctx context.Context) (state.Entry, time.Time) {
	s := &step{Desk: d, groups: map[string]*state.Group{}, changed: map[string]bool{}, begun: map[string][]string{}}
	for i := range d.In.Groups {
		g := d.In.Groups[i]
		s.groups[state.GroupHash(g.Reaction, g.Event)] = &g
	}
	s.read()
	s.judgeAll(ctx)
	return s.entry, s.look
}

// read counts events, as far as one step can write what comes of them.
func (s *step) read() {
	for _, e := range s.In.Events {
		counts := s.countsFor(e.Event)
		again := s.toldBefore(e.Event)
		if again {
			counts = nil
		}
		if fresh := s.fresh(e.Event, counts); len(s.changed)+fresh > state.MaxChanged/2 && s.entry.Read > 0 || s.size > pageSize {
			return
		}
		s.note(e.Event, again)
		for _, r := range counts {
			s.count(r, e.Event)
		}
		s.remember(e.Event)
		s.entry.Read++
	}
}

// countsFor are the reactions that an event counts for: none that it comes from, and none at the end of a chain.
func (s *step) countsFor(e state.Event) (out []*Reaction) {
	if len(e.Chain) >= state.MaxChain {
		return nil
	}
	for _, r := range s.Reactions {
		own := slices.ContainsFunc(e.Chain, func(c state.Cause) bool { return c.Reaction == r.Name })
		if !own && r.Matches(e.Name) && len(out) < state.MaxChanged/2 {
			out = append(out, r)
		}
	}
	return out
}

// fresh is how many groups an event adds to those that change.
func (s *step) fresh(e state.Event, counts []*Reaction) (n int) {
	for _, r := range counts {
		if !s.changed[state.GroupHash(r.Name, e.Name)] {
			n++
		}
	}
	return n
}

// toldBefore reports an event that was told already.
func (s *step) toldBefore(e state.Event) bool {
	at, told := s.told()[state.TellsOf(e)]
	return e.Dedupe != "" && told && s.Now.Sub(at) < state.DedupeTime
}

func (s *step) told() state.Told {
	if s.entry.Told != nil {
		return s.entry.Told
	}
	return s.In.Told
}

// remember remembers the Dedupe of an event. The oldest make room.
func (s *step) remember(e state.Event) {
	if e.Dedupe == "" || s.toldBefore(e) {
		return
	}
	if s.entry.Told == nil {
		s.entry.Told = maps.Clone(s.In.Told)
		maps.DeleteFunc(s.entry.Told, func(_ string, at time.Time) bool { return s.Now.Sub(at) >= state.DedupeTime })
	}
	s.entry.Told[state.TellsOf(e)] = s.Now
	for len(s.entry.Told) > state.MaxTold {
		oldest := ""
		for hash, at := range s.entry.Told {
			if oldest == "" || at.Before(s.entry.Told[oldest]) {
				oldest = hash
			}
		}
		delete(s.entry.Told, oldest)
	}
}

// note writes an event into the log: one that says what another one said is counted with it.
func (s *step) note(e state.Event, again bool) {
	i := slices.IndexFunc(s.entry.Page, func(h state.Happened) bool {
		return h.Name == e.Name && h.Again == again && reflect.DeepEqual(h.Data, e.Data) && reflect.DeepEqual(h.Chain, e.Chain)
	})
	if i < 0 {
		s.entry.Page = append(s.entry.Page, state.Happened{Event: e, Last: e.Time, Again: again})
		i = len(s.entry.Page) - 1
		s.size += e.Size()
	}
	h := &s.entry.Page[i]
	h.Count++
	if e.Time.After(h.Last) {
		h.Last = e.Time
	}
	h.From = add(h.From, maxFrom, e.By)
	h.Hosts = add(h.Hosts, maxFrom, e.Hosts...)
}

// add adds names to a sorted list of so many at most.
func add(list []string, most int, names ...string) []string {
	for _, name := range names {
		if at, has := slices.BinarySearch(list, name); !has && len(list) < most {
			list = slices.Insert(slices.Clone(list), at, name)
		}
	}
	return list
}

// count counts an event for a reaction.
func (s *step) count(r *Reaction, e state.Event) {
	hash := state.GroupHash(r.Name, e.Name)
	g := s.groups[hash]
	if g == nil {
		g = &state.Group{Reaction: r.Name, Event: e.Name}
		s.groups[hash] = g
	}
	if !s.changed[hash] {
		g.Tallies, s.changed[hash] = slices.Clone(g.Tallies), true
	}
	var nodes, unknown []string
	for _, host := range e.Hosts {
		if node, known := s.Find(host); known {
			nodes = add(nodes, maxFrom, node)
		} else {
			unknown = add(unknown, maxFrom, host)
		}
	}
	if !r.PerHost {
		s.tally(g, "", e, nodes, unknown)
		return
	}
	for _, node := range nodes {
		s.tally(g, node, e, []string{node}, nil)
	}
	if len(nodes) == 0 {
		s.tally(g, "", e, nil, unknown)
	}
}

// tally counts an event in a tally of a group.
func (s *step) tally(g *state.Group, host string, e state.Event, nodes, unknown []string) {
	at, has := slices.BinarySearchFunc(g.Tallies, host, func(t state.Tally, host string) int {
		return strings.Compare(t.Host, host)
	})
	if !has {
		g.Tallies = slices.Insert(g.Tallies, at, state.Tally{Host: host})
	}
	t := Count(g.Tallies[at], earlier(e.Time, s.Now), 1)
	t.Hosts, t.Unknown = add(t.Hosts, maxFrom, nodes...), add(t.Unknown, maxFrom, unknown...)
	if t.Last == nil || len(e.Chain) >= len(t.Last.Chain) { // the longest chain counts
		t.Last = &e
	}
	if len(t.IDs) < state.MaxIDs {
		t.IDs = append(slices.Clone(t.IDs), e.ID)
	}
	g.Tallies[at] = t
}
