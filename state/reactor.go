package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Cursor is how far the reactor read: events by Rev, those of one Rev by the outbox and in its order.
type Cursor struct {
	Revision int64 `json:"revision"` // it has every event that an outbox had up to this revision
	// Of those with the Rev Next it has all of outboxes before By, and of that one so many.
	Next  int64  `json:"next,omitempty"`
	By    string `json:"by,omitempty"`
	Done  int    `json:"done,omitempty"`
	Page  int    `json:"page"`  // the last page of the log
	First int    `json:"first"` // the first one that is kept

	Clock FleetClock `json:"clock,omitzero"`
}

// FleetClock is the fleet's clock: the time is At, and what etcd counted of a lease since. The first reactor begins it
// with the time of its host; no other clock of a host changes it.
type FleetClock struct {
	At    time.Time        `json:"at"`
	Lease clientv3.LeaseID `json:"lease"` // without keys
}

// Page is a part of the log of events: what the reactor read at a time.
type Page struct {
	At     time.Time  `json:"at"`             // by the clock of the reactor's host, for people
	Clock  time.Time  `json:"clock,omitzero"` // by the fleet's clock; zero: from before it
	Events []Happened `json:"events"`
	Number int        `json:"-"`
}

// Happened is an event as the log has it. Events that say the same and are read together are one.
type Happened struct {
	Event
	Count int       `json:"count"`           // how many they are
	Last  time.Time `json:"last"`            // when the last of them happened
	From  []string  `json:"from,omitempty"`  // the hosts that told of them, as far as there is room
	IDs   []string  `json:"ids,omitempty"`   // of the others, as far as there is room
	Again bool      `json:"again,omitempty"` // it was told before, by its Dedupe, and counts for nothing
}

// Group counts the occurrences of one event for one reaction.
type Group struct {
	Reaction string  `json:"reaction"`
	Event    string  `json:"event"`
	Tallies  []Tally `json:"tallies"` // by Host, sorted
	// Dropped counts occurrences about hosts for which there was no room.
	Dropped int `json:"dropped,omitempty"`
}

// Tally counts the occurrences since the last run of a reaction. Its times are by the fleet's clock.
type Tally struct {
	Host    string    `json:"host,omitempty"`    // a node; "": the hosts of the reaction
	Seen    []Seen    `json:"seen,omitempty"`    // the oldest first
	Ready   time.Time `json:"ready,omitzero"`    // since when there are enough, and more are waited for
	Reacted time.Time `json:"reacted,omitzero"`  // when the reaction was started last
	Next    time.Time `json:"next,omitzero"`     // when it is looked at again
	Why     string    `json:"why,omitempty"`     // what keeps the reaction from being started, for people
	Hosts   []string  `json:"hosts,omitempty"`   // nodes that the occurrences are about
	Unknown []string  `json:"unknown,omitempty"` // hosts that they are about and that are no nodes
	Last    *Event    `json:"last,omitempty"`    // the last occurrence
	IDs     []string  `json:"ids,omitempty"`     // of the occurrences, as far as there is room
}

// Seen is when the reactor read an event, and how often.
type Seen struct {
	At time.Time `json:"at"`
	N  int       `json:"n"`
}

// Told are the Dedupes of events that were told lately, each as a hash with its time by the fleet's clock.
type Told map[string]time.Time

// The bounds of what the reactor keeps.
const (
	MaxSeen    = 50 // of a tally: those that are closest together are counted as one
	MaxIDs     = 20
	maxTallies = 20_000
	MaxTold    = 2000
	MaxPage    = 1000 // events of a page
)

func (s *Events) cursorKey() string      { return s.store.key("reactor", "cursor") }
func (s *Events) leaderKey() string      { return s.store.key("reactor", "leader") }
func (s *Events) toldKey() string        { return s.store.key("reactor", "told") }
func (s *Events) groupsPrefix() string   { return s.store.key("reactor", "group") + "/" }
func (s *Events) outboxesPrefix() string { return s.store.key("outbox") + "/" }

// GroupHash names the group of a reaction and an event.
func GroupHash(reaction, event string) string {
	sum := sha256.Sum256([]byte(reaction + "\x00" + event))
	return hex.EncodeToString(sum[:10])
}

func (s *Events) groupKey(g Group) string {
	return s.groupsPrefix() + GroupHash(g.Reaction, g.Event)
}

// cursorOf is the cursor as the record has it at a revision. One that cannot be read begins anew: events are counted
// again. One that is ahead of the record was made up, or comes from another etcd: it would hide all that is to come.
func (s *Events) cursorOf(kvs []*mvccpb.KeyValue, at int64) (c Cursor) {
	for _, kv := range kvs {
		c, _ = Read[Cursor](s.store, kv)
	}
	if max(c.Revision, c.Next) > at {
		c = Cursor{Page: c.Page, First: c.First, Clock: c.Clock}
	}
	return c
}

