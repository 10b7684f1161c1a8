package event

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// errKilled is what a process that was killed would not live to see.
var errKilled = errors.New("killed")

// mortal is a connection to etcd of a process that is killed at its request number At: before etcd gets it, or before
// the answer comes.
type mortal struct {
	clientv3.KV
	clientv3.Lease
	at     int64
	behind bool
	asked  atomic.Int64
}

// ask makes a request, and reports that the process is alive behind it.
func (m *mortal) ask(request func() error) error {
	n := m.asked.Add(1)
	if n > m.at || n == m.at && !m.behind {
		return errKilled
	}
	if err := request(); err != nil || n < m.at {
		return err
	}
	return errKilled
}

func (m *mortal) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (out *clientv3.GetResponse, err error) {
	err = m.ask(func() error { out, err = m.KV.Get(ctx, key, opts...); return err })
	return out, err
}

func (m *mortal) Txn(ctx context.Context) clientv3.Txn { return &mortalTxn{m.KV.Txn(ctx), m} }

type mortalTxn struct {
	clientv3.Txn
	of *mortal
}

func (t *mortalTxn) If(cs ...clientv3.Cmp) clientv3.Txn   { t.Txn = t.Txn.If(cs...); return t }
func (t *mortalTxn) Then(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Then(ops...); return t }
func (t *mortalTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(ops...); return t }

func (t *mortalTxn) Commit() (out *clientv3.TxnResponse, err error) {
	err = t.of.ask(func() error { out, err = t.Txn.Commit(); return err })
	return out, err
}

func (m *mortal) Grant(ctx context.Context, ttl int64) (out *clientv3.LeaseGrantResponse, err error) {
	err = m.ask(func() error { out, err = m.Lease.Grant(ctx, ttl); return err })
	return out, err
}

func (m *mortal) TimeToLive(
	ctx context.Context, id clientv3.LeaseID, opts ...clientv3.LeaseOption,
) (out *clientv3.LeaseTimeToLiveResponse, err error) {
	err = m.ask(func() error { out, err = m.Lease.TimeToLive(ctx, id, opts...); return err })
	return out, err
}

func (m *mortal) Revoke(ctx context.Context, id clientv3.LeaseID) (out *clientv3.LeaseRevokeResponse, err error) {
	err = m.ask(func() error { out, err = m.Lease.Revoke(ctx, id); return err })
	return out, err
}

// dies has the process of a store be killed at a request.
func dies(s *state.Store, at int64, behind bool) *mortal {
	m := &mortal{KV: s.Client.KV, Lease: s.Client.Lease, at: at, behind: behind}
	s.Client.KV, s.Client.Lease = m, m
	return m
}

// TestKilledReactor: a reactor that is killed at any of its requests, before etcd has it or before the answer comes,
// leaves the next one all that is to do, and nothing is done twice: each event is in the log once and counts once, and
// each reaction starts once.
func TestKilledReactor(t *testing.T) {
	dir := t.TempDir()
	open := func(fleet string) *state.Store {
		s, err := state.Open(t.Context(), state.Config{Fleet: fleet, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	open("keeps") // the etcd
	one, perHost := reaction("one", "disk/*", false), reaction("each", "disk/*", true)
	one.Limiter.MinOccurrences, one.Limiter.Delay, perHost.Limiter.Delay = 4, time.Hour, time.Hour
	for at := int64(1); ; at++ {
		survived := false
		for _, behind := range []bool{false, true} {
			fleet := fmt.Sprintf("f%d%t", at, behind)
			first, second := open(fleet), open(fleet)
			for i := range 6 {
				by := fmt.Sprintf("web%d", i%3)
				e := state.Event{ID: fmt.Sprint("e", i), Name: "disk/full", By: by, Time: time.Now().UTC(), Hosts: []string{by}}
				if n, err := second.Events.Tell(t.Context(), by, []state.Event{e}, 0); n != 1 || err != nil {
					t.Fatal(n, err)
				}
			}
			m := dies(first, at, behind)
			err := reactorOf(first, "web1", one, perHost).Once(t.Context())
			survived = survived || err == nil && m.asked.Load() < at
			if _, err := second.Client.Delete(t.Context(), "/pullet/"+fleet+"/reactor/leader"); err != nil { // its lease ended
				t.Fatal(err)
			}
			if err := reactorOf(second, "web2", one, perHost).Once(t.Context()); err != nil {
				t.Fatal(err)
			}
			if wrong := doneTwice(t, second, 6); wrong != "" {
				t.Errorf("killed at request %d (behind it: %t): %s", at, behind, wrong)
			}
		}
		if survived {
			if at < 6 {
				t.Errorf("a reactor asks only %d times", at)
			}
			return
		}
	}
}

// doneTwice says what was done twice, or not at all, with events of which each was told once.
func doneTwice(t *testing.T, s *state.Store, events int) string {
	t.Helper()
	runs, err := s.Reactions.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	starts, counted := map[string]int{}, map[string]int{}
	hosts := map[string]int{}
	for _, run := range runs {
		starts[run.Reaction]++
		counted[run.Reaction] += run.Event.Occurrences
		for _, host := range run.Hosts {
			hosts[run.Reaction+" "+host]++
		}
	}
	pages, err := s.EventLog.Newest(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	logged := 0
	for _, page := range pages {
		for _, e := range page.Events {
			logged += e.Count
		}
	}
	in, err := s.Events.Inbox(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range in.Groups {
		for _, tally := range g.Tallies {
			for _, seen := range tally.Seen {
				counted[g.Reaction] += seen.N
			}
		}
	}
	for host, n := range hosts {
		if n > 1 {
			return fmt.Sprintf("%s was asked %d times", host, n)
		}
	}
	if starts["one"] != 1 || counted["one"] != events || counted["each"] != events || logged != events || len(in.Events) > 0 {
		return fmt.Sprintf("starts %v, counted %v, logged %d of %d, left %d", starts, counted, logged, events, len(in.Events))
	}
	return ""
}

// TestKilledTeller: a host that is killed at any request while it tells an event tells it again from its disk, and the
// fleet has it once.
func TestKilledTeller(t *testing.T) {
	dir := t.TempDir()
	for at := int64(1); at <= 4; at++ {
		for _, behind := range []bool{false, true} {
			fleet := fmt.Sprintf("f%d%t", at, behind)
			first, err := state.Open(t.Context(), state.Config{Fleet: fleet, Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			kv, lease := first.Client.KV, first.Client.Lease
			spool := Spool{Dir: t.TempDir(), By: "web1"}
			for i := range 3 {
				e := state.Event{ID: fmt.Sprint("e", i), Name: "disk/full", By: "web1", Time: time.Now().UTC()}
				if err := spool.Add(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			dies(first, at, behind)
			_, _ = spool.Tell(t.Context(), first)
			first.Client.KV, first.Client.Lease = kv, lease
			left, err := spool.Tell(t.Context(), first)
			waiting, failed := first.EventLog.Waiting(t.Context())
			if err != nil || failed != nil || left != 0 || len(waiting) != 3 {
				t.Errorf("killed at %d, %t: %d left, %d told, %v, %v", at, behind, left, len(waiting), err, failed)
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
