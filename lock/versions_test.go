package lock

import (
	"errors"
	"slices"
	"testing"

	"github.com/pullet/pullet/state"
)

// grouped makes a request of rules that group some nodes by name, and all others by their role.
func (f *fleet) grouped(node, role string, groups map[string]string) Request {
	f.t.Helper()
	q := f.request(node, role)
	q.Rules.GroupOf = func(name string, m state.Member) string {
		if g := groups[name]; g != "" {
			return g
		}
		return state.GroupOf(m.Role)
	}
	q.Rules.Group = q.Rules.GroupOf(node, state.Member{Role: role})
	return q
}

// TestCanaryOfTheNextVersion: a node that changes under one version and is a canary of the next counts among the
// canaries before it knows, and in its role until it is done.
func TestCanaryOfTheNextVersion(t *testing.T) {
	f := newFleet(t)
	f.mustTry(f.request("web1", "web"))
	f.propose("v2")
	canaries := map[string]string{"web1": "canary", "web3": "canary"}
	f.mustWait(f.grouped("web2", "web", canaries), "web1 holds")
	f.mustWait(f.grouped("web3", "web", canaries), "web1 holds slot web|counts here")
	turn := f.mustTry(f.grouped("web1", "web", canaries))
	f.must(turn.Check(f.ctx, "second step"))
	f.mustWait(f.grouped("web2", "web", canaries), "web1 holds slot canary|second step|counts here")
	f.mustWait(f.grouped("web3", "web", canaries), "web1 holds it")
	f.must(turn.Succeed(f.ctx))
	f.mustTry(f.grouped("web2", "web", canaries))
}

// TestMappedGroups: who holds a slot of its role counts in the group to which a newer version maps that, and the other
// way round.
func TestMappedGroups(t *testing.T) {
	f := newFleet(t)
	f.mustTry(f.request("web1", "web"))
	f.propose("v2")
	front := map[string]string{"web1": "front", "web2": "front", "api1": "front"}
	f.mustWait(f.grouped("api1", "api", front), "web1 holds slot web|counts here")
	f.mustTry(f.grouped("web1", "web", front))
	f.propose("v3")
	f.mustWait(f.request("web2", "web"), "web1 holds slot front|counts here")
}

// TestChangedRole: a node that changes counts in both roles, the one in which it began and the one that nodes/ or its
// own configuration gives it meanwhile.
func TestChangedRole(t *testing.T) {
	for _, listed := range []bool{true, false} {
		f := newFleet(t)
		f.mustTry(f.request("n1", "web"))
		f.propose("v2")
		if !listed {
			f.request("n1", "db") // it registers as what it is now
		}
		for _, role := range []string{"web", "db"} {
			q := f.request(role+"2", role)
			if listed {
				q.Inventory = map[string]state.Member{"n1": {Role: "db"}}
			}
			f.mustWait(q, "n1 holds")
		}
	}
}

// TestTotalAcrossVersions: whoever changes counts in the total, also when there was none when it began.
func TestTotalAcrossVersions(t *testing.T) {
	f := newFleet(t)
	f.mustTry(f.request("web1", "web"))
	f.propose("v2")
	total := func(node, role string) Request {
		q := f.request(node, role)
		q.Rules.Total = 1
		return q
	}
	f.mustWait(total("db1", "db"), "slots of the fleet (1 at a time)|web1 holds it")
	web := f.mustTry(total("web1", "web")) // it counts already
	f.mustWait(total("db1", "db"), "web1 holds it")
	f.propose("v3")
	db := f.mustTry(f.request("db1", "db"))
	f.propose("v4")
	lb := f.request("lb1", "lb")
	lb.Rules.Total = 2
	f.mustWait(lb, "web1 holds it|db1 holds it")
	web.req.Version, web.req.VersionRev = f.version, f.rev
	f.must(web.Succeed(f.ctx))
	f.mustTry(lb)
	f.must(db.Release(f.ctx))
}

// TestOldCanaryLetsNewOnesGo: a canary that failed, and is none in the next version, waits for the new canaries: it
// counts among them until it is known to change nothing, and not longer. The same holds for its place in the total.
func TestOldCanaryLetsNewOnesGo(t *testing.T) {
	f := newFleet(t)
	f.mustTry(f.grouped("web1", "web", map[string]string{"web1": "canary"}))
	f.propose("v2")
	now := map[string]string{"web2": "canary"}
	canary := f.grouped("web2", "web", now)
	canary.Rules.Total = 1
	f.mustWait(canary, "web1 holds it")
	old := f.grouped("web1", "web", now)
	old.Rules.Depends, old.Rules.Total = []string{"canary"}, 1
	f.mustWait(old, "role canary: not upgraded yet: web2")
	turn := f.mustTry(canary)
	f.mustWait(f.grouped("web3", "web", now), "web1 holds it") // of its role it is half changed
	f.mustWait(old, "role canary: not upgraded yet: web2")
	f.must(turn.Succeed(f.ctx))
	f.mustTry(old)
	if got := f.keys(f.Rollouts.TotalPrefix()); !slices.Equal(got, []string{"0"}) {
		t.Errorf("places in the total: %q", got)
	}
}

// TestLostGuest: a node that does not answer is given up in whatever group it made its claim, at the first look.
func TestLostGuest(t *testing.T) {
	for _, total := range []int{0, 1} {
		f := newFleet(t)
		holder := f.request("web1", "web")
		holder.Rules.Total = total
		f.mustTry(holder)
		f.die(holder)
		f.propose("v2")
		groups := map[string]string{}
		if total == 0 {
			groups["web1"], groups["db1"] = "front", "front"
		}
		q := f.grouped("db1", "db", groups)
		q.Inventory = map[string]state.Member{"web1": {Role: "web"}}
		q.Rules.Total = total
		f.mustWait(q, "web1 holds|(not answering)|pullet decommission web1")
		q.Rules.OnLost = Release
		f.mustTry(q)
		if got := f.keys(f.Rollouts.SlotPrefix("web")); len(got) != 0 {
			t.Errorf("total %d: still claimed: %q", total, got)
		}
	}
}