// Lead makes this process the reactor, on a lease, unless another one is. It returns the revision at which it became
// that: 0, and who is, where another one is.
func (s *Events) Lead(
	ctx context.Context, node string, lease clientv3.LeaseID,
) (since int64, leader string, err error) {
	key := s.leaderKey()
	done, err := s.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, node, clientv3.WithLease(lease))).Else(clientv3.OpGet(key)).Commit()
	if err != nil || done.Succeeded {
		if err == nil {
			since, leader = done.Header.Revision, node
		}
		return since, leader, err
	}
	for _, kv := range done.Responses[0].GetResponseRange().Kvs {
		name, _ := Read[NodeName](s.store, kv) // for people
		leader = string(name)
		if kv.Lease == int64(lease) { // an answer was lost
			since = kv.CreateRevision
		}
	}
	return since, leader, nil
}

// Reactor is the host whose process is the reactor; "": there is none.
func (s *Events) Reactor(ctx context.Context) (string, error) {
	name, _, err := get[NodeName](ctx, s.store, s.leaderKey())
	return string(name), err
}

// AwaitVacancy waits until no process is the reactor, and still none after a time: of many that wait, each hesitates
// for another time, so that few ask at once.
func (s *Events) AwaitVacancy(ctx context.Context, hesitate time.Duration) error {
	for {
		got, err := s.store.Client.Get(ctx, s.leaderKey(), clientv3.WithKeysOnly())
		if err != nil {
			return err
		}
		if len(got.Kvs) == 0 {
			Pause(ctx, hesitate)
			reactor, err := s.Reactor(ctx)
			if err != nil || reactor == "" {
				return err
			}
			continue
		}
		if !s.store.Bells.Await(ctx, s.leaderKey(), got.Header.Revision, 5*time.Minute) {
			return ctx.Err()
		}
	}
}

// Entry is what the reactor writes in one step.
type Entry struct {
	Clock  time.Time // of the fleet
	Read   int       // of the events of the inbox
	Page   []Happened
	Groups []Group // that changed; one without tallies is removed
	Told   Told    // nil: it did not change
	Runs   []ReactionRun
	// Observed is what the reactor knows of the fleet now; nil: it is as it was.
	Observed *Observed
}

// Empty reports a step that writes nothing.
func (e Entry) Empty() bool {
	return e.Read+len(e.Page)+len(e.Groups)+len(e.Runs) == 0 && e.Observed == nil
}

// MaxChanged is how many groups and runs the reactor writes in one step at most: etcd takes 128 operations.
const MaxChanged = 40

// keptPages and keptEvents are how many pages of the log are kept, and for how long.
const (
	keptPages  = 500
	KeptEvents = 7 * 24 * time.Hour
)

// Enter writes a step of the reactor that became that at a revision. It is false, and nothing is written, where it is
// not the reactor any more, or the cursor moved.
func (s *Events) Enter(ctx context.Context, since int64, in *Inbox, e Entry) (bool, error) {
	cursor := in.after(e.Read)
	var ops []clientv3.Op
	if len(e.Page) > 0 {
		cursor.Page++
		page := Page{At: time.Now().UTC(), Clock: e.Clock, Events: e.Page}
		ops = append(ops, Put(s.store.EventLog.pageKey(cursor.Page), page))
		if first := cursor.Page - keptPages + 1; first > cursor.First {
			log := s.store.EventLog
			ops = append(ops, clientv3.OpDelete(log.pageKey(0), clientv3.WithRange(log.pageKey(first))))
			cursor.First = first
		}
	}
	for _, g := range e.Groups {
		if len(g.Tallies) == 0 {
			ops = append(ops, clientv3.OpDelete(s.groupKey(g)))
		} else {
			ops = append(ops, Put(s.groupKey(g), g))
		}
	}
	if e.Told != nil {
		ops = append(ops, Put(s.toldKey(), e.Told))
	}
	given, lease, err := s.store.Reactions.giveOps(ctx, e.Runs)
	if err != nil {
		return false, err
	}
	ops = append(ops, given...)
	ops = append(ops, s.observedOps(e.Observed)...)
	ops = append(ops, Put(s.cursorKey(), cursor))
	done, err := s.store.Client.Txn(ctx).
		If(s.leads(since), clientv3.Compare(clientv3.ModRevision(s.cursorKey()), "=", in.CursorRev)).
		Then(together(ops)...).Commit()
	if lease != clientv3.NoLease && err == nil && !done.Succeeded {
		_, _ = s.store.Client.Revoke(ctx, lease) // it ends by itself
	}
	return err == nil && done.Succeeded, err
}

// AwaitEvents waits until an outbox, a run of a reaction or a pause changes after a revision, or for as long as a poll
// takes. It is false when ctx ends first.
func (s *Events) AwaitEvents(ctx context.Context, after int64, poll time.Duration) bool {
	watch, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), poll)
	defer cancel()
	from := clientv3.WithRev(after + 1)
	var open bool
	select {
	case _, open = <-s.store.Client.Watch(watch, s.outboxesPrefix(), clientv3.WithPrefix(), from):
	case _, open = <-s.store.Client.Watch(watch, s.store.Reactions.endedPrefix(), clientv3.WithPrefix(), from):
	case _, open = <-s.store.Client.Watch(watch, s.store.Reactions.pausedPrefix(), clientv3.WithPrefix(), from):
	case <-watch.Done():
		return ctx.Err() == nil
	}
	if !open {
		Pause(watch, time.Second)
	}
	return ctx.Err() == nil
}
