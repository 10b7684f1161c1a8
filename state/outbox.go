package state

import (
	"context"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Outbox is what a host, or an operator, tells the fleet: its events, the oldest first. The reactor reads it and leaves
// it as it is; its owner takes out what the reactor has when it writes it again.
type Outbox struct {
	Events []Sent `json:"events"`
	// Dropped counts events that found no room, here or on the disk of the host, since the host was made.
	Dropped int `json:"dropped,omitempty"`
}

// Sent is an event in an outbox.
type Sent struct {
	Event
	// Rev is a revision at which the outbox had the event; 0: that of the outbox itself. The reactor has every event up
	// to the revision of its cursor.
	Rev int64 `json:"rev,omitempty"`
}

// MaxOutbox is how many events wait in an outbox for the reactor at most.
const MaxOutbox = 100

func (s *Events) outboxKey(node string) string { return s.store.key("outbox", node) }

// Tell appends events to the outbox of who tells them, and returns how many of them are on record: the first ones. The
// others find no room before the reactor has read. An event that is there already is not appended again. Dropped is
// how many events its owner lost since the last time.
func (s *Events) Tell(ctx context.Context, by string, events []Event, dropped int) (int, error) {
	for {
		got, err := s.store.Client.Txn(ctx).Then(clientv3.OpGet(s.outboxKey(by)), clientv3.OpGet(s.cursorKey())).Commit()
		if err != nil {
			return 0, err
		}
		box, seen := s.ownBox(got.Responses[0].GetResponseRange().Kvs)
		cursor := s.cursorOf(got.Responses[1].GetResponseRange().Kvs, got.Header.Revision)
		told := box.add(events, cursor.Revision)
		box.Dropped += dropped
		if told == 0 && dropped == 0 {
			return 0, nil
		}
		done, err := s.store.Client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(s.outboxKey(by)), "=", seen)).
			Then(Put(s.outboxKey(by), box)).Commit()
		if err != nil || done.Succeeded {
			return told, err
		}
	}
}

// ownBox is the outbox as its owner goes on with it: each event has a revision. One that cannot be read begins anew.
func (s *Events) ownBox(kvs []*mvccpb.KeyValue) (box Outbox, seen int64) {
	for _, kv := range kvs {
		if box, seen = s.readBox(kv), kv.ModRevision; box.Events == nil {
			box.Events = []Sent{}
		}
	}
	return box, seen
}

// readBox is an outbox in which each event has a revision.
func (s *Events) readBox(kv *mvccpb.KeyValue) Outbox {
	box, err := Read[Outbox](s.store, kv)
	if err != nil {
		return Outbox{}
	}
	for i := range box.Events {
		if e := &box.Events[i]; e.Rev == 0 || e.Rev > kv.ModRevision {
			e.Rev = kv.ModRevision
		}
	}
	return box
}

// add takes out what the reactor has and appends what there is room for. It returns how many of the events are there.
func (b *Outbox) add(events []Event, cursor int64) int {
	had := map[string]bool{}
	for _, e := range b.Events {
		had[e.ID] = true
	}
	b.Events = slices.DeleteFunc(b.Events, func(e Sent) bool { return e.Rev <= cursor })
	size := 0
	for _, e := range b.Events {
		size += e.Size()
	}
	for i, e := range events {
		if had[e.ID] {
			continue
		}
		if size += e.Size(); len(b.Events) >= MaxOutbox || size > maxRecord*3/4 {
			return i
		}
		b.Events = append(b.Events, Sent{Event: e})
	}
	return len(events)
}

func (b *Outbox) check(k Key) error {
	var c checks
	c.unless(len(b.Events) <= MaxOutbox, "it has %d events, of %d at most", len(b.Events), MaxOutbox)
	c.count("dropped", b.Dropped, 1<<40)
	for i := range b.Events {
		e := &b.Events[i]
		c.also(e.Check())
		c.unless(e.By == k.Node, "it has an event of another host: %s", quoted(e.By))
	}
	return c.err
}
