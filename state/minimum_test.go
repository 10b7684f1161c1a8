package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// bare is a client without a Store between: it also writes what cannot be read.
func bare(t *testing.T, s *Store) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: s.Client.Endpoints()})
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

// older registers a node as a pullet does that reads the first format.
func older(t *testing.T, s *Store, name string) bool {
	t.Helper()
	done, err := s.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(s.Nodes.minimumKey()), "=", 0)).
		Then(Put(s.Nodes.Key(name), Node{Name: name, Agent: "v0.1.0"})).
		Commit()
	must(t, err)
	return done.Succeeded
}

// behind wants the minimum not to be raised for some nodes.
func behind(t *testing.T, s *Store, nodes string) {
	t.Helper()
	_, err := s.Nodes.RaiseMinimum(ctx, "ada", "v0.2.0")
	if _, ok := errors.AsType[*BehindError](err); !ok || !strings.Contains(err.Error(), "not everybody reads format 2: "+nodes+"; upgrade pullet there") {
		t.Errorf("nodes behind: %v; want %s", err, nodes)
	}
	if m, _, err := s.Nodes.Readers(ctx); err != nil || m.Format != firstFormat {
		t.Errorf("the minimum is %+v, %v", m, err)
	}
}

// TestMinimum: the minimum is raised when every host that is not given up reads the format, and once.
func TestMinimum(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	register(t, s, "n1", "web", "secret", time.Minute)
	older(t, s, "n2")
	older(t, s, "gone")
	behind(t, s, "gone (pullet v0.1.0), n2 (pullet v0.1.0)")
	_, err := s.Client.Put(ctx, s.Nodes.Key("gone"), `{"name": "gone", "decommissioned": true}`)
	must(t, err)
	behind(t, s, "n2 (pullet v0.1.0)")
	raw := bare(t, s)
	_, err = raw.Put(ctx, s.Nodes.Key("n2"), "{")
	must(t, err)
	behind(t, s, "n2 (pullet unknown)")
	register(t, s, "n2", "web", "other", time.Minute)
	unproven := Node{Name: "n4", Agent: "v0.2.0", Unproven: true}
	_, err = s.Presences.Register(ctx, unproven, Alive{Owner: "fourth"}, nil, time.Minute)
	must(t, err)
	behind(t, s, "n4 (pullet v0.2.0)")
	register(t, s, "n4", "web", "fourth", time.Minute)

	for key, value := range map[string]string{ // an agent that does not know yet that its host was given up, or lost its record
		s.Presences.AliveKey("gone"): `{}`, s.Presences.AliveKey("lost"): `{}`, s.Events.leaderKey(): "leads",
		s.key("datastore", "reach", "n1"): `{"away": []}`, s.key("datastore", "reach", "n2"): `{"away": [], "format": 2}`,
	} {
		_, err = raw.Put(ctx, key, value)
		must(t, err)
	}
	behind(t, s, "gone (pullet unknown), leads (pullet unknown), lost (pullet unknown), n1 (pullet-etcd)")
	_, err = raw.Delete(ctx, s.key("datastore", "reach", "n1"))
	must(t, err)
	_, err = raw.Delete(ctx, s.Events.leaderKey())
	must(t, err)
	for _, name := range []string{"gone", "lost"} {
		_, err = raw.Delete(ctx, s.Presences.AliveKey(name))
		must(t, err)
	}

	first, err := s.Nodes.RaiseMinimum(ctx, "ada", "v0.2.0")
	if err != nil || first.Format != Format || first.By != "ada" || first.Release != "v0.2.0" {
		t.Errorf("%+v, %v", first, err)
	}
	again, err := s.Nodes.RaiseMinimum(ctx, "grace", "v0.3.0")
	if err != nil || again != first {
		t.Errorf("raised again: %+v, %v; want %+v", again, err, first)
	}
	register(t, s, "n3", "web", "third", time.Minute)
}

// TestMinimumGone: a minimum that a restored record does not have any more is none, also for who read it before.
func TestMinimumGone(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	_, err := s.Nodes.RaiseMinimum(ctx, "ada", "v0.2.0")
	must(t, err)
	register(t, s, "n1", "web", "secret", time.Minute)
	if why := s.all.refuses(&kind{shape: "minimum"}); why != "" {
		t.Errorf("with the minimum: %s", why)
	}
	_, err = s.Client.Delete(ctx, s.Nodes.minimumKey())
	must(t, err)
	register(t, s, "n1", "web", "secret", time.Minute)
	if why := s.all.refuses(&kind{shape: "minimum"}); why == "" {
		t.Error("without one what it brings is written")
	}
}

