package state

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func (s *EventLog) prefix() string { return s.store.key("happened") + "/" }

func (s *EventLog) pageKey(n int) string { return s.prefix() + fmt.Sprintf("%010d", n) }

// Newest is what happened, the newest page first: so many pages before one, by its number; 0 is before none.
func (s *EventLog) Newest(ctx context.Context, before, pages int) ([]Page, error) {
	end := s.pageKey(math.MaxInt32)
	if before > 0 {
		end = s.pageKey(before)
	}
	return s.pages(ctx, s.pageKey(0), end, clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend), pages)
}

// After is what happened after a page, the oldest page first.
func (s *EventLog) After(ctx context.Context, page, pages int) ([]Page, error) {
	order := clientv3.WithSort(clientv3.SortByKey, clientv3.SortAscend)
	return s.pages(ctx, s.pageKey(page+1), s.pageKey(math.MaxInt32), order, pages)
}

func (s *EventLog) pages(
	ctx context.Context, from, end string, order clientv3.OpOption, most int,
) (out []Page, err error) {
	got, err := s.store.Client.Get(ctx, from, clientv3.WithRange(end), order, clientv3.WithLimit(int64(most)))
	if err != nil {
		return nil, err
	}
	for _, kv := range got.Kvs {
		k, err := s.store.Key(kv)
		if err != nil {
			continue
		}
		page, err := Read[Page](s.store, kv)
		if err != nil {
			page = Page{} // those before it are there
		}
		page.Number = k.Place
		out = append(out, page)
	}
	return out, nil
}

// Await waits until there is a page after one, or for as long as a poll takes. It is false when ctx ends first.
func (s *EventLog) Await(ctx context.Context, page int, poll time.Duration) bool {
	key := s.pageKey(page + 1)
	watch, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), poll)
	defer cancel()
	changes := s.store.Client.Watch(watch, key, clientv3.WithRange(s.pageKey(math.MaxInt32)))
	if got, err := s.store.Client.Get(watch, key, clientv3.WithCountOnly()); err == nil && got.Count > 0 {
		return true
	}
	if _, open := <-changes; !open { // of a watch that fails the poll is the way to go on
		Pause(watch, poll)
	}
	return ctx.Err() == nil
}

// Groups are what the reactor counts, by reaction and event.
func (s *EventLog) Groups(ctx context.Context) ([]Group, error) {
	got, err := s.store.Client.Get(ctx, s.store.Events.groupsPrefix(), clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	var out []Group
	for _, kv := range got.Kvs {
		if g, err := Read[Group](s.store, kv); err == nil {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Reaction, b.Reaction), cmp.Compare(a.Event, b.Event))
	})
	return out, nil
}

// Waiting are the events that the reactor does not have yet, by the time at which they happened.
func (s *EventLog) Waiting(ctx context.Context) ([]Event, error) {
	got, err := s.store.Client.Txn(ctx).
		Then(clientv3.OpGet(s.store.Events.outboxesPrefix(), clientv3.WithPrefix()),
			clientv3.OpGet(s.store.Events.cursorKey())).Commit()
	if err != nil {
		return nil, err
	}
	in := &Inbox{Cursor: s.store.Events.cursorOf(got.Responses[1].GetResponseRange().Kvs, got.Header.Revision)}
	for _, kv := range got.Responses[0].GetResponseRange().Kvs {
		in.take(s.store.Events.readBox(kv).Events)
	}
	var out []Event
	for _, e := range in.Events {
		out = append(out, e.Event)
	}
	slices.SortStableFunc(out, func(a, b Event) int { return a.Time.Compare(b.Time) })
	return out, nil
}

// TellsOf is a short digest of what an event's Dedupe is about.
func TellsOf(e Event) string { return GroupHash(e.Name, strconv.Quote(e.Dedupe)) }
