// Package history judges a fleet by the history of its etcd, which is a total order of all promises of nodes to each
// other, and by the notes of its steps. Tests only.
package history

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Fleet describes a fleet whose history is judged. Its agents have ended.
type Fleet struct {
	Dir        string            // with the root directory of each node in NODE/root
	Roles      map[string]string // by node
	OnLost     string            // onLost of its rules
	GroupLimit int               // nodes of a group that may change at a time
	TotalLimit int               // nodes of the fleet that may change at a time
	Versions   []Version         // in the order of git
	Written    string            // a key that the test wrote
	Acked      map[int64]string  // values of that key that etcd acknowledged, by revision
}

// Version is a version of the repository of a fleet.
type Version struct {
	ID  string
	Bad string // its failure, such as "work on web1", or ""
}

// Verdict is the result of judging a fleet.
type Verdict struct {
	Breaches []string
	Seen     map[string]int // counts of the history
}

// Judge checks the promises of a fleet on its history and on the ledgers of its steps.
func Judge(f Fleet, changes [][]*clientv3.Event) Verdict {
	j := newJudge(f)
	j.replay(changes)
	j.checkLedgers()
	return Verdict{j.breaches, j.seen}
}

// Read returns every change of a key of etcd, by revision, and writes the changes to a file for people. The history of
// etcd must not be compacted.
func Read(t testing.TB, client *clientv3.Client, file string) [][]*clientv3.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	end, err := client.Put(ctx, "/end", "")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	var out [][]*clientv3.Event
	for got := range client.Watch(ctx, "/", clientv3.WithPrefix(), clientv3.WithRev(1)) {
		if got.Err() != nil {
			t.Fatalf("the history of etcd: %v", got.Err())
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
	t.Fatalf("the history of etcd ends before revision %d", end.Header.Revision)
	return nil
}

// judge replays a history and compares each revision with the promises.
type judge struct {
	Fleet
	acked    map[int64]string            // what the history does not have so far
	keys     map[string]*mvccpb.KeyValue // at the revision, without the prefix of the fleet
	rev      int64
	order    map[string]int      // of versions in git
	opened   map[string]string   // time of the opening of the barrier, by "ROLLOUT NODE"
	claims   map[int64][]checked // by fence
	lost     map[int64]time.Time
	seen     map[string]int  // counts of the history
	told     map[string]bool // breaches that are reported once
	breaches []string
}

// checked is a step that a node was about to start under its claim.
type checked struct {
	state.Claim
	rev int64
}

// newJudge returns a judge of a fleet that is stopped.
func newJudge(f Fleet) *judge {
	j := &judge{Fleet: f, acked: maps.Clone(f.Acked), keys: map[string]*mvccpb.KeyValue{}, order: map[string]int{},
		opened: map[string]string{},
		claims: map[int64][]checked{}, lost: map[int64]time.Time{}, seen: map[string]int{}, told: map[string]bool{}}
	for i, v := range f.Versions {
		j.order[v.ID] = i + 1
	}
	return j
}

// breach notes a promise that was broken at the revision.
func (j *judge) breach(format string, args ...any) {
	j.breaches = append(j.breaches, fmt.Sprintf("revision %d: ", j.rev)+fmt.Sprintf(format, args...))
}

// replay judges a history.
func (j *judge) replay(history [][]*clientv3.Event) {
	for _, events := range history {
		j.rev = events[0].Kv.ModRevision
		j.seen["revisions"]++
		changed := map[string]*clientv3.Event{}
		for _, e := range events {
			changed[strings.TrimPrefix(string(e.Kv.Key), "/pullet/default/")] = e
		}
		if e := changed[j.Written]; e != nil && string(e.Kv.Value) == j.acked[j.rev] {
			delete(j.acked, j.rev)
		}
		for key, e := range changed {
			j.checkBefore(key, e, changed)
		}
		for key, e := range changed {
			if e.Type == clientv3.EventTypeDelete {
				delete(j.keys, key)
			} else {
				j.keys[key] = e.Kv
			}
		}
		j.checkAfter(changed)
	}
	for rev, value := range j.acked {
		j.breach("etcd acknowledged %s at revision %d, and its history does not have it", value, rev)
	}
}

// decode decodes a value.
func (j *judge) decode(kv *mvccpb.KeyValue, into any) {
	if err := json.Unmarshal(kv.Value, into); err != nil {
		j.breach("%s: %v", kv.Key, err)
	}
}

// claim decodes a claim.
func (j *judge) claim(kv *mvccpb.KeyValue) (c state.Claim) {
	j.decode(kv, &c)
	return c
}

// current returns the version of the fleet at the revision.
func (j *judge) current() (v state.Version) {
	if kv := j.keys["current_version"]; kv != nil {
		j.decode(kv, &v)
	}
	return v
}

// gateOf returns the gate of a group at the revision.
func (j *judge) gateOf(rollout, group string) (g state.Gate) {
	if kv := j.keys["rollout/"+rollout+"/gate/"+group]; kv != nil {
		j.decode(kv, &g)
	}
	return g
}

// roster returns the nodes of a roster at the revision.
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

// versionOf returns the version of a rollout.
func (j *judge) versionOf(rollout string) Version {
	id, _, _ := strings.Cut(rollout, ".")
	for _, v := range j.Versions {
		if v.ID == id {
			return v
		}
	}
	j.breach("version %s was never committed", id)
	return Version{}
}
