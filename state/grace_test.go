package state

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAwaitReports: who is to accept the record waits until hosts at work had the time to report, also where nobody
// looked since etcd restarted or was restored. Where nothing happened nobody waits.
func TestAwaitReports(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *etcdOf, backup string)
		waits  bool
		doubt  string
	}{
		"nothing":       {},
		"copy of files": {func(e *etcdOf, backup string) { must(e.t, os.RemoveAll(e.dir), os.CopyFS(e.dir, os.DirFS(backup))) }, true, ""},
		"snapshot":      {func(e *etcdOf, backup string) { e.restores(backup, "etcd-cluster") }, true, "restored from a snapshot: etcd's raft log began anew"},
	} {
		t.Run(name, func(t *testing.T) {
			short, e := usedEtcd(t)
			e.stop()
			backup := filepath.Join(short, "backup")
			must(t, os.CopyFS(backup, os.DirFS(e.dir)))
			if c.change != nil {
				c.change(e, backup)
			}
			e.start()
			defer e.stop()
			if c.change == nil { // it did restart, and somebody looked
				_, seen, err := get[Incarnation](ctx, e.node, e.node.Doubts.IncarnationKey())
				must(t, err, e.node.Doubts.Recognise(ctx, "n1", Incarnation{}, seen))
				e.reported()
			}
			told := 0
			must(t, AwaitReports(ctx, e.node, "ada", func(until time.Time) {
				told++
				if until.Before(time.Now()) {
					t.Errorf("until %s", until)
				}
				e.holds(ctx, true, c.doubt)
				e.reported()
			}))
			if (told == 1) != c.waits {
				t.Errorf("it was told %d times", told)
			}
			e.holds(ctx, false, c.doubt)
		})
	}
}

// reported ends the grace time.
func (e *etcdOf) reported() {
	e.t.Helper()
	_, err := e.node.Client.Delete(ctx, e.node.Doubts.GraceKey())
	must(e.t, err)
}

// TestDoubtBeginsTheGraceTime: a host that knows better than the record begins the grace time with its doubt, once.
func TestDoubtBeginsTheGraceTime(t *testing.T) {
	_, e := usedEtcd(t)
	defer e.stop()
	must(t, doubt(ctx, e.node, "n1", "it went back", time.Time{}))
	e.holds(ctx, true, "it went back")
	e.reported()
	must(t, doubt(ctx, e.node, "n2", "it went back, too", time.Time{}))
	e.holds(ctx, false, "it went back")
}

// TestDoubtBeginsOneGraceTime: whoever accepts the record after the grace time of a doubt does not wait for another
// one, also where etcd came back with another raft term and nobody else looked.
func TestDoubtBeginsOneGraceTime(t *testing.T) {
	_, e := usedEtcd(t)
	e.stop()
	e.start()
	defer e.stop()
	must(t, doubt(ctx, e.node, "n1", "it went back", time.Time{}))
	e.reported()
	must(t, AwaitReports(ctx, e.node, "ada", func(until time.Time) {
		t.Errorf("a second grace time, until %s", until)
		e.reported()
	}))
	e.holds(ctx, false, "it went back")
}

// TestFirstVersionHasNoGraceTime: a version that an operator starts before any host registered begins the record in
// etcd's incarnation of now: the first host finds it there, and nobody waits.
func TestFirstVersionHasNoGraceTime(t *testing.T) {
	_, e := usedEtcd(t)
	defer e.stop()
	s, err := Open(ctx, Config{Fleet: "new", Endpoints: e.server.endpoints})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	s.endpoints = e.node.endpoints
	must(t, s.Versions.Move(ctx, Version{ID: "v1"}, nil, 0))
	must(t, AwaitReports(ctx, s, "n1", func(until time.Time) {
		t.Errorf("a grace time, until %s", until)
		_, err := s.Client.Delete(ctx, s.Doubts.GraceKey())
		must(t, err)
	}))
}
