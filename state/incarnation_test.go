package state

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// etcdOf is an etcd that hosts share, in a directory, as one of them sees it.
type etcdOf struct {
	t      *testing.T
	dir    string
	server *Store
	node   *Store
}

func (e *etcdOf) start() {
	e.t.Helper()
	var err error
	e.server, err = Open(ctx, Config{Fleet: "f", Dir: e.dir})
	must(e.t, err)
	e.node, err = Open(ctx, Config{Fleet: "f", Endpoints: e.server.endpoints})
	must(e.t, err)
	e.node.endpoints = []string{"https://etcd.example.org:2379"} // one behind a socket serves a single host
}

func (e *etcdOf) stop() {
	e.t.Helper()
	must(e.t, e.node.Close(), e.server.Close())
}

// restores brings back what etcd had at a backup, as "etcdctl snapshot restore" does.
func (e *etcdOf) restores(backup, token string) {
	e.t.Helper()
	peer := socketURL(e.dir, "peer")
	must(e.t, os.RemoveAll(filepath.Join(e.dir, "member")), snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: filepath.Join(backup, "member", "member", "snap", "db"), SkipHashCheck: true, OutputDataDir: filepath.Join(e.dir, "member"),
		Name: "default", PeerURLs: []string{peer.String()}, InitialCluster: "default=" + peer.String(), InitialClusterToken: token,
	}))
	e.start() // once more than etcd itself, as a member in its first life: its term is that of before
	e.stop()
}

// TestIncarnations: a restart of etcd starts the grace time and needs nobody; a snapshot that was restored is
// recognised also where etcd's ids and term are those of before, and waits for an operator. A copy of etcd's files
// looks like a restart.
func TestIncarnations(t *testing.T) {
	const sameToken = "etcd-cluster" // etcd's default
	for name, c := range map[string]struct {
		change func(e *etcdOf, backup string)
		looks  bool // as before by its ids and its term
		grace  bool
		doubt  string
	}{
		"nothing":          {looks: true},
		"restart":          {change: func(*etcdOf, string) {}, grace: true},
		"copy of files":    {change: func(e *etcdOf, backup string) { must(e.t, os.RemoveAll(e.dir), os.CopyFS(e.dir, os.DirFS(backup))) }, grace: true},
		"snapshot":         {change: func(e *etcdOf, backup string) { e.restores(backup, sameToken) }, looks: true, grace: true, doubt: "restored from a snapshot: etcd's raft log began anew"},
		"other ids, token": {change: func(e *etcdOf, backup string) { e.restores(backup, "another") }, grace: true, doubt: "restored or replaced: etcd's cluster id was "},
	} {
		t.Run(name, func(t *testing.T) {
			short, e := usedEtcd(t)
			was, seen, err := get[Incarnation](ctx, e.node, e.node.Doubts.IncarnationKey())
			if must(t, err); seen == 0 || was.Lead == nil {
				t.Fatalf("the first registration recorded %+v at %d", was, seen)
			}
			if c.change != nil {
				e.stop()
				backup := filepath.Join(short, "backup")
				must(t, os.CopyFS(backup, os.DirFS(e.dir)))
				c.change(e, backup)
				e.start()
			}
			defer e.stop()
			is, err := e.node.Doubts.Incarnation(ctx)
			if must(t, err); is.Continues(was) != c.looks {
				t.Errorf("it was %+v and is %+v", was, is)
			}
			must(t, e.node.Doubts.Recognise(ctx, "n2", was, seen))
			e.holds(ctx, c.grace, c.doubt)
		})
	}
}

// holds checks what keeps everybody from being admitted.
func (e *etcdOf) holds(ctx context.Context, grace bool, doubt string) {
	e.t.Helper()
	until, at, err := get[Moment](ctx, e.node, e.node.Doubts.GraceKey())
	must(e.t, err)
	word, _, err := get[Switch](ctx, e.node, e.node.Doubts.Key())
	must(e.t, err)
	if (at != 0) != grace || grace && until.IsZero() {
		e.t.Errorf("grace until %s, at revision %d", until, at)
	}
	if (word.Reason != "") != (doubt != "") || !strings.Contains(word.Reason, doubt) {
		e.t.Errorf("doubt: %q", word.Reason)
	}
	recorded, _, err := get[Incarnation](ctx, e.node, e.node.Doubts.IncarnationKey())
	must(e.t, err)
	is, err := e.node.Doubts.Incarnation(ctx)
	if must(e.t, err); !is.Continues(recorded) {
		e.t.Errorf("recorded is %+v, it is %+v", recorded, is)
	}
}

