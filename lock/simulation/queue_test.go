package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/etcdmodel"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// scene is a fleet in virtual time.
type scene struct {
	*etcdmodel.Cluster
	t     *testing.T
	ctx   context.Context
	admin *state.Store
}

// play plays a scene. Its nodes live until its end.
func play(t *testing.T, do func(s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := etcdmodel.New(rand.New(rand.NewPCG(1, 0)))
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		s := &scene{Cluster: c, t: t, ctx: ctx, admin: storeOf(c.Connect("admin"))}
		if err := begin(ctx, s.admin); err != nil {
			t.Fatal(err)
		}
		is, err := s.admin.Versions.Propose(ctx, state.Version{ID: "v1"}, nil, 0)
		if !is.Done {
			t.Fatal(err)
		}
		do(s)
	})
}

// begin records the incarnation of etcd, as the first registration of a fleet does.
func begin(ctx context.Context, s *state.Store) error {
	is, err := s.Doubts.Incarnation(ctx)
	if err != nil {
		return err
	}
	_, err = s.Client.Do(ctx, state.Put(s.Doubts.IncarnationKey(), is))
	return err
}

// actor is a node of a scene.
type actor struct {
	*state.Store
	*etcdmodel.Conn
	lock.Request
	die  context.CancelFunc // ends the process: its lease is not renewed any more
	told []string
}

