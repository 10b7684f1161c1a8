package state

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/tier"
)

// TestCloned: hosts with copies of one state directory are told apart, both are refused, and one goes on when the other
// is given up.
func TestCloned(t *testing.T) {
	t.Parallel()
	up := func() time.Duration { return time.Hour }
	original := Alive{Owner: "secret", Host: "web1", Machine: "aaaaaaaaaaaa", Dir: 7, Boot: "b1", Up: up}
	for name, change := range map[string]func(a *Alive){
		"another machine":                    func(a *Alive) { a.Machine = "bbbbbbbbbbbb" },
		"another directory":                  func(a *Alive) { a.Dir = 8 },
		"another boot, side by side":         func(a *Alive) { a.Boot = "b2" },
		"another machine, in a boot like it": func(a *Alive) { a.Machine, a.Boot = "bbbbbbbbbbbb", "b2" },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir())
			clone := original
			change(&clone)
			enter := func(a Alive) error {
				_, err := s.Presences.Register(ctx, Node{Name: "n1", Role: "web"}, a, nil, time.Minute)
				return err
			}
			must(t, enter(original))
			for _, a := range []Alive{clone, original, clone, original} {
				var cloned *ClonedError
				if err := enter(a); !errors.As(err, &cloned) || len(cloned.Others) != 1 {
					t.Fatalf("%s: %v", a, err)
				}
				for _, part := range []string{original.String(), clone.String(), `2 hosts run as node "n1"`, "pullet decommission --force n1"} {
					if !strings.Contains(cloned.Error(), part) {
						t.Errorf("%s lacks %s", cloned, part)
					}
				}
			}
			o, err := s.Views.Fleet(ctx, false)
			must(t, err)
			if len(o.Hosts["n1"]) != 2 {
				t.Errorf("the fleet sees %v", o.Hosts)
			}
			_, err = s.Nodes.Decommission(ctx, "n1", "op", true)
			must(t, err)
			must(t, enter(original))
			must(t, enter(original))
		})
	}
}

// TestSameHost: what a host takes over from itself, and from whoever had its name before and is gone.
func TestSameHost(t *testing.T) {
	t.Parallel()
	first := Alive{Instance: "1", Owner: "secret", Machine: "aaaa", Dir: 7, Boot: "b1"}
	other := func(change func(*Alive)) Alive { a := first; change(&a); return a }
	for name, c := range map[string]struct {
		next Alive
		gone bool
	}{
		"another process":                 {other(func(a *Alive) { a.Instance = "2" }), false},
		"an agent that left no mark":      {Alive{Owner: "secret"}, false},
		"reinstalled, the lease ended":    {other(func(a *Alive) { a.Owner, a.Dir = "another", 8 }), true},
		"new hardware, the lease ended":   {other(func(a *Alive) { a.Machine, a.Boot = "bbbb", "b2" }), true},
		"booted, the lease ended":         {other(func(a *Alive) { a.Boot = "b2" }), true},
		"the fleet's record is the local": {other(func(a *Alive) { a.Boot = "" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir())
			p, err := s.Presences.Register(ctx, Node{Name: "n1"}, first, nil, time.Minute)
			must(t, err)
			if c.gone {
				_, err = s.Client.Revoke(ctx, p.Lease)
				must(t, err)
			}
			if _, err = s.Presences.Register(ctx, Node{Name: "n1"}, c.next, nil, time.Minute); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBooted: a host that booted takes its name over; an earlier boot that comes back is another host.
func TestBooted(t *testing.T) {
	tier.Long(t, "waits for a lease that is not renewed")
	t.Parallel()
	s := open(t, t.TempDir())
	began := time.Now()
	up := func() time.Duration { return time.Since(began) }
	before, now := Alive{Owner: "secret", Dir: 7, Boot: "b1", Up: up}, Alive{Owner: "secret", Dir: 7, Boot: "b2", Up: up}
	for _, a := range []Alive{before, now} {
		_, err := s.Presences.Register(ctx, Node{Name: "n1"}, a, nil, time.Minute)
		must(t, err)
	}
	if took := time.Since(began); took < renewEvery {
		t.Errorf("it took the name over after %s, and the other one may have worked", took)
	}
	var cloned *ClonedError
	if _, err := s.Presences.Register(ctx, Node{Name: "n1"}, before, nil, time.Minute); !errors.As(err, &cloned) {
		t.Errorf("a boot came back: %v", err)
	}
}

// TestEarlier: whose lease it was, told from its age and from how long the host is up.
func TestEarlier(t *testing.T) {
	for _, c := range []struct {
		age, up time.Duration
		yes     bool
		left    time.Duration
	}{
		{time.Minute, 10 * time.Second, true, 0},                   // it died long before the boot
		{renewEvery, 10 * time.Second, false, bootSlack},           // it may renew just now
		{0, time.Second, false, renewEvery + bootSlack},            // a fast boot
		{10 * time.Second, time.Hour, false, 0},                    // it renewed while this boot was on
		{50 * time.Second, 54 * time.Second, true, 0},              // clocks that count seconds
		{renewEvery + bootSlack, 20 * time.Second, true, 0},        // renewed for the last time before the boot
		{renewEvery + bootSlack, 26 * time.Hour, false, 0},         // the lease of a single pull
		{2 * time.Hour, 3 * time.Minute, true, 0},                  // the same, from before the boot
		{3 * time.Minute, 3*time.Minute + 6*time.Second, false, 0}, // the same, from after it
	} {
		if yes, left := earlier(c.age, c.up); yes != c.yes || left != c.left {
			t.Errorf("age %s, up %s: %v, wait %s", c.age, c.up, yes, left)
		}
	}
}
