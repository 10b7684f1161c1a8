package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/patience"
)

func register(t *testing.T, s *Store, node, role, owner string, ttl time.Duration) *Presence {
	t.Helper()
	p, err := s.Presences.Register(ctx, Node{Name: node, Role: role, LastSeen: time.Now().UTC()}, Alive{Owner: owner}, map[string]string{"os": "linux"}, ttl)
	if err != nil {
		t.Fatalf("register %s: %v", node, err)
	}
	return p
}

// TestRegister: a name belongs to one state directory while its lease lives; the same one takes it over; what lasts is
// kept.
func TestRegister(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	first := register(t, s, "n1", "web", "secret", time.Minute)
	_, err := s.Presences.Register(ctx, Node{Name: "n1"}, Alive{Owner: "another"}, nil, time.Minute)
	var taken *NameTakenError
	if !errors.As(err, &taken) || taken.Node != "n1" || !strings.Contains(err.Error(), "pullet decommission --force n1") {
		t.Fatalf("a second host: %v", err)
	}
	if _, err := s.Client.Txn(ctx).Then(s.Statuses.RunningOps(first, "v1")...).Commit(); err != nil {
		t.Fatal(err)
	}
	second := register(t, s, "n1", "db", "secret", time.Minute)
	if second.Lease == first.Lease || second.Revision <= first.Revision || second.Node.Running != "v1" || !second.Node.FirstSeen.Equal(first.Node.FirstSeen) ||
		uuid.Validate(first.Node.UUID) != nil || second.Node.UUID != first.Node.UUID {
		t.Errorf("first %+v\nsecond %+v", first, second)
	}
	if _, err := s.Client.Revoke(ctx, first.Lease); err != nil { // the lease of before ends: the node lives on
		t.Fatal(err)
	}
	o, err := s.Views.Fleet(ctx, true)
	if err != nil || !o.Alive["n1"] || o.Nodes["n1"].Role != "db" || o.Facts["n1"]["os"] != "linux" {
		t.Errorf("%+v %v", o, err)
	}
	if _, err := s.Client.Revoke(ctx, second.Lease); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Presences.Register(ctx, Node{Name: "n1"}, Alive{Owner: "another"}, nil, time.Minute); err != nil || p.Node.Running != "v1" {
		t.Errorf("the lease ended, the name is free: %+v %v", p, err)
	}
}

// TestKeptLease: single pulls of a host in one boot share a lease that is long enough and not much longer; agents,
// another boot, another length and a lease that ended make a new one.
func TestKeptLease(t *testing.T) {
	t.Parallel()
	single := Alive{Owner: "x", Machine: "m", Dir: 7, Boot: "b1", Lasting: true}
	agent, booted := single, single
	agent.Lasting, booted.Boot = false, "b2"
	for _, c := range []struct {
		name string
		next Alive
		ttl  time.Duration
		keep bool
	}{
		{"the next pull", single, 1000 * time.Second, true},
		{"a little sooner than the last one", single, 950 * time.Second, true},
		{"a little later", single, 1001 * time.Second, false},
		{"much sooner", single, 900 * time.Second, false},
		{"an agent", agent, 1000 * time.Second, false},
		{"a lease that ended", single, 1000 * time.Second, false},
		{"another boot", booted, 1000 * time.Second, false},
	} {
		s := open(t, t.TempDir())
		node := Node{Name: "n1", LastSeen: time.Now()}
		first, err := s.Presences.Register(ctx, node, single, nil, 1000*time.Second)
		must(t, err)
		r, err := s.Presences.registration(ctx, "n1")
		must(t, err)
		if c.name == "a lease that ended" {
			_, err := s.Client.Revoke(ctx, first.Lease)
			must(t, err)
		}
		lease, lasts, err := s.Presences.leaseFor(ctx, r, c.next, c.ttl)
		must(t, err)
		if kept := lease == first.Lease; kept != c.keep || kept && lasts != first.Time || !kept && lasts != c.ttl {
			t.Errorf("%s: kept %v, %s", c.name, kept, lasts)
		}
	}
}

// TestRegisterOnKeptLease: the next pull of a host is registered on the lease of the last one, and anew: what the last
// one began to write fails.
func TestRegisterOnKeptLease(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	var pulls [2]*Presence
	for i := range pulls {
		var err error
		pulls[i], err = s.Presences.Register(ctx, Node{Name: "n1", LastSeen: time.Now()}, Alive{Owner: "x", Lasting: true}, nil, time.Minute)
		must(t, err)
	}
	if pulls[0].Lease != pulls[1].Lease || pulls[0].Revision >= pulls[1].Revision {
		t.Errorf("%+v\n%+v", pulls[0], pulls[1])
	}
	if err := s.Statuses.Tell(ctx, pulls[0]); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("the pull before: %v", err)
	}
	must(t, s.Statuses.Tell(ctx, pulls[1]))
	if _, err := s.Nodes.Decommission(ctx, "n1", "ada", true); err != nil {
		t.Fatal(err)
	}
	after, err := s.Presences.Register(ctx, Node{Name: "n1", LastSeen: time.Now()}, Alive{Owner: "x", Lasting: true}, nil, time.Minute)
	must(t, err)
	if after.Lease == pulls[1].Lease {
		t.Error("it comes back on the lease of before it was given up")
	}
}

