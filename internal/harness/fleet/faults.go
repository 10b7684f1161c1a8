package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/harness/chance"
	"github.com/pullet/pullet/internal/harness/link"
	"github.com/pullet/pullet/internal/harness/process"
	"github.com/pullet/pullet/state"
)

// inject injects faults for a time, in lanes with their own part of the seed, and heals them in the end. The faults in
// once are injected once and take as long as they need.
func (f *fleet) inject(last time.Duration, once ...func(*rand.Rand)) {
	end := time.Now().Add(last)
	f.until, f.restless = end, time.Now().Add(last/4)
	if f.seed&2 != 0 {
		f.restless = end
	}
	lanes := []func(*rand.Rand){f.hurtAgent, f.hurtAgent, f.hurtLink, f.hurtLink, f.hurtMember, f.pause}
	var running sync.WaitGroup
	for i, do := range lanes {
		r := rand.New(rand.NewPCG(f.seed, uint64(i)))
		running.Go(func() {
			for time.Now().Before(end) {
				chance.Sleep(r, 500*time.Millisecond, 4*time.Second)
				do(r)
			}
		})
	}
	for i, do := range once {
		running.Go(func() { do(rand.New(rand.NewPCG(f.seed, uint64(100+i)))) })
	}
	running.Go(f.writes)
	f.releases(rand.New(rand.NewPCG(f.seed, 200)), end)
	running.Wait()
}

// releases commits a version every 10 to 15 seconds. Every third is bad in some way, and the next one fixes it. Now and
// then the operator assumes a host fault and resumes.
func (f *fleet) releases(r *rand.Rand, end time.Time) {
	bad := ""
	for {
		pause := min(chance.Between(r, 10*time.Second, 15*time.Second), max(time.Until(end), 0))
		time.Sleep(pause / 2)
		if resumes := r.IntN(2) == 0; bad != "" && resumes && f.isHalted() {
			if _, err := f.operator("rollout", "resume"); err == nil {
				f.count("resumes")
			}
		}
		time.Sleep(pause - pause/2)
		if !time.Now().Before(end) {
			return
		}
		if bad == "" && r.IntN(3) == 0 {
			bad = []string{"work", "restart", "validation", "syntax"}[r.IntN(4)]
			f.count("bad versions")
		} else {
			bad = ""
		}
		f.count("versions")
		f.repository.release(bad, f.nodes[r.IntN(len(f.nodes))].Name)
	}
}

// hurtAgent kills an agent and starts it again, or freezes it for a while, with or without the commands of its steps.
func (f *fleet) hurtAgent(r *rand.Rand) {
	n, whole, kills := f.nodes[r.IntN(len(f.nodes))], r.IntN(2) == 0, r.IntN(3) > 0
	lasts := chance.Between(r, 0, 6*time.Second)
	if !n.Busy.TryLock() {
		return
	}
	defer n.Busy.Unlock()
	if kills {
		f.count("agents killed")
		n.Kill(whole)
		time.Sleep(lasts / 3)
		n.Start(f.t)
		return
	}
	f.count("agents stopped")
	all := n.Freeze(whole)
	time.Sleep(lasts)
	all.Thaw()
}

// freezeLong freezes a node in the middle of its upgrade, for longer than its lease.
func (f *fleet) freezeLong(r *rand.Rand) {
	chance.Sleep(r, 15*time.Second, 30*time.Second)
	n := f.holder(time.Now().Add(10 * time.Second))
	n.Busy.Lock()
	defer n.Busy.Unlock()
	f.count("stopped for longer than a lease")
	all := n.Freeze(r.IntN(2) == 0)
	chance.Sleep(r, 75*time.Second, 85*time.Second)
	all.Thaw()
}

// holder returns a node that holds a slot, as soon as there is one. It is not the canary, for which all others wait.
func (f *fleet) holder(end time.Time) *node {
	for ; time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
		got, err := f.client.Get(ctx, f.store.Rollouts.SlotPrefix(""), clientv3.WithPrefix())
		cancel()
		if err != nil {
			continue
		}
		for _, kv := range got.Kvs {
			i := slices.IndexFunc(f.nodes, func(n *node) bool {
				return n.role != "can" && strings.Contains(string(kv.Value), `"`+n.Name+`"`)
			})
			if i >= 0 {
				return f.nodes[i]
			}
		}
	}
	return f.nodes[len(f.nodes)-1]
}

