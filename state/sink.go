package state

import (
	"context"
	"math"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Sink is how far the events of the log are sent to a receiver outside of the fleet.
type Sink struct {
	Type string `json:"type"` // what is sent
	To   string `json:"to"`   // the host of its url; the rest of that may be a secret
	// The next event to be sent stands in this page of the log or behind it, and in that page at this place.
	Page     int       `json:"page"`
	Index    int       `json:"index"`
	Sent     int       `json:"sent"`               // events that the receiver took
	Waiting  int       `json:"waiting,omitempty"`  // for the receiver, as far as was read
	More     bool      `json:"more,omitempty"`     // there are further pages that were not read yet
	Since    time.Time `json:"since,omitzero"`     // since when sending fails; zero: it does not
	Failures int       `json:"failures,omitempty"` // in a row
	Error    string    `json:"error,omitempty"`    // the last one, also when it is over
	Dropped  int       `json:"dropped,omitempty"`  // events that the receiver refused
	Lost     int       `json:"lost,omitempty"`     // pages that were removed, or unreadable, before they were sent
	By       string    `json:"by"`                 // the reactor
	At       time.Time `json:"at"`                 // when this was written
}

// maxSinkCount is how far the counts of a sink go: whoever could write a greater one would stop it.
const maxSinkCount = 1 << 30

// bounded is the record with counts as they can be written.
func (s Sink) bounded() Sink {
	for _, n := range []*int{&s.Sent, &s.Waiting, &s.Dropped, &s.Lost, &s.Failures} {
		*n = min(*n, maxSinkCount)
	}
	return s
}

func (s *Sink) check(Key) error {
	var c checks
	c.count("page", s.Page, math.MaxInt32)
	c.count("index", s.Index, MaxPage)
	for _, n := range []int{s.Failures, s.Sent, s.Waiting, s.Dropped, s.Lost} {
		c.count("events", n, maxSinkCount)
	}
	c.times(s.Since, s.At)
	c.node(s.By)
	line(&s.Type, &s.To, &s.Error)
	return c.err
}

func (s *Sinks) prefix() string         { return s.store.key("sink") + "/" }
func (s *Sinks) key(name string) string { return s.prefix() + name }

// leads is that this process, which became the reactor at a revision, still is it.
func (s *Events) leads(since int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(s.leaderKey()), "=", since)
}

// All are those that events were to be sent to, by name. One whose record cannot be read is left out.
func (s *Sinks) All(ctx context.Context) (map[string]Sink, error) {
	got, err := s.store.Client.Get(ctx, s.prefix(), clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	out := map[string]Sink{}
	for _, kv := range got.Kvs {
		k, err := s.store.Key(kv)
		if err != nil {
			continue
		}
		if one, err := Read[Sink](s.store, kv); err == nil {
			out[k.Word] = one
		}
	}
	return out, nil
}

// Keep writes how far a sink is, as the reactor that became that at a revision. It is false, and nothing is written,
// where that is not the reactor any more.
func (s *Sinks) Keep(ctx context.Context, since int64, name string, sink Sink) (bool, error) {
	done, err := s.store.Client.Txn(ctx).If(s.store.Events.leads(since)).Then(Put(s.key(name), sink.bounded())).Commit()
	return err == nil && done.Succeeded, err
}

// Forget removes the record of a sink that the fleet does not have any more, as Keep writes one.
func (s *Sinks) Forget(ctx context.Context, since int64, name string) (bool, error) {
	remove := clientv3.OpDelete(s.key(name))
	done, err := s.store.Client.Txn(ctx).If(s.store.Events.leads(since)).Then(remove).Commit()
	return err == nil && done.Succeeded, err
}

// Stretch is a part of the log.
type Stretch struct {
	Pages    []Page // the oldest first
	First    int    // the first page that the log keeps
	Last     int    // its last page
	Upto     int    // the pages up to this one were read, as far as they are there and can be read
	Revision int64
}

// Stretch reads so many pages of the log at most, from a number on.
func (s *Sinks) Stretch(ctx context.Context, from, most int) (*Stretch, error) {
	ops := []clientv3.Op{clientv3.OpGet(s.store.Events.cursorKey())}
	for n := range most {
		ops = append(ops, clientv3.OpGet(s.store.EventLog.pageKey(from+n)))
	}
	got, err := s.store.Client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, err
	}
	cursor := s.store.Events.cursorOf(got.Responses[0].GetResponseRange().Kvs, got.Header.Revision)
	out := &Stretch{
		First: min(cursor.First, cursor.Page+1), Last: cursor.Page, Upto: min(cursor.Page, from+most-1),
		Revision: got.Header.Revision,
	}
	for n, answer := range got.Responses[1:] {
		for _, kv := range answer.GetResponseRange().Kvs {
			if page, err := Read[Page](s.store, kv); err == nil && from+n <= cursor.Page {
				page.Number = from + n
				out.Pages = append(out.Pages, page)
			}
		}
	}
	return out, nil
}

// Await waits until the log changes after a revision, or for as long as a poll takes. It is false when ctx ends first.
func (s *Sinks) Await(ctx context.Context, after int64, poll time.Duration) bool {
	return s.store.Bells.Await(ctx, s.store.EventLog.prefix(), after, poll, clientv3.WithPrefix())
}
