package state

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// happens is an event of a host.
func happens(id, by string) Event {
	return Event{ID: id, Name: "backup/failed", By: by, Time: time.Now().UTC()}
}

// leads makes this process the reactor of a store.
func leads(t *testing.T, s *Store, node string) (since int64, lease clientv3.LeaseID) {
	t.Helper()
	grant, err := s.Client.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	since, leader, err := s.Events.Lead(t.Context(), node, grant.ID)
	if err != nil || leader != node {
		t.Fatal(since, leader, err)
	}
	return since, grant.ID
}

// inboxOf is what the reactor has to read.
func inboxOf(t *testing.T, s *Store) *Inbox {
	t.Helper()
	in, err := s.Events.Inbox(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func idsOf(in *Inbox) (ids []string) {
	for _, e := range in.Events {
		ids = append(ids, e.ID)
	}
	return ids
}

// TestTell: two writers of one outbox lose nothing, an event whose answer was lost is there once, and what the reactor
// read makes room.
func TestTell(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	var both sync.WaitGroup
	for w := range 2 {
		both.Go(func() {
			for i := range 20 {
				if n, err := s.Events.Tell(context.Background(), "web1", []Event{happens(fmt.Sprintf("e%d-%d", w, i), "web1")}, 0); n != 1 || err != nil {
					t.Errorf("%d %v", n, err)
				}
			}
		})
	}
	both.Wait()
	again := []Event{happens("e0-19", "web1"), happens("e1-19", "web1"), happens("new", "web1")}
	if n, err := s.Events.Tell(t.Context(), "web1", again, 0); n != 3 || err != nil {
		t.Error(n, err)
	}
	in := inboxOf(t, s)
	seen := map[string]bool{}
	for _, id := range idsOf(in) {
		seen[id] = true
	}
	if len(seen) != 41 || len(in.Events) != 41 {
		t.Errorf("%d events, %d different ones", len(in.Events), len(seen))
	}
	var many []Event
	for i := range MaxOutbox {
		many = append(many, happens(fmt.Sprintf("m%d", i), "web1"))
	}
	if n, err := s.Events.Tell(t.Context(), "web1", many, 7); n != MaxOutbox-41 || err != nil {
		t.Errorf("%d found room, %v", n, err)
	}
	since, _ := leads(t, s, "web1")
	in = inboxOf(t, s)
	if done, err := s.Events.Enter(t.Context(), since, in, Entry{Read: len(in.Events)}); !done || err != nil {
		t.Fatal(done, err)
	}
	if n, err := s.Events.Tell(t.Context(), "web1", many[MaxOutbox-41:], 0); n != 41 || err != nil {
		t.Errorf("%d found room, %v", n, err)
	}
	if in = inboxOf(t, s); len(in.Events) != 41 || in.Events[0].ID != many[MaxOutbox-41].ID {
		t.Errorf("%v", idsOf(in))
	}
	if _, err := s.Events.Tell(t.Context(), "web1", []Event{happens("x", "web2")}, 0); err == nil || !strings.Contains(err.Error(), "it has an event of another host") {
		t.Error(err)
	}
}

// TestEnter: a reactor that was replaced, or that looked before another step, writes nothing: not the cursor, no run.
func TestEnter(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	if _, err := s.Events.Tell(t.Context(), "web1", []Event{happens("e1", "web1"), happens("e2", "web1"), happens("e3", "web1")}, 0); err != nil {
		t.Fatal(err)
	}
	old, lease := leads(t, s, "web1")
	if _, leader, err := s.Events.Lead(t.Context(), "web2", 0); leader != "web1" || err != nil {
		t.Fatal(leader, err)
	}
	if since, _, err := s.Events.Lead(t.Context(), "web1", lease); since != old || err != nil {
		t.Errorf("whose answer was lost is the reactor since %d, not %d: %v", old, since, err)
	}
	looked := inboxOf(t, s)
	run := ReactionRun{ID: "r1", Reaction: "restart", Hosts: []string{"web1"}, By: "web1", At: time.Now().UTC(),
		Event: Reacted{Event: happens("e1", "web1"), Occurrences: 1}}
	entry := Entry{Read: 1, Runs: []ReactionRun{run}, Page: []Happened{{Event: happens("e1", "web1"), Count: 1}}}
	if _, err := s.Client.Revoke(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	since, _ := leads(t, s, "web2")
	nothing := func(what string) {
		t.Helper()
		runs, err := s.Reactions.List(t.Context())
		pages, err2 := s.EventLog.Newest(t.Context(), 0, 10)
		if err != nil || err2 != nil || len(runs)+len(pages) > 0 || len(inboxOf(t, s).Events) != 3 {
			t.Fatalf("%s: %v %v %v %v", what, runs, pages, err, err2)
		}
	}
	before, err := s.Client.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if done, err := s.Events.Enter(t.Context(), old, looked, entry); done || err != nil {
		t.Fatal(done, err)
	}
	nothing("who was replaced")
	if after, err := s.Client.Leases(t.Context()); err != nil || len(after.Leases) != len(before.Leases) {
		t.Errorf("leases are left: %v, before that %v: %v", after, before, err)
	}
	if done, err := s.Events.Enter(t.Context(), since, looked, entry); !done || err != nil {
		t.Fatal(done, err)
	}
	if done, err := s.Events.Enter(t.Context(), since, looked, entry); done || err != nil {
		t.Errorf("the same step again: %v %v", done, err)
	}
	in := inboxOf(t, s)
	if len(in.Events) != 2 || in.Events[0].ID != "e2" || in.Runs != 1 || !in.Busy["restart"]["web1"] {
		t.Errorf("%v %+v", idsOf(in), in)
	}
	waiting, err := s.EventLog.Waiting(t.Context())
	if err != nil || len(waiting) != 2 || waiting[0].ID != "e2" {
		t.Errorf("the reactor does not have %v, %v", waiting, err)
	}
}

// TestCursorAhead: a cursor that is ahead of the record, since it comes from another etcd or was made up, hides
// nothing, and the log goes on behind its page.
func TestCursorAhead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Cursor{
		"revision": {Revision: math.MaxInt64, Page: 7}, "next": {Next: math.MaxInt64 - 1, By: "web9", Page: 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, t.TempDir())
			if _, err := s.Client.Do(t.Context(), Put(s.Events.cursorKey(), c)); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"e1", "e2"} {
				if n, err := s.Events.Tell(t.Context(), "web1", []Event{happens(id, "web1")}, 0); n != 1 || err != nil {
					t.Fatal(n, err)
				}
			}
			in := inboxOf(t, s)
			if got := idsOf(in); !slices.Equal(got, []string{"e1", "e2"}) || in.Cursor.Page != 7 {
				t.Errorf("%v %+v", got, in.Cursor)
			}
		})
	}
}

