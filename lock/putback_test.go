package lock

import (
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// putsBack claims a place again.
func (f *fleet) putsBack(held *state.HeldPlace, while clientv3.Cmp) int64 {
	f.t.Helper()
	claimed, err := PutBack(f.ctx, f.Store, held, while)
	f.must(err)
	return claimed
}

// TestPutBack: a slot that the store forgot is claimed again, beside those that others have meanwhile; one that it
// knows stays as it is.
func TestPutBack(t *testing.T) {
	f := newFleet(t)
	turn := f.mustTry(f.request("web1", "web"))
	f.must(turn.Check(f.ctx, "join"))
	held := turn.Slot()
	always := turn.req.Presence.Lives()
	f.putsBack(held, always)
	if got := f.keys(f.Rollouts.SlotPrefix("web")); !slices.Equal(got, []string{"0"}) {
		t.Fatalf("%q", got)
	}
	_, err := f.Client.Delete(f.ctx, turn.claim.held.key)
	f.must(err)
	f.putsBack(held, f.Doubts.None()) // somebody accepted the record meanwhile
	if got := f.keys(f.Rollouts.SlotPrefix("web")); len(got) > 0 {
		t.Fatalf("%q", got)
	}
	other := f.mustTry(f.request("web2", "web"))
	claimed := f.putsBack(held, always)
	if got, err := f.Client.Get(f.ctx, f.Doubts.ClaimedKey("web1")); err != nil || got.Kvs[0].ModRevision != claimed {
		t.Errorf("claimed at %d: %v, %v", claimed, got, err)
	}
	if got := f.keys(f.Rollouts.SlotPrefix("web")); !slices.Equal(got, []string{"0", "1"}) {
		t.Errorf("%q", got)
	}
	f.must(other.Release(f.ctx))
	f.mustWait(f.request("web3", "web"), "web1 holds it|in step join")
	f.mustTry(f.request("web1", "web"))
}

// TestPutBackCounts: a node in mid-run counts at the barriers of its version, also where the restored record has it as
// given up, or never knew it; an operator can give it up there.
func TestPutBackCounts(t *testing.T) {
	for name, forget := range map[string]func(f *fleet){
		"given up": func(f *fleet) { f.decommission("db1") },
		"unknown": func(f *fleet) {
			f.decommission("db1")
			for _, key := range []string{f.Nodes.Key("db1"), f.Nodes.DecommissionedKey("db1")} {
				_, err := f.Client.Delete(f.ctx, key)
				f.must(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			db1, db2 := f.request("db1", "db"), f.request("db2", "db")
			held := f.mustTry(db1).Slot()
			forget(f)
			if members, err := f.Rosters.Members(f.ctx, nil); err != nil || len(members) != 1 {
				t.Fatalf("%v, %v", members, err)
			}
			f.putsBack(held, db2.Presence.Lives())
			if f.arrive(db2, Done) {
				t.Fatal("the barrier is open")
			}
			f.mustAwait(db2, "db1")
			_, err := f.Nodes.Decommission(f.ctx, "db1", "ada", false)
			f.must(err)
			f.mustAwait(db2, "")
			if got := f.keys(f.Rollouts.SlotPrefix("db")); len(got) > 0 {
				t.Errorf("%q", got)
			}
		})
	}
}
