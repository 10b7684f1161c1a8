package state

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// clockLease is how long etcd counts without a reactor. Then the fleet's clock stops until there is one.
	clockLease = 365 * 24 * time.Hour
	// halfSecond is what etcd counts too much on average: it returns the rest of a lease in whole seconds.
	halfSecond = time.Second / 2
)

// FleetTime is a reading of the fleet's clock. It serves to subtract times, and not to show them: the beginning may be
// wrong, and a restored etcd continues at the time of its backup.
type FleetTime struct {
	Now   time.Time     // UTC; the time of this host if no clock is on record
	Age   time.Duration // since it was saved; lost if etcd counts its leases again because its leader changes
	Saved bool          // etcd counts

	cursor Cursor
	rev    int64
}

// Time reads the fleet's clock.
func (s *Events) Time(ctx context.Context) (FleetTime, error) {
	got, err := s.store.Client.Get(ctx, s.cursorKey())
	if err != nil {
		return FleetTime{}, err
	}
	t := FleetTime{Now: time.Now().UTC(), cursor: s.cursorOf(got.Kvs, got.Header.Revision)}
	for _, kv := range got.Kvs {
		t.rev = kv.ModRevision
	}
	clock := t.cursor.Clock
	if clock.At.IsZero() {
		return t, nil
	}
	times, err := s.store.Views.leaseTimes(ctx, int64(clock.Lease))
	if err != nil {
		return FleetTime{}, err
	}
	t.Now, t.Saved = clock.At, times.Age+times.Left == clockLease // else the lease ended, or is another one
	if t.Saved {
		t.Age = max(0, times.Age-halfSecond)
		t.Now = t.Now.Add(t.Age)
	}
	return t, nil
}

// SaveTime writes a reading of the fleet's clock with the time that it has now, and returns it as it is on record. It
// is false, and nothing is written, where the reactor that became that at a revision is not the reactor any more.
func (s *Events) SaveTime(ctx context.Context, since int64, t FleetTime) (FleetTime, bool, error) {
	granted, err := s.store.Client.Grant(ctx, int64(clockLease.Seconds()))
	if err != nil {
		return t, false, err
	}
	next := FleetTime{Now: t.Now, Saved: true, cursor: t.cursor}
	next.cursor.Clock = FleetClock{t.Now, granted.ID}
	done, err := s.store.Client.Txn(ctx).
		If(s.leads(since), clientv3.Compare(clientv3.ModRevision(s.cursorKey()), "=", t.rev)).
		Then(Put(s.cursorKey(), next.cursor)).Commit()
	if err != nil {
		return t, false, err
	}
	if !done.Succeeded {
		_, _ = s.store.Client.Revoke(ctx, granted.ID) // it ends by itself
		return t, false, nil
	}
	if t.Saved {
		_, _ = s.store.Client.Revoke(ctx, t.cursor.Clock.Lease) // so does this one
	}
	next.rev = done.Header.Revision
	return next, true, nil
}

// Counted returns what the reactor counts, by reaction and event, with its times by the clock of this host.
func (s *EventLog) Counted(ctx context.Context) ([]Group, error) {
	groups, err := s.Groups(ctx)
	if err != nil || len(groups) == 0 {
		return nil, err
	}
	fleet, err := s.store.Events.Time(ctx)
	if err != nil {
		return nil, err
	}
	for i := range groups {
		groups[i].shift(time.Since(fleet.Now).Round(time.Minute)) // clocks that are right differ by less
	}
	return groups, nil
}

// shift moves the times of a group.
func (g *Group) shift(by time.Duration) {
	move := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(by)
		}
	}
	for i := range g.Tallies {
		t := &g.Tallies[i]
		move(&t.Ready)
		move(&t.Reacted)
		move(&t.Next)
		for n := range t.Seen {
			move(&t.Seen[n].At)
		}
	}
}
