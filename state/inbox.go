package state

import (
	"cmp"
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Inbox is what the reactor has on its desk, at one revision.
type Inbox struct {
	Cursor    Cursor
	CursorRev int64
	Events    []Sent // that it does not have yet, in the order of the cursor
	Upto      int64  // the revision up to which these are all events, unless there are more
	More      bool   // there are more behind the last of them
	Groups    []Group
	Told      Told
	Runs      int                        // that are not over
	Busy      map[string]map[string]bool // by reaction, the hosts that are not through with a run of it
	Paused    map[string]PausedReaction  // by reaction
	Revision  int64
}

// Inbox reads what the reactor has to do.
func (s *Events) Inbox(ctx context.Context) (*Inbox, error) {
	got, err := s.store.Client.Get(ctx, s.cursorKey())
	if err != nil {
		return nil, err
	}
	in := &Inbox{Cursor: s.cursorOf(got.Kvs, got.Header.Revision), Told: Told{}}
	for _, kv := range got.Kvs {
		in.CursorRev = kv.ModRevision
	}
	all, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.groupsPrefix(), clientv3.WithPrefix()),
		clientv3.OpGet(s.toldKey()),
		clientv3.OpGet(s.store.Reactions.PendingPrefix(), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.store.Reactions.pausedPrefix(), clientv3.WithPrefix())).Commit()
	if err != nil {
		return nil, err
	}
	in.Revision = all.Header.Revision
	s.fileGroups(in, all.Responses[:2])
	in.Paused = s.store.Reactions.pausedOf(all.Responses[3].GetResponseRange().Kvs)
	if err := s.readBoxes(ctx, in); err != nil {
		return nil, err
	}
	return in, s.store.Reactions.fileRuns(ctx, in, all.Responses[2].GetResponseRange().Kvs)
}

// The outboxes that the reactor reads in one request, and the events that it takes at once.
const (
	boxesAtOnce  = 200
	eventsAtOnce = 4 * MaxOutbox * 10
)

// readBoxes reads the events that are new, as far as there is room for them.
func (s *Events) readBoxes(ctx context.Context, in *Inbox) error {
	in.Upto = in.Revision
	key, end := s.outboxesPrefix(), clientv3.GetPrefixRangeEnd(s.outboxesPrefix())
	for {
		got, err := s.store.Client.Get(ctx, key, clientv3.WithRange(end), clientv3.WithRev(in.Revision),
			clientv3.WithMinModRev(in.Cursor.Revision+1), clientv3.WithLimit(boxesAtOnce))
		if err != nil {
			return err
		}
		for _, kv := range got.Kvs {
			in.take(s.readBox(kv).Events)
		}
		if !got.More || len(got.Kvs) == 0 {
			in.sort()
			return nil
		}
		key = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
	}
}

// take files the events of an outbox that are new.
func (in *Inbox) take(box []Sent) {
	c, at := in.Cursor, 0
	for _, e := range box {
		if e.Rev == c.Next && e.By == c.By {
			at++
		}
		read := e.Rev <= c.Revision || e.Rev == c.Next && (e.By < c.By || e.By == c.By && at <= c.Done)
		if !read {
			in.Events = append(in.Events, e)
		}
	}
	if len(in.Events) > 2*eventsAtOnce { // wherever that is: hosts may say that all of them have one revision
		in.More = true
		in.sort()
	}
}

// sort puts the events into the order of the cursor. Of more than there is room for it keeps the first ones: what was
// left out before comes behind all of them.
func (in *Inbox) sort() {
	slices.SortStableFunc(in.Events, func(a, b Sent) int {
		return cmp.Or(cmp.Compare(a.Rev, b.Rev), cmp.Compare(a.By, b.By))
	})
	if in.More {
		in.Events = in.Events[:min(len(in.Events), eventsAtOnce)]
	}
}

func (s *Events) fileGroups(in *Inbox, answers []*pb.ResponseOp) {
	for _, kv := range answers[0].GetResponseRange().Kvs {
		if g, err := Read[Group](s.store, kv); err == nil { // another one is counted anew
			in.Groups = append(in.Groups, g)
		}
	}
	for _, kv := range answers[1].GetResponseRange().Kvs {
		if told, err := Read[Told](s.store, kv); err == nil {
			in.Told = told
		}
	}
}

// after is the cursor when so many events of the inbox were read.
func (in *Inbox) after(n int) Cursor {
	c := in.Cursor
	if n == len(in.Events) && !in.More {
		c.Revision, c.Next, c.By, c.Done = max(in.Upto, c.Revision), 0, "", 0
		return c
	}
	for _, e := range in.Events[:n] {
		if e.Rev != c.Next || e.By != c.By {
			c.Next, c.By, c.Done = e.Rev, e.By, 0
		}
		c.Done++
	}
	if c.Next > 0 {
		c.Revision = max(c.Revision, c.Next-1)
	}
	return c
}
