package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stormLane is one thing after another that happens to the fleet, with pauses.
type stormLane struct {
	from, to time.Duration // of a pause
	does     []func(*rand.Rand)
}

func (s *storm) lanes() []stormLane {
	often := func(does ...func(*rand.Rand)) stormLane {
		return stormLane{500 * time.Millisecond, 5 * time.Second, does}
	}
	out := []stormLane{
		often(s.killed, s.killed, s.orphaned, s.stepsKilled, s.stopped, s.reinstalled, s.reverted, s.cloned, s.emptiedUnder),
		often(s.killed, s.stopped, s.orphaned, s.stepsKilled),
		often(s.cut, s.cut, s.cut, s.revoke, s.diskFull),
		often(s.pushes),
		often(s.operates),
		{10 * time.Second, 30 * time.Second, []func(*rand.Rand){s.compact, s.noSpace}},
		{time.Minute, 2 * time.Minute, []func(*rand.Rand){s.memberFault, s.memberFault, s.blackout}}, // each begins a grace time, in which nobody is admitted
	}
	if s.kind.clocks {
		out = append(out, often(s.clockJumps))
	}
	return out
}

// rage does things to the fleet for its time, in lanes. What each lane does is drawn from its own part of the seed;
// when, is up to the machine.
func (s *storm) rage() {
	end := time.Now().Add(s.kind.last)
	var running sync.WaitGroup
	for i, lane := range s.lanes() {
		x := stormRand(s.seed, i+1)
		running.Go(func() {
			for pause := between(x, lane.from, lane.to); time.Now().Add(pause).Before(end); pause = between(x, lane.from, lane.to) {
				time.Sleep(pause)
				lane.does[x.IntN(len(lane.does))](x)
			}
		})
	}
	running.Go(func() {
		for ; time.Now().Before(end); time.Sleep(time.Second) {
			s.restartEnded()
		}
	})
	if s.kind.last >= 2*time.Minute && s.seed%3 == 0 {
		x := stormRand(s.seed, 100)
		running.Go(func() { s.restores(x, end) })
	}
	running.Wait()
}

// restores takes etcd back now and then, in every third storm: each time it is forgotten what was promised.
func (s *storm) restores(x *rand.Rand, end time.Time) {
	for {
		pause := between(x, 30*time.Second, 90*time.Second)
		if time.Now().Add(pause).After(end) {
			return
		}
		time.Sleep(pause)
		s.restore(x)
	}
}

// any is a host to which nothing happens now, and what is called when that is over.
func (s *storm) any(x *rand.Rand) (h *stormHost, done func()) {
	if h = s.hosts[x.IntN(len(s.hosts))]; !h.busy.TryLock() {
		return nil, nil
	}
	return h, h.busy.Unlock
}

// down is a host that is down from here on, for do, and up again then.
func (s *storm) whileDown(x *rand.Rand, what string, lasts time.Duration, do func(h *stormHost) error) {
	h, done := s.any(x)
	if h == nil {
		return
	}
	defer done()
	s.did(what, "%s for %s", h.name, lasts)
	h.down()
	if err := do(h); err != nil {
		s.t.Error(err)
	}
	time.Sleep(lasts)
	h.up()
}

func (s *storm) killed(x *rand.Rand) {
	s.whileDown(x, "host killed", between(x, 0, 3*time.Second), func(*stormHost) error { return nil })
}

// orphaned kills pullet alone: the command of its step goes on.
func (s *storm) orphaned(x *rand.Rand) {
	lasts := between(x, 0, 2*time.Second)
	h, done := s.any(x)
	if h == nil {
		return
	}
	defer done()
	s.did("pullet killed", "%s for %s", h.name, lasts)
	again := h.orphan()
	time.Sleep(lasts)
	again()
}

func (s *storm) stepsKilled(x *rand.Rand) {
	h, done := s.any(x)
	if h == nil || x.IntN(2) == 0 { // a group stands few of them
		if h != nil {
			done()
		}
		return
	}
	defer done()
	if h.killSteps() {
		s.did("commands killed", "%s", h.name)
	}
}

// stopped stops a host, alone or with its steps; now and then for longer than the lease of an agent.
func (s *storm) stopped(x *rand.Rand) {
	lasts, whole := between(x, 500*time.Millisecond, 8*time.Second), x.IntN(2) == 0
	if x.IntN(12) == 0 && s.kind.last >= 2*time.Minute {
		lasts = 70 * time.Second
	}
	h, done := s.any(x)
	if h == nil {
		return
	}
	defer done()
	s.did("host stopped", "%s for %s, with its steps: %v", h.name, lasts, whole)
	all := h.stop(whole)
	time.Sleep(lasts)
	all.signal(syscall.SIGCONT)
}

// reinstalled takes a host's state directory away. An operator tells the fleet that the host behind the name is a new
// one, once it says so.
func (s *storm) reinstalled(x *rand.Rand) {
	if h, done := s.any(x); h != nil {
		defer done()
		s.reinstall(h)
	}
}

