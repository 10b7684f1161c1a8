package lock

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/state"
)

// record is what is kept of a claim that was taken back.
type record struct {
	By, Slot, OnLost string
	Fence            int64
	Claim            state.Claim
}

func (f *fleet) lost(node string) record {
	f.t.Helper()
	got, err := f.Client.Get(f.ctx, f.Rollouts.LostKey("v1", node))
	f.must(err)
	var r record
	if len(got.Kvs) > 0 {
		f.must(json.Unmarshal(got.Kvs[0].Value, &r))
	}
	return r
}

// TestLostHolder: what becomes of a claim whose node does not answer, by the rules; its node learns it when it comes
// back.
func TestLostHolder(t *testing.T) {
	for _, c := range []struct {
		onLost   string
		survives int
		waits    string // "": the next is admitted
		gate     string
		failed   int
	}{
		{"", 0, "holder holds it|(not answering)|pullet decommission holder", "open", 0},
		{Hold, 0, "holder holds it|(not answering)", "open", 0},
		{Release, 0, "", "open", 0},
		{Fail, 0, "role web (halted)|holder failed|rollout.onLost: fail", state.Halted, 1},
		{Fail, 1, "", "open", 1},
	} {
		f := newFleet(t)
		holder, next := f.request("holder", "web"), f.request("next", "web")
		for _, q := range []*Request{&holder, &next} {
			q.Rules.OnLost, q.Rules.MaxFailures, q.Rules.Total = c.onLost, c.survives, 1
		}
		turn := f.mustTry(holder)
		f.must(turn.Check(f.ctx, "restart"))
		f.die(holder)
		if c.waits == "" {
			f.mustTry(next)
		} else {
			f.mustWait(next, c.waits)
		}
		if g := f.gate("web"); g.State != c.gate || len(g.Failed) != c.failed {
			t.Errorf("%s: %+v", c.onLost, g)
		}
		r := f.lost("holder")
		if c.onLost == "" || c.onLost == Hold {
			if r.By != "" {
				t.Errorf("%s: %+v", c.onLost, r)
			}
			continue
		}
		if r.By != "next" || r.Slot != turn.claim.held.key || r.Fence != turn.Fence() || r.OnLost != c.onLost || r.Claim.Step != "restart" || r.Claim.Node != "holder" {
			t.Errorf("%s: recorded %+v", c.onLost, r)
		}
		o, err := f.Views.Fleet(f.ctx, false)
		f.must(err)
		if st := o.Statuses["holder"][state.Rollout]; st.State != state.Failed || st.Version != "v1" || st.Clear == "" {
			t.Errorf("%s: %+v", c.onLost, st)
		}
		for _, err := range []error{turn.Check(f.ctx, "next step"), turn.Fail(f.ctx, "broke", Halting), turn.Succeed(f.ctx)} {
			if !errors.Is(err, ErrFenced) {
				t.Errorf("%s: it came back: %v", c.onLost, err)
			}
		}
	}
}

// TestLivingHolder: nothing is taken from a node that registered anew, although its mark is gone with its lease of
// before.
func TestLivingHolder(t *testing.T) {
	f := newFleet(t)
	holder, next := f.request("holder", "web"), f.request("next", "web")
	next.Rules.OnLost = Release
	turn := f.mustTry(holder)
	again := f.request("holder", "web")
	f.die(holder)
	f.mustWait(next, "holder holds it|(alive)|no action needed")
	if adopted := f.mustTry(again); adopted.Fence() != turn.Fence() {
		t.Errorf("fence %d, want %d", adopted.Fence(), turn.Fence())
	}
	f.mustWait(next, "holder holds it|(alive)")
}

// TestLostWithoutAClaim: a node that lived once and does not answer counts as one that changes, unless lost nodes are
// given up; one never seen, and one of another role, costs nothing.
func TestLostWithoutAClaim(t *testing.T) {
	f := newFleet(t)
	q := f.request("me", "web")
	q.Inventory = map[string]state.Member{"never": {Role: "web"}}
	f.die(f.request("other", "db"))
	f.must(f.mustTry(q).Release(f.ctx))
	f.die(f.request("gone", "web"))
	f.mustWait(q, "gone does not answer|start gone again")
	q.Rules.OnLost = Release
	f.must(f.mustTry(q).Release(f.ctx))
	q.Rules.OnLost = Hold
	_, err := f.Nodes.Decommission(f.ctx, "gone", "op", false)
	f.must(err)
	f.must(f.mustTry(q).Release(f.ctx))
	f.die(f.request("gone", "web")) // it came back, and went
	f.mustWait(q, "gone does not answer")
	q.Rules.Limit = limit(2)
	f.mustTry(q)
}

