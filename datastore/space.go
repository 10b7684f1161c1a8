package datastore

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// space is how full the datastore is, with sizes in bytes. etcd compares the file with the quota, also where most of
// the file is free: only defragmentation makes it smaller.
type space struct {
	file  int64
	used  int64 // of the file
	quota int64
	full  bool // etcd takes no more writes, until the alarm is disarmed
}

// crowded reports that so much is in use that people should look.
func (s space) crowded() bool { return s.used > s.quota/4*3 }

// String is the space in words.
func (s space) String() string {
	return fmt.Sprintf("%s of %s are in use", sized(s.used), sized(s.quota))
}

// step is one thing that is done about the space.
type step int

const (
	rest       step = iota // nothing is to be done
	tidy                   // of the whole record: remove what nobody needs, and the history
	defragment             // of one member: make its file smaller
	disarm                 // of the whole record: let etcd take writes again
	tell                   // people: whose records take the space
)

// cared is what was done about the space: in this round, and when last.
type cared struct {
	tidied, shrunk bool // in this round
	defragmented   time.Time
	told           time.Time
}

// wasteful is up to which size a file is left as it is, in bytes, as long as etcd takes writes.
const wasteful = 100 << 20

const (
	shrinkWait = time.Hour        // between two defragmentations at ordinary times: nobody is answered meanwhile
	tryWait    = 10 * time.Minute // and of a full file without free space: what was removed just now is not counted yet
	tellWait   = 10 * time.Minute // between two times that people are told that it is full
	warnWait   = time.Hour        // and that it soon is
)

// next is what is done next about the space.
func (c cared) next(s space, now time.Time) step {
	free := s.file - s.used
	switch {
	case s.full && !c.tidied:
		return tidy
	case s.full && !c.shrunk && (free > s.file/20 || now.Sub(c.defragmented) > tryWait):
		return defragment
	case s.full && s.file < s.quota/10*9: // closer to the quota it would be full again at once
		return disarm
	case !s.full && s.file > wasteful && free > s.file/2 && now.Sub(c.defragmented) > shrinkWait:
		return defragment
	case s.full && now.Sub(c.told) > tellWait, s.crowded() && now.Sub(c.told) > warnWait:
		return tell
	}
	return rest
}

// keepRoom does what there is to do about the space.
func (k *keeper) keepRoom(ctx context.Context, now time.Time) error {
	k.space.tidied, k.space.shrunk = false, false
	k.tellThrottled()
	for {
		var err error
		switch k.space.next(k.member.space(), now) {
		case tidy:
			k.space.tidied = true
			err = k.tidy(ctx)
		case defragment:
			k.space.shrunk, k.space.defragmented = true, now
			err = k.member.defragment()
		case disarm:
			err = k.disarm(ctx)
		case tell:
			k.space.told = now
			k.tellFull()
		default:
			return nil
		}
		if err != nil {
			return fmt.Errorf("the space of the datastore: %w", err)
		}
	}
}

// space measures the member.
func (m *member) space() space {
	db := m.server.Server.Backend()
	out := space{file: db.Size(), used: db.SizeInUse(), quota: m.quota()}
	for _, a := range m.server.Server.Alarms() {
		out.full = out.full || a.Alarm == pb.AlarmType_NOSPACE
	}
	return out
}

// defragment writes the member's file anew without what is free. etcd answers nobody meanwhile. The call of etcd's
// client would end after seconds, and a large file takes longer.
func (m *member) defragment() error { return m.server.Server.Backend().Defrag() }

// compact forgets the history of the record, and waits until that is done.
func (m *member) compact(ctx context.Context) error {
	etcd := m.server.Server
	_, err := etcd.Compact(ctx, &pb.CompactionRequest{Revision: etcd.KV().Rev(), Physical: true})
	return unless(err, mvcc.ErrCompacted)
}

// mostRead is how much of the record is read to find out what is not needed. Somebody may have filled it.
const mostRead = 64 << 20

// tidy removes what nobody needs: what belongs to versions that retired, and the history.
func (k *keeper) tidy(ctx context.Context) error {
	var err error
	if k.member.weigh(k.store).shared("history", "run") < mostRead {
		err = k.store.Versions.Retire(ctx)
	}
	return errors.Join(err, k.member.compact(ctx))
}

// disarm lets etcd take writes again.
func (k *keeper) disarm(ctx context.Context) error {
	for _, a := range k.member.server.Server.Alarms() {
		if a.Alarm != pb.AlarmType_NOSPACE {
			continue
		}
		if _, err := k.store.Client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(a)); err != nil {
			return err
		}
	}
	k.Log.WithField("space", k.member.space()).Info("the datastore was full, and takes writes again")
	return nil
}

// tellFull says whose records take the space.
func (k *keeper) tellFull() {
	s := k.member.space()
	if s.full {
		k.Log.Error("the datastore is full and takes no writes: " + k.told(s))
	} else {
		k.Log.Warn("the datastore is nearly full: " + k.told(s))
	}
}

// told is whose records take the space, and what helps.
func (k *keeper) told(s space) string {
	return fmt.Sprintf("%s; %s; %s; who was taken over is shut out on this host with: pullet decommission --force NODE; "+
		"or give it more room: datastore.quota, and systemctl restart pullet-etcd", s, k.member.weigh(k.store), k.guard.meter)
}