// enters makes a node and keeps its lease, until it dies.
func (s *scene) enters(name string, order int64) *actor {
	s.t.Helper()
	n := s.Connect(name)
	a := &actor{Store: storeOf(n), Conn: n, Request: request("web", 1)}
	s.must(func() (err error) { a.Version, a.VersionRev, err = a.Versions.Current(s.ctx); return err }())
	s.must(func() (err error) {
		a.Presence, err = a.Presences.Register(s.ctx, state.Node{Name: name, Role: "web"}, state.Alive{Owner: name}, nil, time.Minute)
		return err
	}())
	var living context.Context
	living, a.die = context.WithCancel(s.ctx)
	a.Presences.KeepAlive(living, a.Presence, func() bool { return true }, func(bool) {})
	a.Order = order
	a.Waiting = func(w *lock.Wait) { a.told = append(a.told, w.Error()) }
	return a
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// queues makes a node wait, and hands over how that ended.
func (s *scene) queues(a *actor) (turn *lock.Turn, ended chan error) {
	turn, ended = lock.NewTurn(a.Store, a.Request), make(chan error, 1)
	go func() { ended <- turn.Acquire(s.ctx) }()
	s.settles()
	return turn, ended
}

// settles lets a second pass; what the actors wrote until then may be read.
func (s *scene) settles() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// TestStaleHead: who is first in the queue and does not ask is overtaken by the next, after that one's poll and not
// before.
func TestStaleHead(t *testing.T) {
	play(t, func(s *scene) {
		holder, stale, next := s.enters("holder", 1), s.enters("stale", 2), s.enters("next", 3)
		held, done := s.queues(holder)
		s.must(<-done)
		if wait, err := lock.NewTurn(stale.Store, stale.Request).Try(s.ctx); wait == nil { // and never again
			t.Fatal(err)
		}
		_, ended := s.queues(next)
		s.must(held.Succeed(s.ctx))
		began := time.Now()
		s.must(<-ended)
		if took := time.Since(began); took < 40*time.Second || took > 91*time.Second {
			t.Errorf("after %s", took)
		}
		if !strings.Contains(next.told[0], "stale comes first") {
			t.Errorf("%q", next.told)
		}
	})
}

// TestDeadHead: a first one that dies goes from the queue with its lease, and the next is told at once.
func TestDeadHead(t *testing.T) {
	play(t, func(s *scene) {
		holder, dead, next := s.enters("holder", 1), s.enters("dead", 2), s.enters("next", 3)
		dead.Rules.OnLost, next.Rules.OnLost = lock.Release, lock.Release // it does not count when it is lost
		held, done := s.queues(holder)
		s.must(<-done)
		s.queues(dead)
		_, ended := s.queues(next)
		dead.Kill()
		dead.die()
		s.must(held.Succeed(s.ctx))
		began := time.Now()
		s.must(<-ended)
		if took := time.Since(began); took > 62*time.Second {
			t.Errorf("after %s", took)
		}
	})
}

// TestLastingTicket: a ticket of a node whose lease outlives its process is kept as long as it waits, and is gone with
// the process.
func TestLastingTicket(t *testing.T) {
	play(t, func(s *scene) {
		holder, waits := s.enters("holder", 1), s.enters("waits", 2)
		waits.Lasting = true
		held, done := s.queues(holder)
		s.must(<-done)
		_, ended := s.queues(waits)
		tickets := func() int64 {
			got, err := s.admin.Client.Get(s.ctx, s.admin.Rollouts.QueuesPrefix("v1"), clientv3.WithPrefix(), clientv3.WithCountOnly())
			s.must(err)
			return got.Count
		}
		for range 10 {
			time.Sleep(time.Minute)
			if tickets() != 1 {
				t.Fatal("its ticket is gone while it waits")
			}
		}
		s.must(held.Succeed(s.ctx))
		began := time.Now()
		if s.must(<-ended); time.Since(began) > time.Second {
			t.Errorf("after %s", time.Since(began))
		}
		killed := s.enters("killed", 3)
		killed.Lasting = true
		s.queues(killed)
		killed.Kill()
		if time.Sleep(50 * time.Second); tickets() != 1 {
			t.Error("its ticket went too early")
		}
		if time.Sleep(40 * time.Second); tickets() != 0 {
			t.Error("its ticket is left")
		}
	})
}

// TestOneIsWoken: a place that becomes free wakes the first in the queue, and who waits behind it asks the store
// nothing.
func TestOneIsWoken(t *testing.T) {
	play(t, func(s *scene) {
		holder := s.enters("holder", 1)
		held, done := s.queues(holder)
		s.must(<-done)
		var last chan error
		var all []*actor
		for i := range 20 {
			a := s.enters(fmt.Sprint("n", i), int64(i+2))
			_, ended := s.queues(a)
			if all = append(all, a); i == 0 {
				last = ended
			}
		}
		before := make([]int, len(all))
		for i, a := range all {
			before[i] = len(a.told)
		}
		s.must(held.Succeed(s.ctx))
		s.must(<-last)
		s.settles()
		for i, a := range all[2:] {
			if len(a.told) != before[i+2] {
				t.Errorf("%s was told %q", a.Name(), a.told)
			}
		}
		if got := all[1].told; !strings.Contains(got[len(got)-1], "n0 holds it") {
			t.Errorf("the next knows %q", got)
		}
	})
}

// TestDisabledHead: a host that is switched off while it is first does not slow the others down.
func TestDisabledHead(t *testing.T) {
	play(t, func(s *scene) {
		holder, off, next := s.enters("holder", 1), s.enters("off", 2), s.enters("next", 3)
		held, done := s.queues(holder)
		s.must(<-done)
		_, admitted := s.queues(off)
		turn, ended := s.queues(next)
		s.must(setSwitch(s.ctx, s.admin, state.HostScope("off"), state.Switch{}, 0))
		s.settles()
		s.must(held.Succeed(s.ctx))
		began := time.Now()
		if s.must(<-ended); time.Since(began) > 2*time.Second {
			t.Errorf("after %s", time.Since(began))
		}
		s.must(turn.Succeed(s.ctx))
		s.must(setSwitch(s.ctx, s.admin, state.HostScope("off"), state.Switch{Enabled: true}, 0))
		s.must(<-admitted)
	})
}

// TestCutOff: a node that cannot renew its lease starts no further step, by its own clock and before the lease ends; it
// goes on when it could renew.
func TestCutOff(t *testing.T) {
	play(t, func(s *scene) {
		a := s.enters("holder", 1)
		turn, done := s.queues(a)
		s.must(<-done)
		s.must(turn.Check(s.ctx, "one"))
		a.Inflict(etcdmodel.Faults{Cut: true})
		time.Sleep(59 * time.Second)
		began := time.Now()
		if err := turn.Check(s.ctx, "two"); !errors.Is(err, state.ErrLeaseLost) || time.Since(began) > 0 {
			t.Errorf("cut off: %v, after %s", err, time.Since(began))
		}
		a.Inflict(etcdmodel.Faults{})
		time.Sleep(5 * time.Minute)
		if err := turn.Check(s.ctx, "three"); !errors.Is(err, state.ErrLeaseLost) { // too late: it ended meanwhile
			t.Errorf("%v", err)
		}
		b := s.enters("other", 2)
		b.Rules.Limit = func(int) int { return 9 }
		second, done := s.queues(b)
		s.must(<-done)
		b.Inflict(etcdmodel.Faults{Cut: true})
		time.Sleep(45 * time.Second)
		if err := second.Check(s.ctx, "two"); !errors.Is(err, state.ErrLeaseLost) {
			t.Errorf("cut off: %v", err)
		}
		b.Inflict(etcdmodel.Faults{})
		time.Sleep(10 * time.Second)
		s.must(second.Check(s.ctx, "three"))
	})
}
