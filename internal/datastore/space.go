package datastore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/pullet/pullet/state"
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

// wastes reports a file of which most is free.
func (s space) wastes() bool { return s.file > wasteful && s.file-s.used > s.file/2 }

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
	tell                   // people: whose records fill it
	warn                   // people: whose records soon do
)

// cared is what was done about the space: in this round, and when last.
type cared struct {
	tidied, shrunk bool  // in this round, or before, and nothing changed since
	revision       int64 // of the record when it was tidied last
	defragmented   time.Time
	wastes         time.Time // since when most of the file is free; zero: it is not
	told, warned   time.Time // that it is full, and that it soon is
}

// wasteful is up to which size a file is left as it is, in bytes, as long as etcd takes writes.
const wasteful = 100 << 20

const (
	// between two defragmentations: nobody is answered meanwhile. A full file without free space is tried, too, because
	// what was removed just now is not counted as free yet.
	shrinkWait = time.Hour
	tellWait   = 10 * time.Minute // between two times that people are told that it is full
	warnWait   = time.Hour        // and that it soon is
)

// next is what is done next about the space.
func (c cared) next(s space, now time.Time) step {
	free := s.file - s.used
	switch {
	case s.full && !c.tidied:
		return tidy
	case s.full && !c.shrunk && (free > s.file/20 || now.Sub(c.defragmented) > shrinkWait):
		return defragment
	case s.full && s.file < s.quota/10*9: // closer to the quota it would be full again at once
		return disarm
	case !s.full && s.wastes() && now.Sub(c.defragmented) > shrinkWait && !c.shrunk:
		return defragment
	case s.full && now.Sub(c.told) > tellWait:
		return tell
	case !s.full && s.crowded() && now.Sub(c.warned) > warnWait:
		return warn
	}
	return rest
}

// room is where a keeper cares for the space.
type room struct {
	*member
	store *state.Store
	meter *meter
	log   *logrus.Entry
	*cared
	node  string
	leads bool // the member leads: its keeper cares for the record, and each for the file of its own member
}

func roomOf(k *keeper) room {
	return room{k.member, k.store, k.guard.meter, k.Log, &k.cared, k.Node, k.member.leads()}
}

// keep does what there is to do about the space.
func (r room) keep(ctx context.Context, now time.Time) error {
	r.tidied, r.shrunk = !r.leads || r.server.Server.KV().Rev() == r.revision, false
	r.meter.tell(r.log)
	if !r.space().wastes() {
		r.wastes = time.Time{}
	} else if r.wastes.IsZero() {
		r.wastes = now
	}
	for {
		var err error
		next := r.next(r.space(), now)
		if next > defragment && !r.leads {
			return nil
		}
		switch next {
		case tidy:
			r.tidied = true
			err = r.tidy(ctx)
		case defragment:
			r.shrunk, r.defragmented = true, now
			err = r.defragmentInTurn(ctx, now)
		case disarm:
			err = r.disarm(ctx)
		case tell:
			r.told = now
			r.log.Error("the datastore is full and takes no writes: " + r.String())
		case warn:
			r.warned = now
			r.log.Warn("the datastore is nearly full: " + r.String())
		default:
			return nil
		}
		if err != nil {
			return fmt.Errorf("the space of the datastore: %w", err)
		}
	}
}

// turnTTL is how long one member may take for its defragmentation until another one does the same, in seconds.
const turnTTL = 300

// defragmentInTurn defragments the member while no other one does: one that does answers nobody. The others come before
// the one that leads. A full datastore does not wait: nothing is written there.
func (r room) defragmentInTurn(ctx context.Context, now time.Time) error {
	if !r.among() || r.space().full {
		return r.defragment()
	}
	if waits, err := r.waitsForOthers(ctx, now); err != nil || waits {
		r.defragmented = time.Time{} // at the next look
		return err
	}
	turn, err := r.store.Datastores.Turn(ctx, r.node+" defragments", turnTTL)
	if err != nil || turn == 0 {
		r.defragmented = time.Time{} // at the next look
		return err
	}
	defer func() { _, _ = r.store.Client.Revoke(ctx, turn) }() // it ends by itself
	return r.defragment()
}

// waitsForOthers reports that this member leads, and that the file of another one wastes space, too: that one comes
// first. Each finds that out for itself, a moment later. One that does not answer is not waited for.
func (r room) waitsForOthers(ctx context.Context, now time.Time) (bool, error) {
	if !r.leads || now.Sub(r.wastes) < 2*lookEvery {
		return r.leads, nil
	}
	listed, err := r.store.Client.MemberList(ctx)
	if err != nil {
		return false, err
	}
	self := uint64(r.server.Server.MemberID())
	others := slices.DeleteFunc(listed.Members, func(m *pb.Member) bool { return m.ID == self })
	for _, s := range statuses(ctx, r.store.Client, others) {
		if (space{file: s.DbSize, used: s.DbSizeInUse}).wastes() {
			return true, nil
		}
	}
	return false, nil
}

// mostRead is how much of the record is read to find out what is not needed. Somebody may have filled it.
const mostRead = 64 << 20

// tidy removes what nobody needs: what belongs to versions that retired, and the history.
func (r room) tidy(ctx context.Context) error {
	var err error
	if r.weigh(r.store).shared("history", "run") < mostRead {
		err = r.store.Versions.Retire(ctx)
	}
	err = errors.Join(err, r.compact(ctx))
	if err == nil {
		r.revision = r.server.Server.KV().Rev()
	}
	return err
}

// disarm lets etcd take writes again.
func (r room) disarm(ctx context.Context) error {
	for _, a := range r.server.Server.Alarms() {
		if a.Alarm != pb.AlarmType_NOSPACE {
			continue
		}
		if _, err := r.store.Client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(a)); err != nil {
			return err
		}
	}
	r.log.WithField("space", r.space()).Info("the datastore was full, and takes writes again")
	return nil
}

// String is whose records take the space, and what helps.
func (r room) String() string {
	return fmt.Sprintf("%s; %s; %s; who was taken over is shut out on this host with: pullet decommission --force NODE; "+
		"or give it more room: datastore.quota, and systemctl restart pullet-etcd", r.space(), r.weigh(r.store), r.meter)
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