// TestBriefPull: a pull that does not wait long says how those are for whom it waits.
func TestBriefPull(t *testing.T) {
	f := newFleet(t)
	f.mustTry(f.request("web1", "web"))
	f.must(f.Switches.Set(f.ctx, state.HostScope("web1"), &state.Switch{}, nil, 0))
	q := f.request("web2", "web")
	q.Brief = true
	f.mustWait(q, "web1 holds it|(disabled)|pullet enable --host web1")
}

// TestAbandoned: a node that changes for a version that the fleet left starts no further step, keeps its claim, and
// goes on inside it.
func TestAbandoned(t *testing.T) {
	f := newFleet(t)
	q := f.request("web1", "web")
	turn := f.mustTry(q)
	f.must(turn.Check(f.ctx, "first step"))
	current, rev, err := f.Versions.Current(f.ctx)
	f.must(err)
	named := *current
	named.Release = "v1.0" // only what is said of it is new
	is, err := f.Versions.Propose(f.ctx, named, current, rev)
	if f.must(err); !is.Done {
		t.Fatal("it was not named")
	}
	f.must(turn.Check(f.ctx, "second step"))
	f.propose("v2")
	if err := turn.Check(f.ctx, "third step"); !errors.Is(err, ErrSuperseded) {
		t.Errorf("the third step of a version that was left: %v", err)
	}
	f.mustWait(f.request("web2", "web"), "web1 holds it|second step")
	if next := f.mustTry(f.request("web1", "web")); next.Fence() != turn.Fence() {
		t.Errorf("it holds another claim than before")
	}
}

// TestDisabledInMidRollout: who was admitted before a switch is waited for at a barrier; who was not is left out.
func TestDisabledInMidRollout(t *testing.T) {
	for _, scope := range []state.Scope{state.RoleScope("web"), state.GlobalScope(), state.HostScope("web002")} {
		f := newFleet(t)
		all := f.requests(4, "web")
		for i := range all {
			all[i].Rules.Limit = limit(3)
		}
		for _, q := range all[1:] {
			f.mustTry(q)
		}
		f.must(f.Switches.Set(f.ctx, scope, &state.Switch{}, nil, 0))
		if scope.Kind == "host" {
			f.must(f.Switches.Set(f.ctx, state.HostScope("web000"), &state.Switch{}, nil, 0))
		}
		step := Step{ID: "db/join", Members: func(string, state.Member) (bool, string) { return true, "" }}
		for i, q := range all[1:] {
			open, err := NewSteps(f.Store, q).Arrive(f.ctx, step, Done)
			f.must(err)
			if open != (i == 2) {
				t.Errorf("%s: open %t after %d of 3 that were admitted", scope, open, i+1)
			}
		}
	}
}

// TestLeftInAnotherGroup: a node that is through frees a claim which a run that was killed left in a group to which it
// does not belong any more, and leaves the mark of whoever holds that place in its own group.
func TestLeftInAnotherGroup(t *testing.T) {
	f := newFleet(t)
	mapped := f.request("web1", "web")
	mapped.Rules.Group = "front"
	mapped.Rules.GroupOf = func(string, state.Member) string { return "front" }
	f.mustTry(mapped)
	other := f.request("web2", "web")
	other.Rules.Limit = limit(2)
	f.mustTry(other)
	f.propose("v2")
	f.must(NewTurn(f.Store, f.request("web1", "web")).Succeed(f.ctx))
	if front, web := f.keys(f.Rollouts.SlotPrefix("front")), f.keys(f.Rollouts.MarkPrefix("web")); len(front) > 0 || len(web) != 1 {
		t.Errorf("slots of front: %q, marks of web: %q", front, web)
	}
}

// TestLeftByARestore: a node that waits in mid-run without a slot finds the one that a restored record has: of an older
// version, and of another group.
func TestLeftByARestore(t *testing.T) {
	f := newFleet(t)
	q := f.request("app0", "app")
	older := f.mustTry(q).Slot()
	f.propose("v2")
	q = f.request("app0", "app")
	f.must(f.mustTry(q).Park(f.ctx, state.Status{Gate: "other nodes"}))
	left := func(want bool) {
		t.Helper()
		if is, err := NewTurn(f.Store, q).HasLeftover(f.ctx); err != nil || is != want {
			t.Errorf("left %t, not %t: %v", is, want, err)
		}
	}
	left(false)
	for _, group := range []string{"app", "canaries"} {
		older.Group = group
		f.putsBack(older, q.Presence.Lives())
		left(true)
		f.must(f.mustTry(q).Park(f.ctx, state.Status{Gate: "other nodes"}))
		left(false)
	}
}

// TestSuccessIsSeen: a node that is through knows a record that lacks its success.
func TestSuccessIsSeen(t *testing.T) {
	f := newFleet(t)
	turn := f.mustTry(f.request("web1", "web"))
	registered := turn.req.Presence.Seen(state.Origin{}).Revision
	f.must(turn.Succeed(f.ctx))
	got, err := f.Client.Get(f.ctx, f.Nodes.Key("web1"))
	f.must(err)
	if seen := turn.req.Presence.Seen(state.Origin{}).Revision; seen <= registered || seen != got.Kvs[0].ModRevision {
		t.Errorf("seen %d, registered at %d, and the record is of %d", seen, registered, got.Kvs[0].ModRevision)
	}
}
