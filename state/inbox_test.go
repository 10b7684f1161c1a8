package state

import (
	"fmt"
	"math/rand"
	"testing"
	"time"
)

// told is a model of some outboxes and of the reactor that reads them.
type told struct {
	r        *rand.Rand
	boxes    map[string]*Outbox
	revision int64
	cursor   Cursor
	made     int
	read     map[string]int
}

// tell has a host tell some events. A bad one says of all of them that the record had them at some revision.
func (m *told) tell(by string, n int, bad bool) {
	box := m.boxes[by]
	if box == nil {
		box = &Outbox{}
		m.boxes[by] = box
	}
	var events []Event
	for range n {
		m.made++
		events = append(events, Event{ID: fmt.Sprintf("e%d", m.made), By: by, Name: "x"})
	}
	n = box.add(events, m.cursor.Revision)
	m.made -= len(events) - n
	m.revision++
	for i := range box.Events {
		if e := &box.Events[i]; e.Rev == 0 {
			if e.Rev = m.revision; bad {
				e.Rev = max(m.cursor.Revision+1, m.revision/2)
			}
		}
	}
}

// reads has the reactor read what there is, and take some of it.
func (m *told) reads(all bool) (n int, wrong string) {
	in := &Inbox{Cursor: m.cursor, Upto: m.revision, Revision: m.revision}
	for _, box := range m.boxes {
		in.take(box.Events)
	}
	in.sort()
	if len(in.Events) > 2*eventsAtOnce {
		return 0, fmt.Sprintf("%d events at once", len(in.Events))
	}
	n = len(in.Events)
	if !all {
		n = m.r.Intn(n + 1)
	}
	for _, e := range in.Events[:n] {
		m.read[e.ID]++
	}
	was := m.cursor
	m.cursor = in.after(n)
	if m.cursor.Revision < was.Revision || m.cursor.Done > MaxOutbox {
		return n, fmt.Sprintf("the cursor goes from %+v to %+v", was, m.cursor)
	}
	return n, ""
}

// TestCursor: whatever hosts tell in which order, however few of their events the reactor takes at a time, and
// whichever revisions some of them make up: each event is read, and of hosts that say what is true once.
func TestCursor(t *testing.T) {
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		hosts, most := 1+r.Intn(8), 1+r.Intn(6)
		if seed%100 == 0 { // more than the reactor takes at once
			hosts, most = 150, MaxOutbox
		}
		m := &told{r: r, boxes: map[string]*Outbox{}, read: map[string]int{}}
		for range 60 {
			for range r.Intn(hosts) {
				m.tell(fmt.Sprintf("web%d", r.Intn(hosts)), 1+r.Intn(most), false)
			}
			if _, wrong := m.reads(r.Intn(4) == 0); wrong != "" {
				t.Fatalf("seed %d: %s", seed, wrong)
			}
		}
		for n := 1; n > 0; {
			var wrong string
			if n, wrong = m.reads(true); wrong != "" {
				t.Fatalf("seed %d: %s", seed, wrong)
			}
		}
		if len(m.read) != m.made {
			t.Fatalf("seed %d: %d of %d events are read", seed, len(m.read), m.made)
		}
		for id, n := range m.read {
			if n != 1 {
				t.Fatalf("seed %d: %s is read %d times", seed, id, n)
			}
		}
	}
}

// TestEnterMany: the reactor gives 200 runs in one step, though etcd limits how many operations a transaction has.
func TestEnterMany(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	grant, err := s.Client.Grant(ctx, 600)
	must(t, err)
	since, _, err := s.Events.Lead(ctx, "web1", grant.ID)
	must(t, err)
	in, err := s.Events.Inbox(ctx)
	must(t, err)
	runs := make([]ReactionRun, 200)
	for i := range runs {
		runs[i] = ReactionRun{ID: fmt.Sprintf("r%03d", i), Reaction: "heal", Hosts: []string{"web1"}, By: "web1", At: time.Now(),
			Event: Reacted{Event: happens("e1", "web1"), Occurrences: 1}}
	}
	done, err := s.Events.Enter(ctx, since, in, Entry{Runs: runs})
	must(t, err)
	given, err := s.Reactions.List(ctx)
	must(t, err)
	if !done || len(given) != len(runs) {
		t.Errorf("done: %v, with %d of %d runs", done, len(given), len(runs))
	}
}

// TestCursorHostile: hosts that say that all of their events have one revision keep the reactor from nothing: it reads
// what the others tell, once.
func TestCursorHostile(t *testing.T) {
	for seed := range int64(20) {
		m := &told{r: rand.New(rand.NewSource(seed)), boxes: map[string]*Outbox{}, read: map[string]int{}}
		m.revision = 100
		for i := range 120 {
			m.tell(fmt.Sprintf("bad%d", i), MaxOutbox, true)
		}
		honest := m.made
		for i := range 10 {
			m.tell(fmt.Sprintf("web%d", i), 5, false)
		}
		for n, steps := 1, 0; n > 0; steps++ {
			var wrong string
			if n, wrong = m.reads(true); wrong != "" || steps > 100 {
				t.Fatalf("seed %d: %s after %d steps", seed, wrong, steps)
			}
		}
		for id := honest + 1; id <= m.made; id++ {
			if n := m.read[fmt.Sprintf("e%d", id)]; n != 1 {
				t.Fatalf("seed %d: e%d is read %d times", seed, id, n)
			}
		}
	}
}