// TestReplaced: a record was replaced where the cluster is another one, or the raft log began anew: its lead fell by
// more than looks differ, or it is shorter than the revision, which an etcd that was not restored never shows.
func TestReplaced(t *testing.T) {
	with := func(cluster uint64, lead int64) Incarnation {
		return Incarnation{Cluster: cluster, Term: 2, Lead: &lead}
	}
	for _, c := range []struct {
		was, is  Incarnation
		replaced bool
	}{
		{with(1, 4), with(1, 4), false},
		{with(1, 40), with(1, 40-leadSlack), false},
		{with(1, 40), with(1, 39-leadSlack), true},
		{with(1, 4), with(1, 0), false},
		{with(1, 4), with(1, -8), true},   // of a young etcd
		{with(1, -8), with(1, -9), false}, // it was restored before, and accepted
		{with(1, 4), with(2, 4), true},
		{with(1, 4), Incarnation{Cluster: 1, Term: 2}, false},
		{Incarnation{}, with(1, -8), false},
	} {
		if replaced := c.is.Replaced(c.was) != ""; replaced != c.replaced {
			t.Errorf("%+v after %+v: %t", c.is, c.was, replaced)
		}
	}
}

// TestRenewalsNoticeARestore: a node at work learns at its next renewal that a snapshot was restored, also where its
// lease is in the snapshot and etcd's ids and term are those of before.
func TestRenewalsNoticeARestore(t *testing.T) {
	short, err := os.MkdirTemp("", "etcd")
	must(t, err)
	defer os.RemoveAll(short)
	e := &etcdOf{t: t, dir: filepath.Join(short, "a")}
	e.start()
	me := Alive{Owner: "n1", Lasting: true}
	before, err := e.node.Presences.Register(ctx, Node{Name: "n1"}, me, nil, 5*time.Second)
	must(t, err)
	backup := filepath.Join(short, "backup")
	e.save(backup)
	p, err := e.node.Presences.Register(ctx, Node{Name: "n1"}, me, nil, 5*time.Second)
	must(t, err)
	e.stop()
	e.restores(backup, "etcd-cluster")
	e.start()
	defer e.stop()
	is, err := e.node.Doubts.Incarnation(ctx)
	if must(t, err); p.Lease != before.Lease || !is.Continues(p.Incarnation) {
		t.Fatalf("this is another case: lease %x and %x, %+v and %+v", before.Lease, p.Lease, p.Incarnation, is)
	}
	renewing, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	doubted := false
	e.node.Presences.KeepAlive(renewing, p, func() bool { return true }, func(doubtful bool) {
		if doubtful {
			doubted = true
			cancel()
		}
	})
	if <-renewing.Done(); !doubted {
		t.Error("it noticed nothing within a minute")
	}
}

// save is "etcdctl snapshot save", to where restores finds it.
func (e *etcdOf) save(backup string) {
	e.t.Helper()
	dir := filepath.Join(backup, "member", "member", "snap")
	must(e.t, os.MkdirAll(dir, 0o700))
	from, err := e.node.Client.Snapshot(ctx)
	must(e.t, err)
	defer from.Close()
	to, err := os.Create(filepath.Join(dir, "db"))
	must(e.t, err)
	_, err = io.Copy(to, from)
	must(e.t, err, to.Close())
}

// usedEtcd is an etcd at which a node registered, and whose raft log has grown since, with the directory for it and its
// backups: its path is short, as those of sockets have to be.
func usedEtcd(t *testing.T) (short string, e *etcdOf) {
	t.Helper()
	short, err := os.MkdirTemp("", "etcd")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(short) }) // an etcd that a failed test leaves may still write
	e = &etcdOf{t: t, dir: filepath.Join(short, "a")}
	e.start()
	_, err = e.node.Presences.Register(ctx, Node{Name: "n1"}, Alive{Owner: "n1"}, nil, time.Minute)
	must(t, err)
	for range 2 * leadSlack {
		_, err := e.node.Client.Put(ctx, e.node.key("x"), "")
		must(t, err)
	}
	return short, e
}

// TestAcceptedOnce: an operator accepts a restored record once, also where only nodes that come later would see in
// etcd's ids that it was restored.
func TestAcceptedOnce(t *testing.T) {
	for _, token := range []string{"etcd-cluster", "another"} {
		short, e := usedEtcd(t)
		backup := filepath.Join(short, "backup")
		e.save(backup)
		e.stop()
		e.restores(backup, token)
		e.start()
		_, err := e.node.Client.Txn(ctx).Then(e.node.Doubts.doubtOp("n1", "its own record went back", time.Time{})).Commit()
		must(t, err)
		must(t, e.node.Doubts.Accept(ctx, "ada"))
		was, seen, err := get[Incarnation](ctx, e.node, e.node.Doubts.IncarnationKey())
		must(t, err)
		must(t, e.node.Doubts.Recognise(ctx, "n2", was, seen))
		e.holds(ctx, false, "")
		e.stop()
	}
}
