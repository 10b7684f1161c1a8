package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// history is all that ever happened to the fleet's keys, by revision. Nothing was compacted.
func (f *fleet) history() [][]*clientv3.Event {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	end, err := f.client.Put(ctx, "/end", "")
	if err != nil {
		f.t.Fatal(err)
	}
	text, err := os.Create(filepath.Join(f.dir, "history")) // for people: one line for each change
	if err != nil {
		f.t.Fatal(err)
	}
	defer text.Close()
	var out [][]*clientv3.Event
	for got := range f.client.Watch(ctx, "/", clientv3.WithPrefix(), clientv3.WithRev(1)) {
		if got.Err() != nil {
			f.t.Fatalf("the history of etcd: %v", got.Err())
		}
		for _, e := range got.Events {
			fmt.Fprintf(text, "%d %s %s %s\n", e.Kv.ModRevision, e.Type, e.Kv.Key, e.Kv.Value)
			if n := len(out); n == 0 || out[n-1][0].Kv.ModRevision != e.Kv.ModRevision {
				out = append(out, nil)
			}
			out[len(out)-1] = append(out[len(out)-1], e)
			if e.Kv.ModRevision == end.Header.Revision {
				return out[:len(out)-1]
			}
		}
	}
	f.t.Fatalf("the history of etcd ends before revision %d", end.Header.Revision)
	return nil
}

// judge replays a history and holds each revision against what was promised.
type judge struct {
	*fleet
	keys     map[string]*mvccpb.KeyValue // as they are at the revision, less the fleet's prefix
	rev      int64
	roles    map[string]string
	order    map[string]int      // of versions in git
	opened   map[string]string   // barriers: rollout and node -> when it opened for that node
	claims   map[int64][]checked // fence -> what was checked under it
	lost     map[int64]time.Time
	seen     map[string]int  // what the history holds
	told     map[string]bool // of what it was said that it happens
	breaches []string
}

// checked is a step that a node was about to start under its claim.
type checked struct {
	state.Claim
	rev int64
}

func newJudge(f *fleet) *judge {
	j := &judge{fleet: f, keys: map[string]*mvccpb.KeyValue{}, roles: map[string]string{}, order: map[string]int{}, opened: map[string]string{},
		claims: map[int64][]checked{}, lost: map[int64]time.Time{}, seen: map[string]int{}, told: map[string]bool{}}
	for _, n := range f.nodes {
		j.roles[n.name] = n.role
	}
	for i, v := range f.versions {
		j.order[v.id] = i + 1
	}
	return j
}

// breach notes a promise that was broken at the revision.
func (j *judge) breach(format string, args ...any) {
	j.breaches = append(j.breaches, fmt.Sprintf("revision %d: ", j.rev)+fmt.Sprintf(format, args...))
}

func (j *judge) replay(history [][]*clientv3.Event) {
	for _, events := range history {
		j.rev = events[0].Kv.ModRevision
		j.seen["revisions"]++
		changed := map[string]*clientv3.Event{}
		for _, e := range events {
			changed[strings.TrimPrefix(string(e.Kv.Key), "/pullet/default/")] = e
		}
		if e := changed[written]; e != nil && string(e.Kv.Value) == j.acked[j.rev] {
			delete(j.acked, j.rev)
		}
		for key, e := range changed {
			j.before(key, e, changed)
		}
		for key, e := range changed {
			if e.Type == clientv3.EventTypeDelete {
				delete(j.keys, key)
			} else {
				j.keys[key] = e.Kv
			}
		}
		j.after(changed)
	}
	for rev, value := range j.acked {
		j.breach("etcd said that it wrote %s at revision %d, and its history does not have it", value, rev)
	}
}

func (j *judge) decode(kv *mvccpb.KeyValue, into any) {
	if err := json.Unmarshal(kv.Value, into); err != nil {
		j.breach("%s: %v", kv.Key, err)
	}
}

func (j *judge) claim(kv *mvccpb.KeyValue) (c state.Claim) {
	j.decode(kv, &c)
	return c
}

func (j *judge) current() (v state.Version) {
	if kv := j.keys["current_version"]; kv != nil {
		j.decode(kv, &v)
	}
	return v
}

func (j *judge) gateOf(rollout, group string) (g state.Gate) {
	if kv := j.keys["rollout/"+rollout+"/gate/"+group]; kv != nil {
		j.decode(kv, &g)
	}
	return g
}

func (j *judge) roster(key string) []string {
	kv := j.keys[key]
	if kv == nil {
		j.breach("there is no %s", key)
		return nil
	}
	r, err := state.Read[state.Roster](state.Over(nil, "default", nil), kv)
	if err != nil {
		j.breach("%s: %v", key, err)
		return nil
	}
	return r.Nodes()
}

func (j *judge) versionOf(rollout string) release {
	id, _, _ := strings.Cut(rollout, ".")
	for _, v := range j.versions {
		if v.id == id {
			return v
		}
	}
	j.breach("version %s was never committed", id)
	return release{}
}

// TestLostWriteIsSeen: a write that etcd said that it did, and that its history does not have, is a breach.
func TestLostWriteIsSeen(t *testing.T) {
	t.Parallel()
	write := func(rev int64, value string) []*clientv3.Event {
		return []*clientv3.Event{{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte(written), Value: []byte(value), ModRevision: rev}}}
	}
	for _, c := range []struct {
		history [][]*clientv3.Event
		want    string
	}{
		{[][]*clientv3.Event{write(2, "0"), write(3, "1")}, ""},
		{[][]*clientv3.Event{write(2, "0")}, "revision 2: etcd said that it wrote 1 at revision 3, and its history does not have it"},
		{[][]*clientv3.Event{write(2, "0"), write(3, "2")}, "revision 3: etcd said that it wrote 1 at revision 3, and its history does not have it"},
	} {
		j := newJudge(&fleet{acked: map[int64]string{2: "0", 3: "1"}})
		j.replay(c.history)
		if got := strings.Join(j.breaches, "; "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
