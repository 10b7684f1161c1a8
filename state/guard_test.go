package state

import (
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestGuard: a record that another cluster serves, or that is younger than the one a node saw, is doubted until an
// operator accepts it. An acceptance holds for what it was given for: a record that went back since is doubted again.
func TestGuard(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	register(t, s, "n1", "web", "secret", time.Minute)
	is, err := s.Doubts.Guard(ctx, "n1", Origin{})
	must(t, err)
	if is.Revision == 0 || is.Cluster == 0 || is.Accepted != "" {
		t.Fatalf("%+v", is)
	}
	must(t, s.Doubts.Accept(ctx, "ada"))
	accepted, err := s.Doubts.Guard(ctx, "n1", is)
	must(t, err)
	if accepted.Accepted == "" {
		t.Fatalf("%+v", accepted)
	}
	newer := func(o Origin) Origin { o.Revision++; return o }
	claimed := func(o Origin) Origin { o.Claimed++; return o }
	elsewhere := func(o Origin) Origin { o.Cluster++; return o }
	earlier := func(o Origin) Origin { o.Accepted = "bob, for the restore before"; return o }
	_, err = s.Client.Delete(ctx, s.Doubts.acceptedKey())
	must(t, err)
	for _, c := range []struct {
		name string
		guarded
		before func() error
	}{
		{"the first pull", guarded{Origin{}, false}, nil},
		{"nothing changed", guarded{is, false}, nil},
		{"it went back", guarded{newer(is), true}, nil},
		{"it lacks a claim", guarded{claimed(is), true}, nil},
		{"it is another one", guarded{elsewhere(is), true}, nil},
		{"it went back behind an acceptance", guarded{newer(accepted), true}, nil},
		{"it went back, and was accepted", guarded{newer(is), false}, func() error { return s.Doubts.Accept(ctx, "ada") }},
		{"it lacks a claim, and was accepted", guarded{claimed(is), false}, func() error { return s.Doubts.Accept(ctx, "ada") }},
		{"it is another one, and was accepted", guarded{elsewhere(is), false}, func() error { return s.Doubts.Accept(ctx, "ada") }},
		{"it went back again, and was accepted again", guarded{newer(earlier(is)), false}, func() error { return s.Doubts.Accept(ctx, "ada") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.Client.Delete(ctx, s.Doubts.Key())
			must(t, err)
			if c.before != nil {
				must(t, c.before())
			}
			c.judge(t, s)
		})
	}
	now, err := s.Doubts.Guard(ctx, "n1", Origin{})
	must(t, err)
	t.Run("it went back after it was accepted", func(t *testing.T) {
		guarded{newer(now), true}.judge(t, s)
	})
}

// guarded is what a node saw, and whether the record that it finds is doubted.
type guarded struct {
	seen Origin
	back bool
}

func (g guarded) judge(t *testing.T, s *Store) {
	t.Helper()
	now, err := s.Doubts.Guard(ctx, "n1", g.seen)
	var back *WentBackError
	if errors.As(err, &back) != g.back || !g.back && err != nil {
		t.Errorf("%v", err)
	}
	if doubted := count(t, s, s.Doubts.Key()) == 1; doubted != g.back {
		t.Errorf("doubted: %v", doubted)
	}
	if g.back && now != g.seen {
		t.Errorf("it forgot what it saw: %+v", now)
	}
}

// TestDoubtSaysWhatRuns: what a node says beside a restored record goes before what that record says of it, also where
// the record does not know the node, until the node writes there again.
func TestDoubtSaysWhatRuns(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	back := &WentBackError{Seen: Origin{Revision: 9}, Is: Origin{Revision: 3}}
	must(t, doubt(ctx, s, "web1", back.What(), time.Time{}))
	_, err := s.Client.Txn(ctx).Then(
		Put(s.Nodes.Key("web1"), Node{Name: "web1", Running: "old"}), clientv3.OpPut(s.Statuses.RunningKey("old", "web1"), ""),
	).Commit()
	must(t, err)
	runs := &Version{ID: "new", Release: "v2"}
	must(t, s.Doubts.Tell(ctx, "web1", back, runs, time.Minute))
	must(t, s.Doubts.Tell(ctx, "web2", back, runs, time.Minute))
	o := seen(t, s)
	if _, known := o.Nodes["web2"]; !known || o.Running["web1"] != "new" || o.Running["web2"] != "new" || o.Releases["new"] != "v2" {
		t.Errorf("%v %v %v", o.Nodes, o.Running, o.Releases)
	}
	must(t, s.Doubts.Tell(ctx, "web2", back, nil, time.Minute))
	_, err = s.Client.Put(ctx, s.Statuses.RunningKey("newer", "web1"), "")
	must(t, err)
	o = seen(t, s)
	if _, runs := o.Running["web2"]; runs || o.Running["web1"] != "newer" {
		t.Error(o.Running)
	}
}

func seen(t *testing.T, s *Store) *Overview {
	t.Helper()
	o, err := s.Views.Fleet(ctx, false)
	must(t, err)
	return o
}

// TestTellUnproven: nobody says that a pull failed of a node that was given up.
func TestTellUnproven(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	me := Alive{Owner: "a", Machine: "m", Dir: 1}
	_, err := s.Presences.Register(ctx, Node{Name: "web1", LastSeen: time.Now().UTC()}, me, map[string]string{"os": "linux"}, time.Minute)
	must(t, err)
	says := func() bool {
		t.Helper()
		must(t, TellUnproven(ctx, s, "web1", me, Status{Reason: "damaged", Time: time.Now().UTC()}))
		return seen(t, s).Statuses["web1"][Configured].State == Failed
	}
	if !says() {
		t.Error("the host of the node says nothing")
	}
	must(t, TellUnproven(ctx, s, "web1", Alive{Owner: "b", Machine: "other", Dir: 2}, Status{Reason: "another", Time: time.Now().UTC()}))
	if why := seen(t, s).Statuses["web1"][Configured].Reason; why != "damaged" {
		t.Errorf("another host that says to be the node says: %s", why)
	}
	_, err = s.Nodes.Decommission(ctx, "web1", "ada", true)
	must(t, err)
	if says() {
		t.Error("a node that was given up says that it failed")
	}
}
