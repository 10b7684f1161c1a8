package datastore

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/proto"

	"github.com/pullet/pullet/internal/tier"
	"github.com/pullet/pullet/state"
)

// TestWrongRecord: which of the members is wrong, from the hashes of what they have.
func TestWrongRecord(t *testing.T) {
	for _, c := range []struct {
		voters int
		own    uint32
		others map[string]uint32
		unlike string
		wrong  bool
	}{
		{1, 1, nil, "[]", false},
		{3, 1, map[string]uint32{"b": 1, "c": 1}, "[]", false},
		{3, 1, map[string]uint32{"b": 1, "c": 2}, "[c]", false},
		{3, 2, map[string]uint32{"b": 1, "c": 1}, "[b c]", true},
		{3, 2, map[string]uint32{"b": 1}, "[b]", false},           // who is wrong is not known
		{3, 3, map[string]uint32{"b": 1, "c": 2}, "[b c]", false}, // nobody knows
		{2, 2, map[string]uint32{"b": 1}, "[b]", false},
		{5, 2, map[string]uint32{"b": 1, "c": 1}, "[b c]", false}, // two of five
		{5, 2, map[string]uint32{"b": 1, "c": 1, "d": 1}, "[b c d]", true},
		{5, 2, map[string]uint32{"b": 1, "c": 1, "d": 1, "e": 2}, "[b c d]", true},
	} {
		r := records{voters: c.voters, own: c.own, others: c.others}
		if got := fmt.Sprint(r.unlike()); got != c.unlike || r.wrong() != c.wrong {
			t.Errorf("%+v: unlike %s, wrong %t", c, got, r.wrong())
		}
	}
}

// spoil kills a member and changes a value in its files, as a disk does that lies.
func (c *cluster) spoil(name, key, value, other string) {
	c.Helper()
	c.until(name+" has the value", func() bool { return c.valueAt(name, key) == value })
	c.flushed(name) // what is not in the file comes anew from the log
	c.kill(name)
	db, err := bbolt.Open(memberFiles(c.hosts[name].file(memberDir)).record(), 0o600, nil)
	c.must(err)
	spoiled := 0
	c.must(db.Update(func(tx *bbolt.Tx) error {
		keys := tx.Bucket(schema.Key.Name())
		return keys.ForEach(func(revision, text []byte) error {
			var kv mvccpb.KeyValue
			if err := proto.Unmarshal(text, &kv); err != nil {
				return err
			}
			if string(kv.Key) != key || string(kv.Value) != value {
				return nil
			}
			spoiled++
			kv.Value = []byte(other)
			text, err := proto.Marshal(&kv)
			if err != nil {
				return err
			}
			return keys.Put(bytes.Clone(revision), text)
		})
	}))
	c.must(db.Close())
	if spoiled != 1 {
		c.Fatal("values that were spoiled: ", spoiled)
	}
}

// valueAt is a value as one member has it, which need not be as the others have it.
func (c *cluster) valueAt(name, key string) string {
	c.Helper()
	got, err := c.keeperAt(name).Get(c.Context(), key)
	c.must(err)
	if len(got.Kvs) != 1 {
		return ""
	}
	return string(got.Kvs[0].Value)
}

// TestSpoiledRecord: a member whose disk lies ends as soon as it compares its record with those of the others. They go
// on, and the host comes again with the right record.
func TestSpoiledRecord(t *testing.T) {
	t.Parallel()
	tier.Long(t, "members come, go and come again")
	c := threeMembers(t)
	const key = "/pullet/" + fleetName + "/hold/kept"
	_, err := c.keeperAt("db1").Put(t.Context(), key, "right")
	c.must(err)
	c.spoil("db3", key, "right", "wrong")
	c.start("db3")
	c.logs("db3", "this host carries the datastore no more: its record at revision ")
	c.logs("db3", " is not that of db1 and db2: look at its disk and memory")
	c.logs(c.leader(), `members: remove" node=db3`)
	c.becomes("db1 db2 db3")
	c.until("db3 has the right value", func() bool { return c.valueAt("db3", key) == "right" })
}

// TestRecordsDiffer: of two members of three that answer and differ nobody knows which is right. Both say so, and
// serve.
func TestRecordsDiffer(t *testing.T) {
	t.Parallel()
	tier.Long(t, "three members come one behind the other")
	c := threeMembers(t, "db4")
	const key = "/pullet/" + fleetName + "/hold/kept"
	_, err := c.keeperAt("db1").Put(t.Context(), key, "right")
	c.must(err)
	c.spoil("db3", key, "right", "wrong")
	c.kill("db2")
	c.start("db3")
	c.logs("db3", "this record differs from that of db1")
	store := c.store("admin")
	var d state.Datastore
	c.until("it is on record", func() bool {
		d, err = store.Datastores.All(context.Background())
		return err == nil && len(d.Reach["db3"].Unlike) == 1
	})
	if got := Unlike(d); got != "the record of db3 differs from that of db1, and no majority says which is right" {
		t.Error(got)
	}
	c.until("no further member comes", func() bool {
		d, err = store.Datastores.All(context.Background())
		return err == nil && strings.HasSuffix(d.Steps.Waits, ": no further member comes, which would get one of them")
	})
}
