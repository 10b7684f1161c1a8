package lock

import (
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// TestGrace: after a restart of etcd nobody is admitted until the grace time is over, but for who is admitted already;
// nobody has to do anything.
func TestGrace(t *testing.T) {
	f := newFleet(t)
	holder := f.mustTry(f.request("web1", "web"))
	is, err := f.Doubts.Incarnation(f.ctx)
	f.must(err)
	is.Term--
	_, err = f.Client.Do(f.ctx, state.Put(f.Doubts.IncarnationKey(), is)) // etcd was restarted since
	f.must(err)
	next := f.request("web2", "web")
	next.Rules.Limit = limit(2)
	for range 2 { // also once the restart is recorded
		f.mustWait(next, "the fleet's record (etcd restarted)|etcd restarted or changed its leader|report first, until |no action needed")
	}
	if again := f.mustTry(f.request("web1", "web")); again.Fence() != holder.Fence() {
		t.Error("who holds a claim does not go on inside it")
	}
	grace, err := f.Client.Get(f.ctx, f.Doubts.GraceKey())
	f.must(err)
	lease := clientv3.LeaseID(grace.Kvs[0].Lease)
	if left, err := f.Client.TimeToLive(f.ctx, lease); err != nil || left.GrantedTTL != int64(state.Grace/time.Second) {
		t.Errorf("the grace time: %+v %v", left, err)
	}
	if why := f.stops(f.request("db1", "db")); !strings.Contains(why, "etcd restarted or changed its leader") { // who is in the step may be forgotten
		t.Errorf("serialize: %s", why)
	}
	_, err = f.Client.Revoke(f.ctx, lease)
	f.must(err)
	f.mustTry(next)
	f.mustSerialize(f.request("db1", "db"))
}

// TestGraceGoesOn: a new leader prolongs the grace time, so the time that is on record for its end may have passed.
func TestGraceGoesOn(t *testing.T) {
	f := newFleet(t)
	f.mustTry(f.request("web1", "web"))
	_, err := f.Client.Do(f.ctx, state.Put(f.Doubts.GraceKey(), time.Now().Add(-time.Minute)))
	f.must(err)
	f.mustWait(f.request("db1", "db"), "the fleet's record (etcd restarted)|report first, until etcd keeps its leader for 45s|no action needed")
}

// TestNotRecorded: a record from before incarnations were recorded may be a restored one.
func TestNotRecorded(t *testing.T) {
	f := newFleet(t)
	_, err := f.Client.Delete(f.ctx, f.Doubts.IncarnationKey())
	f.must(err)
	f.mustWait(f.request("web1", "web"), "etcd restarted")
}

// TestDoubtKeepsStepsShut: while nobody has accepted a doubted record, a node that was admitted before goes on under
// its slot and begins no serialized step, with the grace time over; who is in such a step keeps its place.
func TestDoubtKeepsStepsShut(t *testing.T) {
	f := newFleet(t)
	admitted := f.request("db1", "db")
	f.mustTry(admitted)
	_, err := f.Client.Do(f.ctx, state.Put(f.Doubts.Key(), state.Switch{Reason: "it went back", By: "db2"}))
	f.must(err)
	f.mustTry(admitted)
	f.contains(f.stops(admitted), "it went back|pullet rollout resume --store")
	f.must(f.Doubts.Accept(f.ctx, "ada"))
	in := f.mustSerialize(admitted)
	_, err = f.Client.Do(f.ctx, state.Put(f.Doubts.Key(), state.Switch{Reason: "it went back again", By: "db2"}))
	f.must(err)
	if again := f.mustSerialize(admitted); again.Fence() != in.Fence() {
		t.Error("it lost its place at the step")
	}
}
