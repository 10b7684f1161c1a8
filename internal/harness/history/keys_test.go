package history

import (
	"encoding/json"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// puts are the keys that a revision writes, without the prefix of the fleet. A nil value deletes the key.
type puts map[string]any

// changes returns a history whose first revision is 10.
func changes(t *testing.T, revisions ...puts) (out [][]*clientv3.Event) {
	t.Helper()
	for i, puts := range revisions {
		var events []*clientv3.Event
		for key, value := range puts {
			text, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			e := &clientv3.Event{Kv: &mvccpb.KeyValue{Key: []byte("/pullet/default/" + key), Value: text, ModRevision: int64(10 + i)}}
			if value == nil {
				e.Type = clientv3.EventTypeDelete
			}
			events = append(events, e)
		}
		out = append(out, events)
	}
	return out
}

// TestReplay: a history that breaks a promise is a breach, and one that keeps all promises is none.
func TestReplay(t *testing.T) {
	t.Parallel()
	claim := func(node string) state.Claim { return state.Claim{Node: node, Version: "v1", Rollout: "v1"} }
	begin := puts{"current_version": state.Version{ID: "v1", Seq: 1}, "alive/a": "", "alive/b": "", "alive/c": ""}
	one := puts{"slot/canary/1": claim("a"), "total/1": claim("a")}
	two := puts{"slot/canary/2": claim("b"), "total/2": claim("b")}
	for name, c := range map[string]struct {
		history []puts
		want    string // part of the only breach, or ""
	}{
		"two admissions":           {[]puts{begin, one, two}, ""},
		"more than the limit":      {[]puts{begin, one, two, {"slot/canary/3": claim("c"), "total/3": claim("c")}}, "slot/canary has 3 claims, the limit is 2"},
		"the total does not count": {[]puts{begin, {"slot/canary/1": claim("a")}}, "that the total does not count"},
		"the total is not freed":   {[]puts{begin, one, {"slot/canary/1": nil}}, "total/1 of a was not"},
		"freed":                    {[]puts{begin, one, {"slot/canary/1": nil, "total/1": nil}}, ""},
		"without a lease":          {[]puts{begin, {"alive/a": nil}, one}, "a is admitted although its lease ended"},
		"in a pause":               {[]puts{begin, {"config_state/pause": ""}, one}, "a is admitted in a pause"},
		"of an older version":      {[]puts{begin, {"current_version": state.Version{ID: "v2", Previous: "v1", Seq: 2}}, one}, "a is admitted to v1 although the fleet is at v2"},
		"back":                     {[]puts{begin, {"current_version": state.Version{ID: "v2", Previous: "v1", Seq: 2}}, {"current_version": state.Version{ID: "v1", Previous: "v2", Seq: 3}}}, "the fleet goes from version 2 to 1"},
		"another node":             {[]puts{begin, one, {"slot/canary/1": claim("b"), "total/2": claim("b")}}, "slot/canary/1 goes from a to b"},
		"a halt":                   {[]puts{begin, {"rollout/v1/gate/canary": state.Gate{State: state.Halted, Node: "a", Reason: "unknown"}}, one}, "slot/canary/1 is claimed by a although canary is halted: unknown"},
		"a halt of a good version": {[]puts{begin, {"rollout/v1/gate/db": state.Gate{State: state.Halted, Node: "a", Reason: "failed"}}}, "rollout/v1/gate/db is halted although version 1 is good: a: failed"},
		"a halt of a bad version":  {[]puts{{"current_version": state.Version{ID: "v2", Seq: 1}}, {"rollout/v2/gate/db": state.Gate{State: state.Halted, Node: "a", Reason: "failed"}}}, ""},
		"reclaimed from a live one": {[]puts{begin, one, {"rollout/v1/lost/a": struct {
			Claim state.Claim `json:"claim"`
		}{claim("a")}}}, "the claim of a is reclaimed although it has a lease"},
		"two states of a host": {[]puts{begin, {"status/rollout/running/a": "", "status/rollout/success/a": ""}}, "status of rollout a"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJudge(Fleet{GroupLimit: 2, TotalLimit: 3, OnLost: "hold", Versions: []Version{{ID: "v1"}, {ID: "v2", Bad: "work on a"}}})
			j.replay(changes(t, c.history...))
			got := strings.Join(j.breaches, "; ")
			if len(j.breaches) > 1 || !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
				t.Errorf("breaches %q, want %q", got, c.want)
			}
		})
	}
}
