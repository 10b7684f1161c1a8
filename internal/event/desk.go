package event

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/pullet/pullet/internal/safetext"
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
	Changes   []Change                                    // that the reactor found in the fleet's record
	Next      *state.Observed                             // what it knows before these are told; nil: it did not look
	Now       time.Time                                   // by the fleet's clock
	Ahead     time.Duration                               // of the fleet's clock: the clock of the reactor, for people
	NewID     func() string
}

// The most that one step does. A request to etcd has 1.5 MiB at most.
const (
	maxRuns    = 50         // runs that are not over
	pageSize   = 250 << 10  // about how many bytes of events a page has
	maxFrom    = 200        // hosts that an entry of the log names
	groupsSize = 1100 << 10 // about how many bytes the groups have that a step counts in
	stepSize   = 1400 << 10 // about how many bytes a step writes
)

// recheck is how long after a condition did not hold, or could not be asked, it is asked again.
const recheck = 30 * time.Second

// step is a step of the reactor in the making.
type step struct {
	*Desk
	entry   state.Entry
	groups  map[string]*state.Group // by hash
	changed map[string]changed      // that were counted in
	begun   map[string][]string     // the hosts of runs that this step starts, by reaction
	noted   map[string]int          // what events say -> their place in the page
	size    int                     // of the page
	written int                     // about how many bytes of groups and runs there are
	look    time.Time
}

// changed is a group in which a step counts.
type changed struct {
	size int  // about how many bytes it has
	full bool // it was so before the step
}

// Step decides what the reactor writes next, and when it looks again although nothing happens; zero: never. It is a
// pure function, as the conditions of the reactions are.
func (d *Desk) Step(ctx context.Context) (state.Entry, time.Time) {
	s := &step{
		Desk: d, groups: map[string]*state.Group{}, changed: map[string]changed{}, begun: map[string][]string{},
		noted: map[string]int{},
	}
	for i := range d.In.Groups {
		g := d.In.Groups[i]
		s.groups[state.GroupHash(g.Reaction, g.Event)] = &g
	}
	if s.read() {
		s.readChanges()
	}
	s.judgeAll(ctx)
	s.entry.Clock = s.Now
	return s.entry, s.look
}

// read counts events, as far as one step can write what comes of them. It reports that these are all.
func (s *step) read() bool {
	for _, e := range s.In.Events {
		e.Name = safetext.EventSpellings(e.Name)[0]
		counts := s.countsFor(e.Event)
		again := s.toldBefore(e.Event)
		if again || slices.Contains(FoundInRecord(), e.Name) { // hosts cannot tell what only the record knows
			counts = nil
		}
		if s.entry.Read > 0 && !s.room(e.Event, counts) {
			return false
		}
		for len(counts) > 1 && !s.room(e.Event, counts) { // groups that grew while fewer reactions answered the event
			counts = counts[:len(counts)-1]
		}
		s.note(e.Event, again)
		for _, r := range counts {
			s.count(r, e.Event, groupsSize/len(counts))
		}
		s.remember(e.Event)
		s.entry.Read++
	}
	return true
}

// readChanges counts what the reactor found in the fleet's record. What does not fit is found again.
func (s *step) readChanges() {
	s.entry.Observed = s.Next
	for _, c := range s.Changes {
		e := c.Event
		e.ID, e.By, e.Time = s.NewID(), s.Node, s.Now.Add(s.Ahead)
		counts := s.countsFor(e)
		if !s.room(e, counts) {
			return
		}
		s.note(e, false)
		for _, r := range counts {
			s.count(r, e, groupsSize/len(counts))
		}
		c.Tell(s.entry.Observed)
	}
}

