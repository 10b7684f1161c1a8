package lock

import (
	"cmp"
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// incarnationOps read etcd's incarnation on record and the grace time, for incarnation.
func (t *Turn) incarnationOps() []clientv3.Op {
	return []clientv3.Op{clientv3.OpGet(t.store.IncarnationKey()), clientv3.OpGet(t.store.GraceKey())}
}

// incarnation files what incarnationOps read. A claim compares it: nobody is admitted over a word that came in between.
func (t *Turn) incarnation(r *reading, a *answers) {
	on, grace := a.kvs(), a.kvs()
	r.unmoved(t.store.IncarnationKey(), on)
	r.unmoved(t.store.GraceKey(), grace)
	r.wasRev = revisionOf(on)
	for _, kv := range on {
		r.was, _ = state.Read[state.Incarnation](t.store, kv) // one that cannot be read is none
	}
	r.view.Unknown = t.store.ServesHosts() && !r.now.Continues(r.was)
	for _, kv := range grace {
		until, err := state.Read[state.Moment](t.store, kv)
		if r.view.Grace = until.Time; err != nil || until.IsZero() {
			r.view.Grace = time.Now().Add(state.Grace)
		}
	}
}

// vouch compares the length of etcd's raft log with the record where the node would be admitted: a snapshot that was
// restored may come up with the ids and the term of before. ErrMoved: the doubt is on record.
func (t *Turn) vouch(ctx context.Context, r *reading) error {
	if !t.store.ServesHosts() || r.was.Lead == nil {
		return nil
	}
	is, err := t.store.Incarnation(ctx)
	if err != nil || is.Continues(r.was) && is.Replaced(r.was) == "" {
		return err
	}
	return cmp.Or(t.store.Recognise(ctx, t.req.node(), r.was, r.wasRev), ErrMoved)
}

// restarted reports an answer of another incarnation than the look was made in.
func (t *Turn) restarted(r *reading, h *pb.ResponseHeader) bool {
	return t.store.ServesHosts() && !state.IncarnationOf(h).Continues(r.now)
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
	if !until.IsZero() {
		w.Reason += ", until " + until.Local().Format(time.TimeOnly)
	}
	return w
}
