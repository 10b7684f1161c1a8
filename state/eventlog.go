package state

import (
	"context"
	"math"
	"slices"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Log is what happened: the newest page first. With pages it reads so many.
func (s *Events) Log(ctx context.Context, pages int) ([]Page, error) {
	got, err := s.store.Client.Get(ctx, s.pageKey(0), clientv3.WithRange(s.pageKey(math.MaxInt32)+"\x00"),
		clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend), clientv3.WithLimit(int64(pages)))
	if err != nil {
		return nil, err
	}
	var out []Page
	for _, kv := range got.Kvs {
		if page, err := Read[Page](s.store, kv); err == nil {
			out = append(out, page)
		}
	}
	return out, nil
}

// Waiting are the events that the reactor does not have yet, by the time at which they happened.
func (s *Events) Waiting(ctx context.Context) ([]Event, error) {
	got, err := s.store.Client.Txn(ctx).
		Then(clientv3.OpGet(s.outboxesPrefix(), clientv3.WithPrefix()), clientv3.OpGet(s.cursorKey())).Commit()
	if err != nil {
		return nil, err
	}
	in := &Inbox{Cursor: s.cursorOf(got.Responses[1].GetResponseRange().Kvs)}
	for _, kv := range got.Responses[0].GetResponseRange().Kvs {
		in.take(s.readBox(kv).Events)
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
