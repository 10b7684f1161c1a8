package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// faults does things to the fleet for a time: in lanes, each a stream of faults from its own part of the seed. All of
// it is healed in the end. What is done once goes on for as long as it takes.
func (f *fleet) faults(last time.Duration, once ...func(*rand.Rand)) {
	end := time.Now().Add(last)
	f.until, f.restless = end, time.Now().Add(last/4)
	if f.seed&2 != 0 {
		f.restless = end
	}
	lanes := []func(*rand.Rand){f.agentFault, f.agentFault, f.linkFault, f.linkFault, f.memberFault, f.pauseFault}
	var running sync.WaitGroup
	for i, do := range lanes {
		r := rand.New(rand.NewPCG(f.seed, uint64(i)))
		running.Go(func() {
			for time.Now().Before(end) {
				sleepFor(r, 500*time.Millisecond, 4*time.Second)
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

// between is a time of a range.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// sleepFor is how long a fault lasts, or how long there is none.
func sleepFor(r *rand.Rand, from, to time.Duration) { time.Sleep(between(r, from, to)) }

// releases commits a version every 10 to 15 seconds. Every third is bad in some way, and the next one fixes it; now and
// then the operator believes that it was the host, and resumes.
func (f *fleet) releases(r *rand.Rand, end time.Time) {
	bad := ""
	for {
		pause := min(between(r, 10*time.Second, 15*time.Second), max(time.Until(end), 0))
		time.Sleep(pause / 2)
		if resumes := r.IntN(2) == 0; bad != "" && resumes && f.halted() {
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
		f.release(bad, f.nodes[r.IntN(len(f.nodes))].name)
	}
}

// agentFault kills an agent and starts it again, or stops it for a while: alone or with the commands of its steps.
func (f *fleet) agentFault(r *rand.Rand) {
	n, whole, kills := f.nodes[r.IntN(len(f.nodes))], r.IntN(2) == 0, r.IntN(3) > 0
	lasts := between(r, 0, 6*time.Second)
	if !n.busy.TryLock() {
		return
	}
	defer n.busy.Unlock()
	if kills {
		f.count("agents killed")
		n.kill(whole)
		time.Sleep(lasts / 3)
		n.start(f.t)
		return
	}
	f.count("agents stopped")
	all := n.stop(whole)
	time.Sleep(lasts)
	all.signal(syscall.SIGCONT)
}

// longStop stops a node in the middle of its upgrade, for longer than its lease.
func (f *fleet) longStop(r *rand.Rand) {
	sleepFor(r, 15*time.Second, 30*time.Second)
	n := f.holder(time.Now().Add(10 * time.Second))
	n.busy.Lock()
	defer n.busy.Unlock()
	f.count("stopped for longer than a lease")
	all := n.stop(r.IntN(2) == 0)
	sleepFor(r, 75*time.Second, 85*time.Second)
	all.signal(syscall.SIGCONT)
}

// holder is a node that holds a slot, as soon as there is one; not the canary, without which the whole fleet stands.
func (f *fleet) holder(end time.Time) *fleetNodeProcess {
	for ; time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
		got, err := f.client.Get(ctx, f.store.Rollouts.SlotPrefix(""), clientv3.WithPrefix())
		cancel()
		if err != nil {
			continue
		}
		for _, kv := range got.Kvs {
			i := slices.IndexFunc(f.nodes, func(n *fleetNodeProcess) bool {
				return n.role != "can" && strings.Contains(string(kv.Value), `"`+n.name+`"`)
			})
			if i >= 0 {
				return f.nodes[i]
			}
		}
	}
	return f.nodes[len(f.nodes)-1]
}

// longStall cuts a node off in the middle of its upgrade, for longer than its lease.
func (f *fleet) longStall(r *rand.Rand) {
	sleepFor(r, 15*time.Second, 30*time.Second)
	n := f.holder(time.Now().Add(10 * time.Second))
	n.fault.Lock()
	defer n.fault.Unlock()
	f.count("cut off for longer than a lease")
	n.set([]int{linkCut, linkStall, linkDeaf, linkMute}[r.IntN(4)])
	sleepFor(r, 75*time.Second, 85*time.Second)
	n.set(linkOpen)
}

// linkFault cuts an agent off from etcd in one of the ways of a network.
func (f *fleet) linkFault(r *rand.Rand) {
	n, way, lasts := f.nodes[r.IntN(len(f.nodes))], r.IntN(4), between(r, 200*time.Millisecond, 9*time.Second)
	if n.carries && time.Now().After(f.restless) && f.cluster.members[f.cluster.leader(f.client)].name == n.name || !n.fault.TryLock() {
		return
	}
	defer n.fault.Unlock()
	f.count([]string{"links cut", "links stalled", "answers lost", "requests lost"}[way])
	n.set([]int{linkCut, linkStall, linkDeaf, linkMute}[way])
	time.Sleep(lasts)
	n.set(linkOpen)
}

// memberFault kills a member of etcd and starts it again, or stops it for a while. At first, or in every other seed all
// the time, it is often the leader: the next one gives every lease its full time again, so without that some leases
// end.
func (f *fleet) memberFault(r *rand.Rand) {
	leads, kills, lasts := r.IntN(2) == 0, r.IntN(2) == 0, between(r, time.Second, 6*time.Second)
	leader := f.cluster.leader(f.client)
	order := r.Perm(len(f.cluster.members))
	if len(order) > 1 && !(leads && time.Now().Before(f.restless)) {
		order = slices.DeleteFunc(order, func(i int) bool { return i == leader })
	} else {
		order = []int{leader}
		f.count("leaders of etcd hit")
	}
	for _, i := range order {
		if f.hit(f.cluster.members[i], kills, lasts) {
			break
		}
	}
	sleepFor(r, time.Second, 4*time.Second)
}

// hit kills or stops a member. It is false where nothing runs: that host does not carry the datastore.
func (f *fleet) hit(m *process, kills bool, lasts time.Duration) bool {
	m.busy.Lock()
	defer m.busy.Unlock()
	if !m.runs() {
		return false
	}
	if kills {
		f.count("members of etcd killed")
		m.kill(false)
		time.Sleep(lasts / 2)
		f.cluster.again(m)
	} else {
		f.count("members of etcd stopped")
		all := m.stop(false)
		time.Sleep(lasts)
		all.signal(syscall.SIGCONT)
	}
	return true
}

// pauseFault is an operator who pauses all rollouts for a moment.
func (f *fleet) pauseFault(r *rand.Rand) {
	sleepFor(r, 5*time.Second, 20*time.Second)
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
	defer cancel()
	if _, err := f.store.Switches.Pause(ctx, &state.Switch{By: "operator", At: time.Now().UTC()}, 0); err == nil {
		f.count("pauses")
		sleepFor(r, time.Second, 3*time.Second)
	}
	f.insists("the end of a pause", func(ctx context.Context) error { // also what could not be written may have been
		_, err := f.store.Switches.Unpause(ctx)
		return err
	})
}

// insists does something again and again until it is done. No fault lasts for as long as that may take.
func (f *fleet) insists(what string, do func(context.Context) error) {
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
		err := do(ctx)
		cancel()
		if err == nil || f.t.Context().Err() != nil {
			return
		}
		if time.Now().After(end) {
			f.t.Errorf("two minutes after it was begun there is no %s: %v", what, err)
			return
		}
	}
}

// writes writes a key again and again, and notes what etcd says that it wrote: that may not be lost.
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

// written is the key that the test writes itself.
const written = "/written"