func (s *storm) reinstall(h *stormHost) {
	s.did("host reinstalled", "%s", h.name)
	h.down()
	s.log.say("reverted %s", h.name)
	s.giveUp(h)
	if err := h.emptied(); err != nil {
		s.t.Error(err)
	}
	h.up()
}

// emptiedUnder removes the state directory under pullet while it runs. An agent ends then, and its unit starts it
// again.
func (s *storm) emptiedUnder(x *rand.Rand) {
	h, done := s.any(x)
	if h == nil {
		return
	}
	defer done()
	if h.disk || x.IntN(2) == 0 {
		return
	}
	s.did("state directory removed", "%s, which runs", h.name)
	s.log.say("reverted %s", h.name)
	if err := os.RemoveAll(h.state()); err != nil { // it may write there at the same moment
		_ = os.RemoveAll(h.state())
	}
	sleepFor(x, time.Second, 5*time.Second)
	s.giveUp(h)
}

// reverted takes a host's state directory back to an older copy, and makes the copy for the next time.
func (s *storm) reverted(x *rand.Rand) {
	s.whileDown(x, "host reverted", 0, func(h *stormHost) error {
		if h.disk {
			return nil
		}
		if h.old == "" {
			h.old = h.home + "/old"
			return copyState(h.state(), h.old)
		}
		s.log.say("reverted %s", h.name)
		return copyState(h.old, h.state())
	})
}

// cloned starts a copy of a host beside it, with its name, for a while.
func (s *storm) cloned(x *rand.Rand) {
	h, done := s.any(x)
	if h == nil {
		return
	}
	defer done()
	if h.disk {
		return
	}
	s.mu.Lock()
	s.counts["clones"]++
	name := fmt.Sprintf("%s-clone%d", h.name, s.counts["clones"])
	s.mu.Unlock()
	clone := s.host(name, h.node, h.role, false)
	h.down()
	if err := copyState(h.state(), clone.state()); err != nil {
		s.t.Error(err)
	}
	s.did("host cloned", "%s as %s", h.name, name)
	h.up()
	clone.up()
	sleepFor(x, 3*time.Second, 15*time.Second)
	clone.down()
	s.did("clone removed", "%s", name)
}

// cut hurts the way of a host to etcd.
func (s *storm) cut(x *rand.Rand) {
	way, lasts := x.IntN(5), between(x, 200*time.Millisecond, 9*time.Second)
	h := s.hosts[x.IntN(len(s.hosts))]
	if !h.fault.TryLock() {
		return
	}
	defer h.fault.Unlock()
	s.did([]string{"link cut", "link stalled", "answers lost", "requests lost", "link slow"}[way], "%s for %s", h.name, lasts)
	h.set([]int{linkCut, linkStall, linkDeaf, linkMute, linkSlow}[way])
	time.Sleep(lasts)
	h.set(linkOpen)
}

// clockJumps sets the time of day of a host: by seconds, hours or years, forward or back.
func (s *storm) clockJumps(x *rand.Rand) {
	h, by := s.hosts[x.IntN(len(s.hosts))], []int{-3, 40, -90, 3600, -7200, 86400, -100000, 40000000}[x.IntN(8)]
	s.did("clock set", "%s by %d s", h.name, by)
	s.write(h.name+"/clock", fmt.Sprint(by))
}

// diskFull leaves no room in the state directory of the one host that has a disk of its own.
func (s *storm) diskFull(x *rand.Rand) {
	h := s.hosts[len(s.hosts)-1]
	if !h.disk || !h.busy.TryLock() {
		return
	}
	defer h.busy.Unlock()
	lasts := between(x, time.Second, 10*time.Second)
	s.did("disk full", "%s for %s", h.name, lasts)
	s.log.say("sick %s", h.node)
	defer s.log.say("sick %s", h.node)
	free, err := h.fillDisk()
	if err != nil {
		s.t.Error(err)
		return
	}
	time.Sleep(lasts)
	if err := free(); err != nil {
		s.t.Error(err)
	}
}

// pushes commits the next version.
func (s *storm) pushes(x *rand.Rand) {
	sleepFor(x, 3*time.Second, 10*time.Second)
	if len(s.repos) > 1 && x.IntN(4) == 0 {
		s.pushing.Lock()
		defer s.pushing.Unlock()
		s.did("second repository pushed", "")
		s.pushExtra(x.Int())
		return
	}
	rewrite := x.IntN(12) == 0
	s.rules = s.rules.change(x)
	s.kind.shapes(s.rules)
	if rewrite {
		s.did("branch rewritten", "")
	}
	s.did("push", "")
	s.push(s.rules, rewrite)
	if rewrite {
		s.acceptRewind(x)
	}
}

// acceptRewind is an operator who accepts the rewritten branch on some host. The agent there is stopped meanwhile: a
// second pull does not wait for it.
func (s *storm) acceptRewind(x *rand.Rand) {
	for range 20 {
		h, done := s.any(x)
		if h == nil {
			time.Sleep(300 * time.Millisecond)
			continue
		}
		h.down()
		out, err := s.operatorOn(h, "pull", "--accept-rewind", "--wait", "0s")
		h.up()
		done()
		if err == nil || strings.Contains(out, "waiting for ") { // for its turn
			return
		}
	}
}
