package lock

import (
	"cmp"
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// incarnationOps read etcd's incarnation on record, the grace time and the doubt in the record, for incarnation.
func (l *reader) incarnationOps() []clientv3.Op {
	s := l.store
	return []clientv3.Op{
		clientv3.OpGet(s.Doubts.IncarnationKey()), clientv3.OpGet(s.Doubts.GraceKey()), clientv3.OpGet(s.Doubts.Key()),
	}
}

// readIncarnation files what incarnationOps read, for every kind of place: no claim is made in a record that nobody
// accepted. A claim compares it: nobody is admitted over a word that came in between.
func (l *reader) readIncarnation(r *reading, a *answers) {
	on, grace, doubt := a.kvs(), a.kvs(), a.kvs()
	r.unmoved(l.store.Doubts.IncarnationKey(), on)
	r.unmoved(l.store.Doubts.GraceKey(), grace)
	r.unmoved(l.store.Doubts.Key(), doubt)
	r.stops(l.store, state.StoreScope, l.store.Doubts.Key(), doubt)
	r.wasRev = revisionOf(on)
	for _, kv := range on {
		r.was, _ = state.Read[state.Incarnation](l.store, kv) // one that cannot be read is none
	}
	r.view.Unknown = l.store.ServesHosts() && !r.now.Continues(r.was)
	for _, kv := range grace {
		until, err := state.Read[state.Moment](l.store, kv)
		if r.view.Grace = until.Time; err != nil || until.IsZero() {
			r.view.Grace = time.Now().Add(state.Grace)
		}
	}
}

// checkIncarnation compares the length of etcd's raft log with the record where the node would be admitted: a snapshot
// that was restored may come up with the ids and the term of before. ErrMoved: the doubt is on record.
func (l *reader) checkIncarnation(ctx context.Context, r *reading) error {
	if !l.store.ServesHosts() || r.was.Lead == nil {
		return nil
	}
	is, err := l.store.Doubts.Incarnation(ctx)
	if err != nil || is.Continues(r.was) && is.Replaced(r.was) == "" {
		return err
	}
	return cmp.Or(l.store.Doubts.Recognise(ctx, l.req.node(), r.was, r.wasRev), ErrMoved)
}

// restarted reports an answer of another incarnation than the look was made in.
func (l *reader) restarted(r *reading, h *pb.ResponseHeader) bool {
	return l.store.ServesHosts() && !state.IncarnationOf(h).Continues(r.now)
}

// graceTime is the wait of a node while others report what they hold.
func graceTime(until time.Time) *Wait {
	w := &Wait{
		Kind:   state.WaitGrace,
		Gate:   "the fleet's record (etcd restarted)",
		Remedy: state.NoAction(),
		Until:  until,
	}
	w.Reason = "etcd restarted or changed its leader; nodes in the middle of an upgrade report first"
	switch {
	case until.After(time.Now()):
		w.Reason += ", until " + until.Local().Format(time.TimeOnly)
	case !until.IsZero(): // each new leader of etcd lets all leases begin again
		w.Reason += fmt.Sprintf(", until etcd keeps its leader for %s", state.Grace)
	}
	return w
}
