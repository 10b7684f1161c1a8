package datastore

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/tier"
	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/state"
)

// keeperAt is a client of a member with the rights of its keeper.
func (c *cluster) keeperAt(name string) *clientv3.Client {
	c.Helper()
	credentials, err := os.ReadFile(c.hosts[name].file(keeperFile))
	c.must(err)
	client, err := c.connectTo(c.hosts[name].Endpoint(), credentials)
	c.must(err)
	c.Cleanup(func() { _ = client.Close() })
	return client
}

// listens does what a member that was alone does first, up to the step at which it is killed.
func (c *cluster) listens(name string, file bool) {
	c.Helper()
	h, client := c.hosts[name], c.keeperAt(name)
	all, err := client.MemberList(c.Context())
	c.must(err)
	_, err = client.MemberUpdate(c.Context(), all.Members[0].ID, []string{h.peerURL()})
	c.must(err)
	if file {
		c.must(os.WriteFile(h.file(clusterFile), []byte(name+"="+h.peerURL()+"\n"), 0o600))
	}
	c.kill(name)
	c.start(name)
	c.until(name+" serves again", func() bool {
		_, err := os.Stat(h.DoorSocket())
		return err == nil
	})
}

// TestKilledBeforeItListens: the first member is killed when etcd knows at which address it will listen, and the file
// does not.
func TestKilledBeforeItListens(t *testing.T) {
	t.Parallel()
	tier.Long(t, "three members come one behind the other")
	c := clustered(t, "db2", "db3")
	c.listens("db1", false)
	c.wants("db1", wanted(1, 3, "db1", "db2", "db3"))
	c.becomes("db1 db2 db3")
	c.keeps()
}

// TestKilledBetweenSteps: the leader is killed behind the change of the members, and before the record of it: a host
// was added and not told, another one was removed and is told and moved away from all the same.
func TestKilledBetweenSteps(t *testing.T) {
	t.Parallel()
	tier.Long(t, "three members come one behind the other")
	c := clustered(t, "db2", "db3", "db4")
	c.listens("db1", true)
	keeper := c.keeperAt("db1")
	_, err := keeper.MemberAddAsLearner(t.Context(), []string{c.hosts["db2"].peerURL()})
	c.must(err)
	own, err := os.ReadFile(c.file(authorityFile))
	c.must(err)
	gone := c.hosts["db3"].sealed(c, string(own), "db9=https://127.0.0.1:1,db3="+c.hosts["db3"].peerURL())
	gone.Member = 12345
	for _, op := range []clientv3.Op{
		state.Put("/pullet/prod/datastore/handed/db3", &gone),
		clientv3.OpPut("/pullet/prod/datastore/moving/db3", ""),
	} {
		_, err := keeper.Do(t.Context(), op)
		c.must(err)
	}
	c.hosts["db4"].accepts(c, "db1="+c.hosts["db1"].peerURL()+",db9=https://127.0.0.1:1,db4="+c.hosts["db4"].peerURL())
	c.start("db4")
	c.wants("db1", wanted(1, 3, "db1", "db3", "db4"))
	c.becomes("db1 db3 db4")
	c.keeps()
}

// accepts has a host place that it is a member of these.
func (h *carrier) accepts(c *cluster, members string) {
	c.Helper()
	a, err := os.ReadFile(c.file(authorityFile))
	c.must(err)
	c.must(h.Accept(h.sealed(c, string(a), members), c.bundle))
}

// sealed is what a host gets as one of these members.
func (h *carrier) sealed(c *cluster, a, members string) state.Handed {
	c.Helper()
	offer, err := h.Offer(h.Addresses)
	c.must(err)
	to, err := trust.ParseRecipient(offer.Recipient)
	c.must(err)
	text, err := json.Marshal(Membership{Authority: a, Cluster: members})
	c.must(err)
	sealed, err := trust.SealBinary(text, []trust.Recipient{to})
	c.must(err)
	return state.Handed{Sealed: sealed}
}

// TestAcceptForgets: a host that got a next authority, never began, and is taken again later, keeps nothing of that.
func TestAcceptForgets(t *testing.T) {
	t.Parallel()
	c := &cluster{fleet: made(t)}
	h := &carrier{Candidate: Candidate{Config{Dir: filepath.Join(t.TempDir(), "d"), Addresses: c.Addresses}}}
	c.must(os.MkdirAll(h.Dir, 0o700))
	former, err := authority.Create(fleetName, time.Now())
	c.must(err)
	c.must(os.WriteFile(h.file(nextFile), former.Encode(), 0o600))
	h.accepts(c, "x")
	k, err := readKeys(h.Config, fleetName)
	c.must(err)
	if k.next != nil || h.has(nextFile) {
		t.Error("it expects an authority from before")
	}
}

