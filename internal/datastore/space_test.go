package datastore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/render"
)

// TestNextStep: what is done about the space, and in which order.
func TestNextStep(t *testing.T) {
	now := time.Now()
	const mib, quota = 1 << 20, 2 << 30
	past := func(d time.Duration) time.Time { return now.Add(-d) }
	for what, c := range map[string]struct {
		space
		cared
		want step
	}{
		"empty":                             {space{mib, mib, quota, false}, cared{}, rest},
		"half of it is used":                {space{quota / 2, quota / 2, quota, false}, cared{}, rest},
		"much is free":                      {space{200 * mib, 90 * mib, quota, false}, cared{}, defragment},
		"much is free, and was before":      {space{200 * mib, 90 * mib, quota, false}, cared{defragmented: past(50 * time.Minute)}, rest},
		"much is free, and was long before": {space{200 * mib, 90 * mib, quota, false}, cared{defragmented: past(2 * time.Hour)}, defragment},
		"much of little is free":            {space{90 * mib, mib, quota, false}, cared{}, rest},
		"nearly full":                       {space{quota / 10 * 9, quota / 10 * 8, quota, false}, cared{told: now}, warn},
		"nearly full, and told":             {space{quota / 10 * 9, quota / 10 * 8, quota, false}, cared{warned: past(50 * time.Minute)}, rest},
		"full":                              {space{quota, quota, quota, true}, cared{}, tidy},
		"full, with free space":             {space{quota, quota / 2, quota, true}, cared{tidied: true}, defragment},
		"full, just after another one": {
			space{quota, quota / 2, quota, true}, cared{tidied: true, defragmented: past(time.Minute)}, defragment,
		},
		"full until now":             {space{quota / 2, quota / 2, quota, true}, cared{tidied: true, shrunk: true}, disarm},
		"a larger quota":             {space{quota, quota, 2 * quota, true}, cared{tidied: true, shrunk: true}, disarm},
		"full all the same":          {space{quota, quota, quota, true}, cared{tidied: true, shrunk: true, warned: now}, tell},
		"nothing seems to be free":   {space{quota, quota, quota, true}, cared{tidied: true}, defragment},
		"nothing is free":            {space{quota, quota, quota, true}, cared{tidied: true, defragmented: past(time.Minute)}, tell},
		"too close to the quota":     {space{quota / 100 * 95, quota / 100 * 95, quota, true}, cared{tidied: true, shrunk: true}, tell},
		"no smaller by a second one": {space{quota, quota / 2, quota, true}, cared{tidied: true, shrunk: true, told: now}, rest},
		"full, and told":             {space{quota, quota, quota, true}, cared{tidied: true, shrunk: true, told: past(9 * time.Minute)}, rest},
		"full for long":              {space{quota, quota, quota, true}, cared{tidied: true, shrunk: true, told: past(11 * time.Minute)}, tell},
	} {
		if got := c.next(c.space, now); got != c.want {
			t.Errorf("%s: step %d, and should be %d", what, got, c.want)
		}
	}
}

// leastRoom makes a datastore with the least quota, and its keeper, who does nothing until a test says so.
func leastRoom(t *testing.T) (*fleet, *keeper, *bytes.Buffer) {
	t.Helper()
	f, said := made(t), &bytes.Buffer{}
	f.Quota, f.Log.Logger.Out = leastQuota, said
	k := f.keeps()
	f.rounds(k)
	return f, k, said
}

// keeps opens a datastore with a keeper who does nothing until a test says so.
func (f *fleet) keeps() *keeper {
	f.Helper()
	k := &keeper{Options: f.Options, guard: newGuard()}
	var err error
	k.keys, err = readKeys(f.Config, fleetName)
	f.must(err)
	f.must(k.open(f.Context()))
	f.end = func() { f.must(k.close()); f.end = func() {} }
	f.Cleanup(func() { f.end() })
	return k
}

// rounds has the keeper do what there is to do.
func (f *fleet) rounds(k *keeper) {
	f.Helper()
	_, err := k.round(f.Context())
	f.must(err)
}

// fills writes records of a MiB until the datastore is full. Their keys are made of numbers.
func (f *fleet) fills(c *clientv3.Client, key func(i int) string) {
	f.Helper()
	for i := range 1000 {
		if _, err := c.Put(f.Context(), key(i), strings.Repeat("x", 1<<20)); full(f.T, err) {
			return
		}
	}
	f.Fatal("the datastore is never full")
}

// fillsForGood writes records until the datastore stays full whatever its keeper does.
func (f *fleet) fillsForGood(k *keeper, c *clientv3.Client, prefix string) {
	f.Helper()
	for i := range 10 {
		f.fills(c, func(n int) string { return fmt.Sprintf("%s%d/%d", prefix, i, n) })
		f.rounds(k)
		if k.member.space().full {
			return
		}
	}
	f.Fatal("the datastore does not stay full")
}