// TestHostileOutbox: an outbox that is not as it should be is not heard, keeps the reactor from nothing, and its owner
// goes on with another one.
func TestHostileOutbox(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	etcd := bare(t, s)
	deep := strings.Repeat(`{"a":`, 9) + "1" + strings.Repeat("}", 9)
	event := `{"id":"e1","name":"x","by":"web1","time":"2026-03-01T12:00:00Z"`
	for i, box := range []string{"{", "null", `{"events":[` + event + `,"data":{"a":` + deep + `}}]}`, `{"events":[` + event + `}],"dropped":-1}`,
		strings.ReplaceAll(`{"events":[`+event+`}]}`, "web1", "web2"), `{"events":[` + strings.TrimSuffix(strings.Repeat(event+"},", MaxOutbox+1), ",") + `]}`} {
		if _, err := etcd.Put(t.Context(), "/pullet/f/outbox/web1", box); err != nil {
			t.Fatal(err)
		}
		if in := inboxOf(t, s); len(in.Events) > 0 {
			t.Errorf("%d: it has %v", i, idsOf(in))
		}
	}
	// an event from the future is there at the revision of the outbox
	if _, err := etcd.Put(t.Context(), "/pullet/f/outbox/web1", `{"events":[`+event+`,"rev":9000000000}]}`); err != nil {
		t.Fatal(err)
	}
	if in := inboxOf(t, s); len(in.Events) != 1 || in.Events[0].Rev != in.Revision {
		t.Errorf("%+v", in.Events)
	}
	if n, err := s.Events.Tell(t.Context(), "web1", []Event{happens("e2", "web1")}, 0); n != 1 || err != nil {
		t.Error(n, err)
	}
	if in := inboxOf(t, s); len(in.Events) != 2 {
		t.Errorf("%+v", in.Events)
	}
}

// TestEventChecks: what an event may be.
func TestEventChecks(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(e *Event){
		"":                       func(*Event) {},
		"is no name of an event": func(e *Event) { e.Name = "a//b" },
		"is no id of an event":   func(e *Event) { e.ID = "a b" },
		"is no name of a node":   func(e *Event) { e.By = "../x" },
		"is neither a name nor an address of a host": func(e *Event) { e.Hosts = []string{"a b"} },
		"it is about 201 hosts, of 200 at most":      func(e *Event) { e.Hosts = make([]string, 201) },
		"its data has 16391 bytes, of 16384 at most": func(e *Event) { e.Data = map[string]any{"a": strings.Repeat("x", MaxEventData-1)} },
		"its data is deeper than 8 levels": func(e *Event) {
			var v any = 1
			for range 8 {
				v = []any{v}
			}
			e.Data = map[string]any{"a": v}
		},
		"it has 48686 bytes, of 32768 at most": func(e *Event) { e.Hosts = slices.Repeat([]string{strings.Repeat("x", 240)}, 200) },
		"dedupe: ":                             func(e *Event) { e.Dedupe = "a\nb" },
		"its chain has 9 runs of reactions, of 8 at most": func(e *Event) { e.Chain = make([]Cause, 9) },
		"is no run of a reaction":                         func(e *Event) { e.Chain = []Cause{{Run: "", Reaction: "x"}} },
	} {
		e := happens("e1", "web1")
		e.Time = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) // its length counts
		change(&e)
		if err := e.Check(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