// countsFor are the reactions that an event counts for: none that it comes from, and none at the end of a chain.
func (s *step) countsFor(e state.Event) (out []*Reaction) {
	if len(e.Chain) >= state.MaxChain {
		return nil
	}
	for _, r := range s.Reactions {
		own := slices.ContainsFunc(e.Chain, func(c state.Cause) bool { return c.Reaction == r.Name })
		if !own && r.Matches(e.Name) && len(out) < state.MaxChanged/2 && s.mayCount(r, e) {
			out = append(out, r)
		}
	}
	return out
}

// maxGroups is how many events of how many reactions are counted at a time: who tells ever new names fills no record.
const maxGroups = 2000

// mayCount reports that there is room to count an event for a reaction.
func (s *step) mayCount(r *Reaction, e state.Event) bool {
	return s.groups[state.GroupHash(r.Name, e.Name)] != nil || len(s.groups) < maxGroups
}

// room reports that a step that read events already can write what comes of one more.
func (s *step) room(e state.Event, counts []*Reaction) bool {
	groups, size := len(s.changed), len(counts)*e.Size()
	for _, r := range counts {
		hash := state.GroupHash(r.Name, e.Name)
		have, has := s.changed[hash]
		if !has {
			groups, size = groups+1, size+sizeOf(s.groups[hash])
		} else if have.size > groupsSize/len(counts) && !have.full {
			return false // what it has so far may start, and make room
		}
	}
	for _, have := range s.changed {
		size += have.size
	}
	return groups <= state.MaxChanged/2 && size <= groupsSize+groupsSize/10 && s.size+e.Size() <= pageSize &&
		len(s.entry.Page) < state.MaxPage
}

// toldBefore reports an event that was told already.
func (s *step) toldBefore(e state.Event) bool {
	at, told := s.told()[state.TellsOf(e)]
	return e.Dedupe != "" && told && s.Now.Sub(at).Abs() < state.DedupeTime // the fleet's clock may have gone back
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
		maps.DeleteFunc(s.entry.Told, func(_ string, at time.Time) bool { return s.Now.Sub(at).Abs() >= state.DedupeTime })
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
	says, _ := json.Marshal([]any{e.Name, again, e.Data, e.Chain}) // it came from JSON
	i, has := s.noted[string(says)]
	if !has {
		i = len(s.entry.Page)
		s.noted[string(says)] = i
		s.entry.Page = append(s.entry.Page, state.Happened{Event: e, Last: e.Time, Again: again})
		s.size += e.Size()
	}
	h := &s.entry.Page[i]
	if h.Count++; has && len(h.IDs) < state.MaxIDs {
		h.IDs, s.size = append(h.IDs, e.ID), s.size+len(e.ID)
	}
	if e.Time.After(h.Last) {
		h.Last = e.Time
	}
	h.From = add(h.From, maxFrom, e.By)
	h.Hosts = add(h.Hosts, maxFrom, e.Hosts...)
	s.size += sizeOf(e.Hosts) + len(e.By)
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

// count counts an event for a reaction, in a group of so many bytes at most.
func (s *step) count(r *Reaction, e state.Event, most int) {
	hash := state.GroupHash(r.Name, e.Name)
	g := s.groups[hash]
	if g == nil {
		g = &state.Group{Reaction: r.Name, Event: e.Name}
		s.groups[hash] = g
	}
	if _, has := s.changed[hash]; !has {
		size := sizeOf(g)
		g.Tallies, s.changed[hash] = slices.Clone(g.Tallies), changed{size, size > most}
	}
	c := counting{Group: g, now: s.Now, changed: s.changed[hash], most: most}
	var nodes, unknown []string
	for _, host := range e.Hosts {
		if node, known := s.Find(host); known {
			nodes = add(nodes, maxFrom, node)
		} else {
			unknown = add(unknown, maxFrom, host)
		}
	}
	if !r.PerHost || len(nodes) == 0 {
		c.tally("", e, nodes, unknown)
	} else {
		for _, node := range nodes {
			c.tally(node, e, nil, nil)
		}
	}
	s.changed[hash] = c.changed
}
