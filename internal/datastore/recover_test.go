package datastore

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/tier"
	"github.com/pullet/pullet/state"
)

// recovering is the recovery on a host of a cluster.
func (c *cluster) recovering(name string) Recovering {
	return Recovering{Config: c.hosts[name].Config, Fleet: fleetName, Node: name}
}

// recovered recovers the datastore on a host.
func (c *cluster) recovered(name string) {
	c.Helper()
	aside, err := c.recovering(name).Recover(c.Context(), time.Now())
	c.must(err)
	if _, err := os.Stat(memberFiles(aside).record()); err != nil {
		c.Error("the record of before is gone: ", err)
	}
}

// at is a client of one host.
func (c *cluster) at(name string) *clientv3.Client {
	c.Helper()
	client, err := c.connectTo(c.hosts[name].Endpoint(), c.credentials["admin"])
	c.must(err)
	c.Cleanup(func() { _ = client.Close() })
	return client
}

// puts writes a record within some seconds.
func puts(client *clientv3.Client, key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err := client.Put(ctx, "/pullet/"+fleetName+"/hold/"+key, key)
	return err
}

// holds reports a record at a host, which has to answer.
func (c *cluster) holds(client *clientv3.Client, key string) bool {
	c.Helper()
	var got *clientv3.GetResponse
	c.until("it answers", func() bool {
		ctx, cancel := context.WithTimeout(c.Context(), 2*time.Second)
		defer cancel()
		var err error
		got, err = client.Get(ctx, "/pullet/"+fleetName+"/hold/"+key)
		return err == nil
	})
	return len(got.Kvs) == 1
}

// clusterAt is the cluster that answers.
func (c *cluster) clusterAt(client *clientv3.Client) uint64 {
	c.Helper()
	got, err := client.Get(c.Context(), "/pullet/"+fleetName+"/hold/kept")
	c.must(err)
	return got.Header.ClusterId
}

// leaves waits until a host says that it carries the datastore no more, since another one went on alone.
func (c *cluster) leaves(name string) {
	c.Helper()
	c.until(name+" leaves", func() bool {
		text, err := os.ReadFile(c.hosts[name].log)
		c.must(err)
		return strings.Contains(string(text), "carries the datastore no more: the datastore was recovered on db3 at ")
	})
}

// threeMembers makes a datastore of three members, each of which has on its disk that it is one. Further hosts may
// carry it, too.
func threeMembers(t *testing.T, further ...string) *cluster {
	t.Helper()
	c := clustered(t, append(further, "db2", "db3")...)
	c.wants("db1", wanted(1, 3, append([]string{"db1", "db2", "db3"}, further...)...))
	c.becomes("db1 db2 db3")
	for _, name := range []string{"db1", "db2", "db3"} {
		c.until(name+" serves as a member", func() bool { return puts(c.at(name), "kept") == nil })
	}
	for _, name := range []string{"db1", "db2", "db3"} {
		c.flushed(name) // a member that is killed before knows less of the members
	}
	return c
}

// flushed waits until everything that a member has applied is in its file, which etcd writes every 100 ms.
func (c *cluster) flushed(name string) {
	c.Helper()
	client, record, began := c.at(name), memberFiles(c.hosts[name].file(memberDir)).record(), time.Now()
	c.until(name+" writes its file", func() bool {
		if err := puts(client, "flushed"); err != nil {
			return false
		}
		info, err := os.Stat(record)
		c.must(err)
		return info.ModTime().After(began)
	})
}

// TestRecover: of three members two die, and the third one goes on alone with all that was written. Hosts see another
// cluster. The others come back together, which would be a quorum of the cluster that ended: their record is put aside.
func TestRecover(t *testing.T) {
	t.Parallel()
	c := threeMembers(t, "db4")
	third := c.at("db3")
	before := c.clusterAt(third)
	c.kill("db1")
	c.kill("db2")
	s, err := c.recovering("db3").Survey(t.Context())
	c.must(err)
	if !s.Runs || len(s.Away()) != 2 {
		t.Errorf("db3 runs alone, and the survey has %+v", s)
	}
	_, err = c.recovering("db3").Recover(t.Context(), time.Now())
	wantError(t, "recover while it runs", err,
		"pullet-etcd runs on this host: systemctl stop pullet-etcd, and type it again")
	c.kill("db3")
	c.recovered("db3")
	c.start("db3")
	if !c.holds(third, "kept") {
		t.Error("db3 lost what was written")
	}
	if before == c.clusterAt(third) {
		t.Error("hosts do not see that it is another cluster")
	}
	c.start("db1")
	c.start("db2")
	c.leaves("db1")
	c.leaves("db2")
	c.becomes("db2 db3 db4")
	if !c.holds(c.at("db2"), "kept") {
		t.Error("db2 came back without what was written")
	}
}