func full(t *testing.T, err error) bool {
	t.Helper()
	if err != nil && !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatal(err)
	}
	return err != nil
}

func (f *fleet) wantFull(what string, c *clientv3.Client, want bool) {
	f.Helper()
	_, err := c.Put(f.Context(), "/pullet/prod/bell", "")
	if got := full(f.T, err); got != want {
		f.Errorf("%s: full is %v", what, got)
	}
}

// TestHistoryFills: what a host wrote again and again goes by itself, and so does the alarm.
func TestHistoryFills(t *testing.T) {
	t.Parallel()
	f, k, said := leastRoom(t)
	db1, admin := f.client("db1"), f.client("admin")
	f.fills(db1, func(int) string { return "/pullet/prod/service/db1/web" })
	f.wantFull("written again and again", admin, true)
	f.rounds(k)
	f.wantFull("after a round", admin, false)
	if s := k.member.space(); s.full || s.file > s.quota/2 {
		t.Errorf("%+v", s)
	}
	if text := said.String(); !strings.Contains(text, "the datastore was full, and takes writes again") {
		t.Error(text)
	}
}

// TestShutOutWhileFull: a host fills the datastore with records that count. It is said who, it is shut out at once, and
// the others write again.
func TestShutOutWhileFull(t *testing.T) {
	t.Parallel()
	f, k, said := leastRoom(t)
	db1, admin := f.client("db1"), f.client("admin")
	register(f, f.store("admin"), "db1")
	f.fillsForGood(k, db1, "/pullet/prod/service/db1/below/what/pullet/writes/")
	f.wantFull("after a round", admin, true)
	if text := said.String(); !strings.Contains(text, "level=error msg=\"the datastore is full and takes no writes: ") ||
		!strings.Contains(text, "; records that one alone may write: db1 ") ||
		!strings.Contains(text, "; who wrote the most since the datastore started: db1 ") {
		t.Error(text)
	}
	_, err := k.shut(t.Context(), "nobody", "admin")
	wantError(t, "nobody", err, "nobody in the fleet has the name nobody: pullet fleet list")

	out, err := k.shut(t.Context(), "db1", "admin")
	f.must(err)
	if out.Removed < 10 {
		t.Errorf("%d records are removed", out.Removed)
	}
	_, err = db1.Put(t.Context(), "/pullet/prod/bell", "")
	wantError(t, "on its connection", err, "permission denied")
	f.wantFull("shut out", admin, false)
	f.rounds(k)
	c, err := k.store.Identities.All(t.Context())
	f.must(err)
	if _, there := c.Identities["db1"]; there || len(c.Revoked) != 1 || !c.Gone["db1"] || c.Revoking["db1"] {
		t.Errorf("%+v", c)
	}
	clear(c.Revoking)
	_, err = notes{k.Config}.mark(c)
	f.must(err)
	if len(c.Revoking) != 0 {
		t.Error("still noted: ", c.Revoking)
	}
	f.wantFull("and later", admin, false)
}

// TestShutOutStays: where what several may write fills the datastore, nothing can be recorded. Who was shut out stays
// out, also when the datastore starts anew; with a larger quota it is recorded.
func TestShutOutStays(t *testing.T) {
	t.Parallel()
	f, k, _ := leastRoom(t)
	f.fillsForGood(k, f.client("db1"), "/pullet/prod/blob/")
	_, err := k.shut(t.Context(), "db1", "admin")
	wantError(t, "no room", err, "db1 is shut out, and 0 records of it are removed; the keeper records that when there is room (etcdserver: mvcc: database space exceeded): ")
	wantError(t, "no room", err, "; records that several may write: blob ")
	wantError(t, "a file that is damaged", f.damages(k), "shut.json is damaged: ")
	for _, quota := range []render.Size{leastQuota, 2 * leastQuota} {
		f.end()
		f.Quota = quota
		k = f.keeps()
		if _, err := k.round(t.Context()); (err != nil) != (quota == leastQuota) {
			t.Errorf("with %s: %v", quota, err)
		}
		users, err := k.users.list(t.Context())
		f.must(err)
		if slices.Contains(users, "db1") {
			t.Errorf("with %s db1 is in again", quota)
		}
	}
	f.wantFull("with a larger quota", f.client("admin"), false)
	c, err := k.store.Identities.All(t.Context())
	f.must(err)
	if _, there := c.Identities["db1"]; there || len(c.Revoked) != 1 {
		t.Errorf("it is not recorded that db1 is out: %+v", c)
	}
}

// damages is the error of the keeper while the file that says who is out cannot be read: nobody is let in meanwhile.
func (f *fleet) damages(k *keeper) error {
	f.Helper()
	file := k.file(shutFile)
	before, err := os.ReadFile(file)
	f.must(err)
	f.must(os.WriteFile(file, []byte("{"), 0o600))
	_, err = k.round(f.Context())
	f.must(os.WriteFile(file, before, 0o600))
	return err
}
