package lock

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/state"
)

// gone waits until a key's lease ended.
func (f *fleet) gone(key string) {
	f.t.Helper()
	for {
		got, err := f.Client.Get(f.ctx, key)
		f.must(err)
		if len(got.Kvs) == 0 {
			return
		}
		if !f.Bells.Await(f.ctx, key, got.Header.Revision, patience.Stretch(20*time.Second), clientv3.WithFilterPut()) {
			f.t.Fatalf("%s does not end", key)
		}
	}
}

func (f *fleet) there(key string) bool {
	f.t.Helper()
	got, err := f.Client.Get(f.ctx, key)
	f.must(err)
	return len(got.Kvs) > 0
}

// lease is that of a key, 0 without one.
func (f *fleet) lease(key string) int64 {
	f.t.Helper()
	got, err := f.Client.Get(f.ctx, key)
	f.must(err)
	if len(got.Kvs) == 0 {
		return 0
	}
	return got.Kvs[0].Lease
}

// TestDependencies: a role starts when every node of what it depends on is through, and is woken then.
func TestDependencies(t *testing.T) {
	f := newFleet(t)
	db1, db2 := f.request("db1", "db"), f.request("db2", "db")
	web := f.request("web1", "web")
	web.Rules.Depends, web.Inventory = []string{"db"}, map[string]state.Member{"db1": {Role: "db"}}
	waits := make(chan string, 10)
	web.Waiting = func(w *Wait) { waits <- w.Error() }
	admitted := make(chan error, 1)
	go func() { admitted <- NewTurn(f.Store, web).Acquire(f.ctx) }()
	next := func(want string) {
		t.Helper()
		select {
		case got := <-waits:
			f.contains(got, want)
		case err := <-admitted:
			t.Fatalf("admitted too early: %v", err)
		}
	}
	next("role db: not upgraded yet: db1 (alive), db2 (alive)")
	f.must(f.mustTry(db1).Succeed(f.ctx))
	next("role db: not upgraded yet: db2 (alive)")
	f.must(f.mustTry(db2).Succeed(f.ctx))
	f.must(<-admitted)
}

// TestLastSuccess: the last node of a group closes it in the transaction that records its success and what it tells of
// that, with and without a claim; the nodes before it do not.
func TestLastSuccess(t *testing.T) {
	f := newFleet(t)
	first, b := f.request("db1", "db"), f.request("db2", "db")
	a := f.mustTry(first)
	told := func(node string) clientv3.Op { return clientv3.OpPut("/told/"+node, "a word") }
	f.must(a.Succeed(f.ctx, told("db1")))
	if got := f.keys(f.Rollouts.ClosedKey("v1", "")); len(got) != 0 {
		t.Errorf("closed by the first of two: %q", got)
	}
	f.must(f.mustTry(b).Park(f.ctx, state.Status{}))
	f.must(NewTurn(f.Store, b).Succeed(f.ctx, told("db2")))
	at := func(key string) int64 {
		got, err := f.Client.Get(f.ctx, key)
		f.must(err)
		return revisionOf(got.Kvs)
	}
	done := at(f.Rollouts.DoneKey("v1", "db", "db2"))
	for _, key := range []string{f.Rollouts.ClosedKey("v1", "db"), f.Statuses.RunningKey("v1", "db2"), "/told/db2", f.Bells.Key()} {
		if at(key) != done || done == 0 {
			t.Errorf("%s is of revision %d, the success of %d", key, at(key), done)
		}
	}
}

// TestParkedDependency: a node that parked, and had nothing to change when it went on, is through like any other.
func TestParkedDependency(t *testing.T) {
	f := newFleet(t)
	db, web := f.request("db1", "db"), f.request("web1", "web")
	web.Rules.Depends = []string{"db"}
	f.must(f.mustTry(db).Park(f.ctx, state.Status{}))
	f.must(NewTurn(f.Store, db).Succeed(f.ctx)) // another process
	f.mustTry(web)
}

// TestNeverSeen: a node that only the inventory knows is waited for, by name.
func TestNeverSeen(t *testing.T) {
	f := newFleet(t)
	web := f.request("web1", "web")
	web.Rules.Depends, web.Inventory = []string{"db"}, map[string]state.Member{"db1": {Role: "db"}}
	f.mustWait(web, "not upgraded yet: db1 (never seen)|start db1, remove it from nodes/")
}