// TestRecoverRunning: members that were cut off, and not dead, go on as a quorum of the cluster that ended. When they
// reach the one that went on alone, their record is put aside.
func TestRecoverRunning(t *testing.T) {
	t.Parallel()
	tier.Long(t, "three members come one behind the other")
	c := threeMembers(t, "db4")
	c.kill("db3")
	c.signal("db1", syscall.SIGSTOP)
	c.signal("db2", syscall.SIGSTOP)
	c.recovered("db3")
	c.start("db3")
	c.until("db3 goes on alone", func() bool { return puts(c.at("db3"), "newer") == nil })
	c.signal("db1", syscall.SIGCONT)
	c.signal("db2", syscall.SIGCONT)
	c.leaves("db1")
	c.leaves("db2")
	c.becomes("db2 db3 db4")
	if !c.holds(c.at("db2"), "newer") {
		t.Error("the record of before came back")
	}
}

// TestRecoverTail: what a member has and does not know to count is kept. Others may have had it, and confirmed it.
func TestRecoverTail(t *testing.T) {
	t.Parallel()
	tier.Long(t, "three members come one behind the other")
	c := threeMembers(t)
	first := c.at("db1")
	c.signal("db2", syscall.SIGSTOP)
	c.signal("db3", syscall.SIGSTOP)
	if err := puts(first, "tail"); err == nil {
		t.Fatal("one of three members confirms a write")
	}
	for _, name := range []string{"db1", "db2", "db3"} {
		c.kill(name)
	}
	c.recovered("db1")
	c.start("db1")
	for _, key := range []string{"kept", "tail"} {
		if !c.holds(first, key) {
			t.Errorf("%s is lost", key)
		}
	}
}

// TestRecoverKilled: a recovery that was killed is done again. One that fails puts back what there was.
func TestRecoverKilled(t *testing.T) {
	t.Parallel()
	tier.Long(t, "three members come one behind the other")
	c := threeMembers(t)
	first := c.at("db1")
	for _, name := range []string{"db1", "db2", "db3"} {
		c.kill(name)
	}
	r := c.recovering("db1")
	from, _, err := r.setAside(time.Now())
	c.must(err)
	c.must(os.CopyFS(r.file(workDir), os.DirFS(string(from))))
	o := Options{Config: r.Config, Fleet: fleetName, Node: "db1", Log: c.Log}
	wantError(t, "serve half a recovery", Run(t.Context(), o), "the fleet's record is gone")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Recover(ended, time.Now()); err == nil {
		t.Error("a recovery that was stopped succeeds")
	}
	for _, name := range []string{memberDir, clusterFile} {
		if _, err := os.Stat(r.file(name)); err != nil {
			t.Error("a recovery that failed leaves nothing to start: ", err)
		}
	}
	c.recovered("db1")
	c.start("db1")
	if !c.holds(first, "kept") {
		t.Error("db1 lost what was written")
	}
}

// TestRecoverRefuses: the members that are there say what to do instead.
func TestRecoverRefuses(t *testing.T) {
	t.Parallel()
	here := Survivor{Node: "db1", Here: true, Term: 5, Index: 100}
	away, answers := Survivor{Node: "db2"}, Survivor{Node: "db3", Answers: true, Term: 5, Index: 100}
	with := func(s Survivor, change func(*Survivor)) Survivor {
		change(&s)
		return s
	}
	more := with(answers, func(s *Survivor) { s.Index++ })
	newer := with(answers, func(s *Survivor) { s.Term, s.Index = 6, 1 })
	for _, c := range []struct {
		what    string
		members []Survivor
		runs    bool
		want    string
	}{
		{"a quorum answers", []Survivor{here, away, answers}, false,
			"2 of 3 members are there, with this host, which is enough, and nothing is lost: start pullet-etcd on all of " +
				"them, and see pullet datastore status; where they do not find each other, look at their peer ports"},
		{"the only member", []Survivor{here}, false,
			"this host is the only member, and nothing is lost: systemctl start pullet-etcd"},
		{"removed", []Survivor{away, away}, false,
			"this host is no member of the datastore any more: the others removed it"},
		{"a learner", []Survivor{with(here, func(s *Survivor) { s.Learner = true }), away}, false,
			"this host was to become a member, and counts for none yet: recover the datastore on another one, or restore a " +
				"backup (docs/datastore.md)"},
		{"another one goes on", []Survivor{here, away, with(answers, func(s *Survivor) { s.Elsewhere = true })}, false,
			"db3 goes on already, as another datastore: pullet datastore status; start pullet-etcd on this host, too: it puts " +
				"its record aside when it was recovered there"},
		{"more entries", []Survivor{here, away, away, away, more}, false,
			"db3 has more of the record than this host: type it there; or lose the rest with --force"},
		{"a later term", []Survivor{here, away, away, away, newer}, false,
			"db3 has more of the record than this host: type it there; or lose the rest with --force"},
		{"it runs", []Survivor{here, away, away}, true,
			"pullet-etcd runs on this host: systemctl stop pullet-etcd, and type it again"},
		{"as much elsewhere", []Survivor{here, away, away, away, answers}, false, ""},
		{"all others away", []Survivor{here, away, away}, false, ""},
	} {
		s := Survey{Members: c.members, Runs: c.runs}
		text := ""
		if err := (Recovering{}).Check(s); err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("%s: it says %q, and has to say %q", c.what, text, c.want)
		}
	}
	if err := (Recovering{Force: true}).Check(Survey{Members: []Survivor{here, away, away, away, more}}); err != nil {
		t.Error("with --force: ", err)
	}
}