// revoking is a client whose leases end as soon as they were renewed.
type revoking struct{ clientv3.Lease }

func (r revoking) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	kept, err := r.Lease.KeepAliveOnce(ctx, id)
	if err == nil {
		_, err = r.Revoke(ctx, id)
	}
	return kept, err
}

// TestRegisterOnRevokedLease: a pull whose kept lease ends before it is registered makes one of its own.
func TestRegisterOnRevokedLease(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	pull := func() *Presence {
		p, err := s.Presences.Register(ctx, Node{Name: "n1", LastSeen: time.Now()}, Alive{Owner: "x", Lasting: true}, nil, time.Minute)
		must(t, err)
		return p
	}
	first := pull()
	s.Client.Lease = revoking{s.Client.Lease}
	second := pull()
	if second.Lease == first.Lease {
		t.Error("it is registered on a lease that ended")
	}
	must(t, s.Statuses.Tell(ctx, second))
}

// TestRegisterAtOnce: of several hosts with one name one wins.
func TestRegisterAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	var mu sync.Mutex
	won := 0
	atOnce(t, 10, func(i int) error {
		_, err := s.Presences.Register(ctx, Node{Name: "n1"}, Alive{Owner: fmt.Sprint(i)}, nil, time.Minute)
		var taken *NameTakenError
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			won++
		} else if !errors.As(err, &taken) {
			return err
		}
		return nil
	})
	if won != 1 {
		t.Errorf("%d hosts run under one name", won)
	}
}

// TestCounts: a node is counted where its role is, as one that was seen, and as one that lives while it does.
func TestCounts(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	want := func(when string, counts ...int64) {
		t.Helper()
		got := []int64{}
		for _, role := range []string{"web", "db"} {
			got = append(got, count(t, s, s.Nodes.SeenKey(role, "")), count(t, s, s.Nodes.LiveKey(role, "")))
		}
		if !slices.Equal(got, counts) {
			t.Errorf("%s: %v, want %v", when, got, counts)
		}
	}
	p := register(t, s, "n1", "web", "x", time.Minute)
	want("registered", 1, 1, 0, 0)
	must(t, s.Presences.Relabel(ctx, p, map[string]string{"role": "db"}))
	want("relabeled", 0, 0, 1, 1)
	p = register(t, s, "n1", "web", "x", time.Minute)
	want("registered with another role", 1, 1, 0, 0)
	_, err := s.Client.Revoke(ctx, p.Lease)
	must(t, err)
	want("away", 1, 0, 0, 0)
	if err := s.Presences.Relabel(ctx, p, map[string]string{"role": "db"}); !errors.Is(err, ErrLeaseLost) {
		t.Error("relabeled without a lease")
	}
	want("still away", 1, 0, 0, 0)
}

// TestKeepAlive: a lease is kept while the node wants it, and ends when it hangs. A node learns that etcd does not know
// its lease any more.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	lasts := patience.Stretch(time.Second)
	p, hung := register(t, s, "n1", "web", "x", lasts), register(t, s, "n2", "web", "y", lasts)
	living, cancel := context.WithCancel(ctx)
	defer cancel()
	lost := make(chan struct{})
	s.Presences.KeepAlive(living, p, func() bool { return true }, func(doubtful bool) {
		if doubtful {
			close(lost)
		}
	})
	s.Presences.KeepAlive(living, hung, func() bool { return false }, func(bool) {})
	must(t, ended(s, s.Presences.AliveKey("n")))
	if a, b := count(t, s, s.Presences.AliveKey("n1")), count(t, s, s.Presences.AliveKey("n2")); a != 1 || b != 0 {
		t.Errorf("kept %d, hung %d", a, b)
	}
	if s.Presences.CutOff(p) || !s.Presences.CutOff(hung) {
		t.Errorf("cut off: kept %v, hung %v", s.Presences.CutOff(p), s.Presences.CutOff(hung))
	}
	_, err := s.Client.Revoke(ctx, p.Lease)
	must(t, err)
	<-lost
}

// TestLeaseAge: the age of a lease is counted from its last renewal.
func TestLeaseAge(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	register(t, s, "n1", "web", "x", time.Minute)
	patience.Until(t, "a lease that nobody renews becomes old", func() bool {
		age, err := s.Presences.LeaseAge(ctx, "n1")
		must(t, err)
		return age >= 3*time.Second
	})
}