// cutLong cuts a node off in the middle of its upgrade, for longer than its lease.
func (f *fleet) cutLong(r *rand.Rand) {
	chance.Sleep(r, 15*time.Second, 30*time.Second)
	n := f.holder(time.Now().Add(10 * time.Second))
	n.link.Busy.Lock()
	defer n.link.Busy.Unlock()
	f.count("cut off for longer than a lease")
	n.link.Set([]link.Mode{link.Cut, link.Stall, link.Deaf, link.Mute}[r.IntN(4)])
	chance.Sleep(r, 75*time.Second, 85*time.Second)
	n.link.Set(link.Open)
}

// hurtLink cuts an agent off from etcd, or loses data in one direction.
func (f *fleet) hurtLink(r *rand.Rand) {
	n, way, lasts := f.nodes[r.IntN(len(f.nodes))], r.IntN(4), chance.Between(r, 200*time.Millisecond, 9*time.Second)
	if n.carries && time.Now().After(f.restless) && f.cluster.Members()[f.cluster.Leader(f.client)].Name == n.Name ||
		!n.link.Busy.TryLock() {
		return
	}
	defer n.link.Busy.Unlock()
	f.count([]string{"links cut", "links stalled", "answers lost", "requests lost"}[way])
	n.link.Set([]link.Mode{link.Cut, link.Stall, link.Deaf, link.Mute}[way])
	time.Sleep(lasts)
	n.link.Set(link.Open)
}

// hurtMember kills a member of etcd and starts it again, or freezes it for a while. At first, and with every other seed
// all the time, that is often the leader. The next leader gives every lease its full time again, so some leases end
// only if leaders stay.
func (f *fleet) hurtMember(r *rand.Rand) {
	leads, kills, lasts := r.IntN(2) == 0, r.IntN(2) == 0, chance.Between(r, time.Second, 6*time.Second)
	leader := f.cluster.Leader(f.client)
	order := r.Perm(len(f.cluster.Members()))
	if len(order) > 1 && !(leads && time.Now().Before(f.restless)) {
		order = slices.DeleteFunc(order, func(i int) bool { return i == leader })
	} else {
		order = []int{leader}
		f.count("leaders of etcd hit")
	}
	for _, i := range order {
		if f.hit(f.cluster.Members()[i], kills, lasts) {
			break
		}
	}
	chance.Sleep(r, time.Second, 4*time.Second)
}

// hit kills or freezes a member. It reports whether the member runs: a host may not carry the datastore now.
func (f *fleet) hit(m *process.Process, kills bool, lasts time.Duration) bool {
	m.Busy.Lock()
	defer m.Busy.Unlock()
	if !m.IsRunning() {
		return false
	}
	if kills {
		f.count("members of etcd killed")
		m.Kill(false)
		time.Sleep(lasts / 2)
		f.cluster.Restart(m)
	} else {
		f.count("members of etcd stopped")
		all := m.Freeze(false)
		time.Sleep(lasts)
		all.Thaw()
	}
	return true
}

// pause pauses all rollouts for a moment, as an operator does.
func (f *fleet) pause(r *rand.Rand) {
	chance.Sleep(r, 5*time.Second, 20*time.Second)
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
	defer cancel()
	if _, err := f.store.Switches.Pause(ctx, &state.Switch{By: "operator", At: time.Now().UTC()}, 0); err == nil {
		f.count("pauses")
		chance.Sleep(r, time.Second, 3*time.Second)
	}
	// A write that failed may have been done.
	f.insist("the end of a pause", func(ctx context.Context) error {
		_, err := f.store.Switches.Unpause(ctx)
		return err
	})
}

// insist calls do until it succeeds, which takes less than two minutes because no fault lasts as long.
func (f *fleet) insist(what string, do func(context.Context) error) {
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
		err := do(ctx)
		cancel()
		if err == nil || f.t.Context().Err() != nil {
			return
		}
		if time.Now().After(end) {
			f.t.Errorf("%s: not in two minutes: %v", what, err)
			return
		}
	}
}

// writes writes a key again and again, and notes the writes that etcd acknowledges. None of them may be lost.
func (f *fleet) writes() {
	for i := 0; time.Now().Before(f.until); i++ {
		ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
		value := fmt.Sprint(i)
		if got, err := f.client.Put(ctx, written, value); err == nil {
			f.acked[got.Header.Revision] = value
		}
		cancel()
		time.Sleep(100 * time.Millisecond)
	}
}

// written is the key that the test writes.
const written = "/written"