// TestRecoveries: the record says which clusters ended, once each, and takes back what hosts got that were to become
// members of them.
func TestRecoveries(t *testing.T) {
	t.Parallel()
	f := created(t)
	k := f.keeperStore()
	f.must(k.Datastores.Hand(t.Context(), "db2", state.Handed{Member: 1, Sealed: []byte("x")}))
	for range 2 {
		f.must(k.Datastores.Recovered(t.Context(), state.Recovery{Cluster: 7, Node: "db1", At: time.Now().UTC()}))
	}
	all, err := k.Datastores.Recoveries(t.Context())
	f.must(err)
	if r, ended := all.Of(7); !ended || r.Node != "db1" || len(all.Recoveries) != 1 {
		t.Error(all)
	}
	if _, ended := all.Of(8); ended {
		t.Error("a cluster ended that nobody knows")
	}
	if h, err := k.Datastores.HandedTo(t.Context(), "db2"); err != nil || h != nil {
		t.Error(h, err)
	}
}

// TestRecoverLiar: a server of another authority at the address of a member says nothing, whatever its record has.
func TestRecoverLiar(t *testing.T) {
	t.Parallel()
	f, liar := created(t), created(t)
	k := &lives{Options: f.Options}
	k.now.Store(&life{7, 2, []otherMember{{1, liar.Endpoint()}}})
	recovery := state.Recovery{Cluster: 7, Node: "db2", At: time.Now().UTC()}
	f.must(liar.keeperStore().Datastores.Recovered(t.Context(), recovery))
	f.must(k.ended(t.Context(), true))
	own := f.keeperStore()
	k.now.Store(&life{7, 2, []otherMember{{1, f.Endpoint()}}})
	f.must(k.ended(t.Context(), true)) // another cluster, which did not go on from this one
	f.must(own.Datastores.Recovered(t.Context(), recovery))
	wantError(t, "another member went on", k.ended(t.Context(), true), "the datastore was recovered on db2 at ")
}

// TestRestoreEndsMembers: a backup is restored on one of three hosts. The others come back with what they kept, which
// would be a quorum of the cluster that was lost: their record is put aside.
func TestRestoreEndsMembers(t *testing.T) {
	t.Parallel()
	tier.Long(t, "three members come one behind the other")
	c := threeMembers(t)
	third := c.at("db3")
	before := c.clusterAt(third)
	dir := filepath.Join(t.TempDir(), "backups")
	made, err := Backup(t.Context(), c.hosts["db3"].Config, fleetName, dir, time.Now())
	c.must(err)
	for _, name := range []string{"db1", "db2", "db3"} {
		c.kill(name)
	}
	c.must(os.RemoveAll(c.hosts["db3"].file(memberDir)))
	_, err = Restoring{
		Config: c.hosts["db3"].Config, Fleet: fleetName, Node: "db3", From: filepath.Join(dir, made.Name), Keys: noKeys,
	}.Restore(time.Now())
	c.must(err)
	c.start("db3")
	if !c.holds(third, "kept") || before == c.clusterAt(third) {
		t.Error("the record was not restored as another cluster")
	}
	c.start("db1")
	c.start("db2")
	c.leaves("db1")
	c.leaves("db2")
}