// TestLostInADependency: who is waited for in a group that others depend on.
func TestLostInADependency(t *testing.T) {
	f := newFleet(t)
	f.must(f.mustTry(f.request("db1", "db")).Succeed(f.ctx)) // alone in its roster's time
	f.propose("v2")
	db1, db2, web := f.request("db1", "db"), f.request("db2", "db"), f.request("web1", "web")
	web.Rules.Depends = []string{"db"}
	f.must(f.mustTry(db1).Succeed(f.ctx))
	f.die(db2)
	f.mustWait(web, "role db: not upgraded yet: db2 (not answering)|decommission db2")
	web.Rules.OnLost = Release
	f.mustTry(web)
}

// TestDecommissionedHolder: its claims are free at once, it is not waited for, and it learns it when it comes back.
func TestDecommissionedHolder(t *testing.T) {
	f := newFleet(t)
	holder, next, lb := f.request("holder", "web"), f.request("next", "web"), f.request("lb1", "lb")
	holder.Rules.Total, next.Rules.Total, lb.Rules.Depends = 1, 1, []string{"web"}
	turn := f.mustTry(holder)
	f.mustWait(lb, "holder (alive), next (alive)")
	if _, err := f.Nodes.Decommission(f.ctx, "holder", "op", false); err == nil {
		t.Error("a living node was given up without force")
	}
	woken, told := make(chan error, 1), make(chan struct{}, 10)
	next.Waiting = func(*Wait) { told <- struct{}{} }
	waiter := NewTurn(f.Store, next)
	go func() { woken <- waiter.Acquire(f.ctx) }()
	<-told
	done, err := f.Nodes.Decommission(f.ctx, "holder", "op", true)
	freed := done.Freed
	if err != nil || len(freed) != 1 || freed[0] != "slot/web/0" {
		t.Errorf("%q %v", freed, err)
	}
	f.must(<-woken)
	if err := turn.Check(f.ctx, "a step"); !errors.Is(err, ErrFenced) {
		t.Errorf("%v", err)
	}
	f.mustWait(lb, "not upgraded yet: next (alive)")
	f.must(waiter.Succeed(f.ctx))
	f.mustTry(lb)
}