// TestLowerMinimum: who serves or repairs the record opens it whatever the minimum is, and can lower it; a minimum that
// this pullet reads stays.
func TestLowerMinimum(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	raw := bare(t, s)
	_, err := raw.Put(ctx, s.Nodes.minimumKey(), `{"format": 99, "release": "v9.0.0"}`)
	must(t, err)
	repair, err := Open(ctx, Config{Fleet: "f", Dir: dir, AnyFormat: true})
	must(t, err)
	defer repair.Close()
	m, err := repair.Nodes.LowerMinimum(ctx, "ada", "v0.2.0")
	if err != nil || m.Format != Format {
		t.Errorf("lowered: %+v, %v", m, err)
	}
	again, err := repair.Nodes.LowerMinimum(ctx, "grace", "v0.2.0")
	if err != nil || again != m {
		t.Errorf("lowered again: %+v, %v", again, err)
	}
	register(t, s, "n1", "web", "secret", time.Minute)
}

// TestMinimumFirst: what a minimum brings is not written before everybody is known to read it.
func TestMinimumFirst(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	write := func() error {
		_, err := s.Client.Put(ctx, s.Nodes.minimumKey(), `{"format": 2}`)
		return err
	}
	var refused *UnwritableError
	if err := write(); !errors.As(err, &refused) ||
		err.Error() != "minimum is not written to the fleet's record: it needs a fleet in which everybody reads format 2: pullet fleet minimum" {
		t.Errorf("before: %v", err)
	}
	_, err := s.Nodes.RaiseMinimum(ctx, "ada", "v0.2.0")
	must(t, err, write())
}

// TestTooOld: a pullet that reads less than the minimum neither joins nor reads, whether it begins or is at work, and
// says what to do. That is no fault of etcd.
func TestTooOld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	register(t, s, "n1", "web", "secret", time.Minute)
	raw := bare(t, s)
	_, err := raw.Put(ctx, s.Nodes.minimumKey(), `{"format": 99, "release": "v9.0.0", "by": "ada", "later": {"field": 1}}`)
	must(t, err)
	want := func(err error) {
		t.Helper()
		var old *TooOldError
		if !errors.As(err, &old) || err.Error() != "the fleet needs a newer pullet: its record has format 99, and this one reads up to format 2; "+
			"install pullet v9.0.0 or newer here" {
			t.Errorf("%T %v", err, err)
		}
	}
	_, err = s.Presences.Register(ctx, Node{Name: "n1"}, Alive{Owner: "secret"}, nil, time.Minute)
	want(err)
	_, err = s.Nodes.RaiseMinimum(ctx, "ada", "v0.2.0")
	want(err)
	for _, node := range []string{"", "n1"} {
		_, err := Open(ctx, Config{Fleet: "f", Dir: dir, Node: node})
		want(err)
	}
}

// TestMinimumUnreadable: a minimum that says nothing refuses nobody, and nothing new is written.
func TestMinimumUnreadable(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	raw := bare(t, s)
	for _, value := range []string{"", "{", `{"format": 0}`, `{"format": -1}`, `{"format": 100000}`, `{"format": "2"}`, "null", `{"format": 2, "release": "v9; rm -r / #"}`} {
		_, err := raw.Put(ctx, s.Nodes.minimumKey(), value)
		must(t, err)
		register(t, s, "n1", "web", "secret", time.Minute)
		if why := s.all.refuses(&kind{shape: "minimum"}); why == "" {
			t.Errorf("%q: what is new is written", value)
		}
		bad := s.BadRecords()
		if len(bad) != 1 || !strings.HasPrefix(bad[0].Error(), "etcd key minimum cannot be read: ") {
			t.Errorf("%q: %v", value, bad)
		}
	}
	_, err := s.Nodes.RaiseMinimum(ctx, "ada", "v0.2.0") // over it
	must(t, err)
}

// TestMinimumRace: of an old pullet that joins and a minimum that is raised at the same moment one is refused. Nodes
// that register all the time keep nobody from raising it.
func TestMinimumRace(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	busy, stop := context.WithCancel(ctx)
	var at sync.WaitGroup
	at.Go(func() {
		for busy.Err() == nil {
			register(t, s, "n1", "web", "secret", time.Minute)
		}
	})
	joined := 0
	for i := range 100 {
		name, came := fmt.Sprintf("old%d", i), false
		var both sync.WaitGroup
		both.Go(func() {
			time.Sleep(time.Duration(i%10) * 300 * time.Microsecond)
			came = older(t, s, name)
		})
		_, err := s.Nodes.RaiseMinimum(ctx, "ada", "v0.2.0")
		both.Wait()
		if came == (err == nil) {
			t.Fatalf("round %d: the old pullet joined: %v, the minimum: %v", i, came, err)
		}
		if came {
			joined++
		}
		_, err = s.Client.Txn(ctx).
			Then(clientv3.OpDelete(s.Nodes.minimumKey()), clientv3.OpDelete(s.Nodes.Key(name))).
			Commit()
		must(t, err)
	}
	stop()
	at.Wait()
	t.Logf("the old pullet came first in %d of 100 rounds", joined)
}