// TestLateJoiner: a node that came after the roster was frozen takes its turn, and is not waited for.
func TestLateJoiner(t *testing.T) {
	f := newFleet(t)
	db1 := f.mustTry(f.request("db1", "db"))
	late, web := f.request("db2", "db"), f.request("web1", "web")
	web.Rules.Depends = []string{"db"}
	f.must(db1.Succeed(f.ctx))
	f.mustTry(web)
	f.must(f.mustTry(late).Succeed(f.ctx))
	if got := f.keys(f.Rollouts.DoneKey("v1", "db", "")); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// TestSoak: canaries that are through are watched for a while before others follow; a canary that breaks meanwhile
// keeps them out.
func TestSoak(t *testing.T) {
	t.Parallel()
	for _, breaks := range []bool{false, true} {
		f := newFleet(t)
		canary, web := f.request("canary1", "web"), f.request("web1", "web")
		groups := func(node string, m state.Member) string {
			if node == "canary1" {
				return "canaries"
			}
			return m.Role
		}
		for _, q := range []*Request{&canary, &web} {
			q.Rules.GroupOf = groups
			q.Rules.Soak = func(g string) time.Duration { return map[string]time.Duration{"canaries": time.Second}[g] }
		}
		canary.Rules.Group, web.Rules.Depends = "canaries", []string{"canaries"}
		turn := f.mustTry(canary)
		f.mustWait(web, "role canaries: not upgraded yet: canary1")
		f.must(turn.Succeed(f.ctx))
		f.mustWait(web, "role canaries|watched until")
		if done, err := f.Rollouts.CanariesDone(f.ctx, f.version, "canaries"); done || err != nil {
			t.Errorf("while it is watched: %v %v", done, err)
		}
		if breaks {
			f.must(NewTurn(f.Store, canary).Fail(f.ctx, "it broke", Halting))
			f.mustWait(web, "role canaries (halted)|canary1 failed")
		}
		f.gone(f.Rollouts.SoakKey("v1", "canaries"))
		if done, err := f.Rollouts.CanariesDone(f.ctx, f.version, "canaries"); !done || err != nil {
			t.Errorf("afterwards: %v %v", done, err)
		}
		if breaks {
			f.mustWait(web, "role canaries (halted)")
		} else {
			f.mustTry(web)
		}
	}
}

// TestDeadline: no holder finished in time: the group halts, whoever looks first; after a resume it counts anew.
func TestDeadline(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	holder, next := f.request("holder", "web"), f.request("next", "web")
	holder.Rules.Deadline, next.Rules.Deadline = time.Second, time.Second
	turn := f.mustTry(holder)
	clock := f.Rollouts.ClockKey("v1", "web")
	if !f.there(clock) {
		t.Fatal("it was not wound")
	}
	f.mustWait(next, "holder holds it")
	f.gone(clock)
	f.mustWait(next, "role web (halted): no node finished within 1s (rollout.progressDeadline); holder holds it")
	if opened, err := f.Rollouts.Resume(f.ctx, "op"); err != nil || len(opened) != 1 || opened[0].Group != "web" {
		t.Errorf("%v %v", opened, err)
	}
	f.mustWait(next, "holder holds it")
	if !f.there(clock) || !f.gate("web").Clock {
		t.Error("it does not count after the resume")
	}
	f.must(turn.Succeed(f.ctx))
	f.mustTry(next)
}

// TestDeadlinePauses: it does not count while nobody may go on, and does afterwards.
func TestDeadlinePauses(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	holder, next := f.request("holder", "web"), f.request("next", "web")
	holder.Rules.Deadline, next.Rules.Deadline = time.Minute, time.Minute
	f.mustTry(holder)
	clock := f.Rollouts.ClockKey("v1", "web")
	first := f.lease(clock)
	f.switchOff(state.HostScope("next")) // that is no matter of the group
	f.mustWait(next, "host next (disabled)")
	if f.lease(clock) != first {
		t.Error("stopped for one host")
	}
	f.must(setSwitch(f.ctx, f.Store, state.HostScope("next"), enabled, 0))
	f.pause()
	f.mustWait(next, "paused")
	if f.there(clock) || f.gate("web").Clock {
		t.Error("it counts while all are paused")
	}
	_, err := f.Switches.Unpause(f.ctx)
	f.must(err)
	f.mustWait(next, "holder holds it")
	if lease := f.lease(clock); lease == 0 || lease == first {
		t.Errorf("it does not count afterwards: lease %d", lease)
	}
}

// TestDeadlineOfTheNext: it begins again when a holder finishes, also where it was wound anew since that one came, and
// when somebody comes after it passed with nobody there.
func TestDeadlineOfTheNext(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	all := f.requests(4, "web")
	deadline := patience.Stretch(4 * time.Second)
	for i := range all {
		all[i].Rules.Deadline, all[i].Rules.Limit = deadline, limit(2)
	}
	clock := f.Rollouts.ClockKey("v1", "web")
	first, second := f.mustTry(all[0]), f.mustTry(all[1])
	f.pause()
	f.mustWait(all[2], "paused")
	_, err := f.Switches.Unpause(f.ctx)
	f.must(err)
	f.mustWait(all[2], "web000 holds it")
	wound := f.lease(clock)
	f.ends(wound, deadline-time.Second)
	f.must(first.Succeed(f.ctx))
	left, err := f.Client.TimeToLive(f.ctx, clientv3.LeaseID(wound))
	f.must(err)
	if left.TTL < 1 {
		t.Errorf("a holder finished, and %d s are left of it", left.TTL)
	}
	for i := range all[2:] { // whatever the machine is at
		all[2+i].Rules.Deadline = time.Hour
	}
	f.must(second.Succeed(f.ctx))
	f.gone(clock)
	f.mustTry(all[2])
	f.mustTry(all[3])
	if !f.there(clock) {
		t.Error("it passed while nobody was there, and does not count for who came")
	}
	late := f.request("late", "web")
	late.Rules = all[2].Rules
	f.mustWait(late, "web002 holds it")
}

// ends waits until a lease has less than a time to live.
func (f *fleet) ends(lease int64, within time.Duration) {
	f.t.Helper()
	for {
		left, err := f.Client.TimeToLive(f.ctx, clientv3.LeaseID(lease))
		f.must(err)
		if time.Duration(left.TTL)*time.Second < within {
			return
		}
	}
}

// TestWhoDoesNotGoOn: of nodes that are waited for, those that are switched off or failed are said, with what clears
// it.
func TestWhoDoesNotGoOn(t *testing.T) {
	f := newFleet(t)
	web, db := f.request("web1", "web"), f.request("db1", "db")
	web.Rules.Depends, db.Rules.MaxFailures = []string{"db"}, 1
	f.mustWait(web, "role db: not upgraded yet: db1 (alive); no action needed")
	f.must(f.mustTry(db).Fail(f.ctx, "it broke", Halting))
	f.mustWait(web, "db1 (failed); fix db1, or push a commit that does")
	f.switchOff(state.RoleScope("db"))
	f.mustWait(web, "db1 (disabled); pullet enable --role db")
	f.switchOff(state.HostScope("db1"))
	f.mustWait(web, "db1 (disabled); pullet enable --host db1")
}

// TestDeadlineOfParked: a group whose only node waits in mid-run halts, so that no newer version waits for it; not
// while all are paused.
func TestDeadlineOfParked(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	q := f.request("web1", "web")
	q.Rules.Deadline = time.Second
	turn := f.mustTry(q)
	clock := f.Rollouts.ClockKey("v1", "web")
	waits := state.Status{Reason: `service "db"`}
	f.must(turn.Park(f.ctx, waits))
	if !f.there(clock) || f.gate("web").State == state.Halted {
		t.Fatal("it does not count, or is over at once")
	}
	f.pause()
	f.gone(clock)
	f.must(turn.Park(f.ctx, waits))
	if g := f.gate("web"); g.State == state.Halted || g.Clock {
		t.Errorf("it counts while all are paused: %+v", g)
	}
	_, err := f.Switches.Unpause(f.ctx)
	f.must(err)
	_, _, err = f.Versions.Halt(f.ctx, "ada", "slow")
	f.must(err)
	f.must(turn.Park(f.ctx, waits))
	if g := f.gate("web"); g.State == state.Halted || g.Clock || f.there(clock) {
		t.Errorf("it counts while the rollout is halted: %+v", g)
	}
	_, err = f.Rollouts.Resume(f.ctx, "ada")
	f.must(err)
	f.must(turn.Park(f.ctx, waits))
	f.gone(clock)
	f.must(turn.Park(f.ctx, waits))
	want := `no node finished within 1s (rollout.progressDeadline); web1 waits in mid-run for service "db"`
	if g := f.gate("web"); g.State != state.Halted || g.Reason != want {
		t.Errorf("%+v", g)
	}
	if done, err := f.Rollouts.CanariesDone(f.ctx, f.version, "web"); err != nil || !done {
		t.Errorf("newer versions wait: %v", err)
	}
}

// TestDeadlineOfWhoComesBack: a node that waits in mid-run, and takes a slot again at each pull, does not wind the
// deadline anew.
func TestDeadlineOfWhoComesBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	q := f.request("web1", "web")
	q.Rules.Deadline = time.Second
	f.must(f.mustTry(q).Park(f.ctx, state.Status{Reason: `service "db"`}))
	f.gone(f.Rollouts.ClockKey("v1", "web"))
	q.Parked = true // as its own record says
	f.mustWait(q, "role web (halted): no node finished within 1s (rollout.progressDeadline); web1 waits in mid-run for others (pullet status)")
}