// TestDecommissionedLast: a group is through when who is missing is given up.
func TestDecommissionedLast(t *testing.T) {
	f := newFleet(t)
	db1, db2, web := f.request("db1", "db"), f.request("db2", "db"), f.request("web1", "web")
	web.Rules.Depends = []string{"db"}
	f.must(f.mustTry(db1).Succeed(f.ctx))
	f.mustWait(web, "db2 (alive)")
	told, woken := make(chan struct{}, 10), make(chan error, 1)
	web.Waiting = func(*Wait) { told <- struct{}{} }
	go func() { woken <- NewTurn(f.Store, web).Acquire(f.ctx) }()
	<-told
	f.die(db2)
	began := time.Now()
	_, err := f.Nodes.Decommission(f.ctx, "db2", "op", false)
	f.must(err)
	if err := <-woken; err != nil || time.Since(began) > patience.Stretch(5*time.Second) {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

// TestAwayOfMany: of a large group it is only counted who is away, and nobody is counted twice: neither as a holder nor
// as away.
func TestAwayOfMany(t *testing.T) {
	const nodes = namedAway + 20
	c := newCrowd(t, member.Client.Endpoints(), nodes, 3)
	dies := func(i int) {
		_, err := c.fleet.Client.Revoke(c.ctx, c.nodes[i].req.Presence.Lease)
		c.must(err)
		_, err = c.fleet.Client.Delete(c.ctx, c.fleet.Rollouts.AwayKey("v1", "web")) // as after a few seconds
		c.must(err)
	}
	tries := func(i int) string {
		t.Helper()
		turn := NewTurn(c.nodes[i].store, c.nodes[i].req)
		wait, err := turn.Try(c.ctx)
		c.must(errors.Join(err, turn.Leave(c.ctx)))
		if wait == nil {
			return ""
		}
		return wait.Error()
	}
	says := func(i int, want string) {
		t.Helper()
		if got := tries(i); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("node %d: %q, want %q", i, got, want)
		}
	}
	says(0, "")
	dies(1)
	says(2, "")
	says(3, "nodes that do not answer: 1")
	dies(0)
	says(3, "web00001 does not answer") // the holder that died is named as such, and counted once
	dies(4)
	says(3, "web00004 does not answer")
}

// TestFleetPlaceOfAnotherGroup: a place in the whole fleet whose holder does not answer, failed or is disabled is told
// as such to who waits for it in another group; where lost nodes are given up it is taken back.
func TestFleetPlaceOfAnotherGroup(t *testing.T) {
	f := newFleet(t)
	a, b := f.request("a1", "a"), f.request("b1", "b")
	for _, q := range []*Request{&a, &b} {
		q.Rules.Total, q.Rules.MaxFailures, q.Lasting = 1, 1, true
	}
	turn := f.mustTry(a)
	f.mustWait(b, "slots of the fleet (1 at a time): a1 holds it|(alive); no action needed")
	f.must(turn.Fail(f.ctx, "it broke", Halting))
	f.mustWait(b, "a1 holds it|(failed); fix a1, or push a commit")
	f.switchOff(state.HostScope("a1"))
	f.mustWait(b, "a1 holds it|(disabled); pullet enable --host a1")
	f.must(setSwitch(f.ctx, f.Store, state.HostScope("a1"), enabled, 0))
	f.die(a)
	f.mustWait(b, "a1 holds it|(not answering); start a1 again")
	b.Rules.OnLost = Release
	f.mustTry(b)
	if got := f.lost("a1"); got.By != "b1" || got.Slot != f.Rollouts.SlotPrefix("a")+"0" {
		t.Errorf("%+v", got)
	}
}

// TestCanariesCountThemselves: a dead node of a role does not count in a group of a few nodes of that role.
func TestCanariesCountThemselves(t *testing.T) {
	f := newFleet(t)
	groups := func(node string, _ state.Member) string {
		if strings.HasPrefix(node, "canary") {
			return "canaries"
		}
		return "web"
	}
	all := []Request{f.request("canary1", "web"), f.request("canary2", "web"), f.request("web7", "web")}
	for i := range all {
		all[i].Rules.GroupOf, all[i].Rules.Group = groups, groups(all[i].Presence.Node.Name, state.Member{})
	}
	f.die(all[2])
	f.must(f.mustTry(all[0]).Release(f.ctx))
	f.die(all[1])
	f.mustWait(all[0], "canary2 does not answer")
}

// TestMixedGroup: of a group of several roles, one that is disabled is not in the way of the others.
func TestMixedGroup(t *testing.T) {
	f := newFleet(t)
	mon, osd := f.request("mon1", "mon"), f.request("osd1", "osd")
	for _, q := range []*Request{&mon, &osd} {
		q.Rules.Group, q.Rules.GroupOf = "ceph", func(string, state.Member) string { return "ceph" }
	}
	f.must(f.mustTry(mon).Release(f.ctx)) // the roster is there
	f.switchOff(state.RoleScope("mon"))
	if _, wait := f.try(mon); wait == nil {
		t.Fatal("it is disabled")
	}
	f.mustTry(osd)
}

// TestTroubleUnanswered: where nobody says how those are who are waited for, they are not taken for dead.
func TestTroubleUnanswered(t *testing.T) {
	f := newFleet(t)
	q := f.request("me", "web")
	f.request("holder", "web")
	over, cancel := context.WithCancel(f.ctx)
	cancel()
	holders := []state.Holder{{Node: "holder"}}
	if err := fillConditions(over, f.Store, &q, holders); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %+v", err, holders)
	}
	if err := fillConditions(f.ctx, f.Store, &q, holders); err != nil || !holders[0].Alive {
		t.Errorf("%v, %+v", err, holders)
	}
}