// keeps fails unless the record has all who joined, and takes writes.
func (c *cluster) keeps() {
	c.Helper()
	all, err := c.members(c.Context())
	c.must(err)
	admin := c.client("admin")
	admin.SetEndpoints(all.endpoints...)
	_, err = admin.Put(c.Context(), "/pullet/prod/hold/kept", "")
	c.must(err)
	got, err := admin.Get(c.Context(), "/pullet/prod/identity/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	c.must(err)
	if int(got.Count) != len(c.credentials) {
		c.Errorf("%d of %d are on record", got.Count, len(c.credentials))
	}
}

// TestPutAsideHalfDone: a host that is killed while it puts the record aside goes on with the next start, or when it is
// to carry the datastore again. Of what it put aside before nothing stays.
func TestPutAsideHalfDone(t *testing.T) {
	t.Parallel()
	for _, again := range []func(f *fleet) error{
		func(f *fleet) error { return Run(t.Context(), f.Options) },
		func(f *fleet) error { return leaving{f.Config}.finish() },
	} {
		for moved := range 3 {
			f := made(t)
			f.must(os.MkdirAll(filepath.Join(f.Dir, memberDir, "member"), 0o700))
			f.must(os.MkdirAll(f.file(removedPrefix+"20260101T120000.000Z"), 0o700))
			f.must(os.Mkdir(f.file(leavingDir), 0o700))
			for _, name := range []string{memberDir, authorityFile}[:moved] {
				f.must(os.Rename(f.file(name), f.file(filepath.Join(leavingDir, name))))
			}
			f.must(again(f))
			aside, err := filepath.Glob(f.file(removedPrefix + "*"))
			f.must(err)
			if len(aside) != 1 || (leaving{f.Config}).begun() || f.Carries() {
				t.Error(moved, aside)
			}
			for _, name := range []string{memberDir, authorityFile, serverFile, keeperFile, crlFile} {
				_, err := os.Stat(filepath.Join(aside[0], name))
				f.must(err)
			}
		}
	}
}

// TestAcceptRefuses: what a host cannot use as a member it does not place.
func TestAcceptRefuses(t *testing.T) {
	t.Parallel()
	c := &cluster{fleet: made(t)}
	own, err := os.ReadFile(c.file(authorityFile))
	c.must(err)
	other, err := authority.Create(fleetName, time.Now())
	c.must(err)
	host := func() *carrier {
		return &carrier{Candidate: Candidate{Config{Dir: filepath.Join(t.TempDir(), "d"), Addresses: c.Addresses}}}
	}
	for _, one := range []struct {
		what, words string
		of          func(h *carrier) state.Handed
	}{
		{"another fleet of the same name", "what this host got to carry the datastore: this host does not believe its authority: " +
			other.Fingerprint(), func(h *carrier) state.Handed { return h.sealed(c, string(other.Encode()), "x") }},
		{"no authority", "what this host got to carry the datastore: ", func(h *carrier) state.Handed {
			return h.sealed(c, "", "x")
		}},
		{"for another host", "what this host got to carry the datastore: ", func(*carrier) state.Handed {
			return host().sealed(c, string(own), "x")
		}},
		{"garbage", "what this host got to carry the datastore: ", func(*carrier) state.Handed {
			return state.Handed{Sealed: []byte("x")}
		}},
		{"a record is there", "there is a record in ", func(h *carrier) state.Handed {
			dir := filepath.Join(h.Dir, memberDir, "member", "wal")
			c.must(os.MkdirAll(dir, 0o700))
			c.must(os.WriteFile(filepath.Join(dir, "0.wal"), nil, 0o600))
			return h.sealed(c, string(own), "x")
		}},
	} {
		h := host()
		wantError(t, one.what, h.Accept(one.of(h), c.bundle), one.words)
		left, err := os.ReadDir(h.Dir)
		c.must(err)
		if slices.ContainsFunc(left, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".pem") }) || h.Carries() {
			t.Error(one.what, left)
		}
	}
}
