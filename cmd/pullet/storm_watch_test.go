package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// watch writes into the log what the fleet and its operators decided, with etcd's revisions: those order claims, whose
// fences are revisions, against versions, halts and switches. What came of it the judge reads from the steps. It begins
// anew for each era of etcd, and ends with ctx.
func (s *storm) watch(ctx context.Context, client *clientv3.Client, era int, from int64) {
	slots := stormSlots{}
	for ctx.Err() == nil {
		for got := range client.Watch(clientv3.WithRequireLeader(ctx), "/pullet/default/", clientv3.WithRange(stormMarker+"\x00"), clientv3.WithRev(from)) {
			if got.CompactRevision > from && from == 1 { // the log has what was before: nothing is compacted that it has not
				slots.read(ctx, client, got.CompactRevision)
				s.log.say("kept %d %d", era, got.CompactRevision)
				from = got.CompactRevision + 1
				break
			}
			if got.CompactRevision > from {
				s.t.Errorf("the storm's own watch fell behind a compaction: %d, at %d", got.CompactRevision, from)
				return
			}
			moves := slots.moves(got.Events)
			for rev, moved := range moves {
				s.log.say("moved %d %d %s %d", era, rev, moved.node, moved.fence)
			}
			for rev, node := range putBacks(got.Events) {
				if _, moved := moves[rev]; !moved {
					s.log.say("putback %d %d %s", era, rev, node)
				}
			}
			for _, e := range got.Events {
				s.fact(era, e)
				from = e.Kv.ModRevision + 1
			}
			s.watched.Store(from - 1)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// stormSlot is a claim.
type stormSlot struct {
	node  string
	fence int64
}

// stormSlots are the claims of all groups, by their keys.
type stormSlots map[string]stormSlot

// read reads the claims at a revision. It tries until ctx ends: members start and stop.
func (k stormSlots) read(ctx context.Context, client *clientv3.Client, rev int64) {
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		got, err := client.Get(ctx, "/pullet/default/slot/", clientv3.WithPrefix(), clientv3.WithRev(rev))
		if errors.Is(err, rpctypes.ErrCompacted) {
			return // the storm's own watch says so
		} else if err != nil {
			continue
		}
		for _, kv := range got.Kvs {
			var c state.Claim
			if json.Unmarshal(kv.Value, &c) == nil {
				k[string(kv.Key)] = stormSlot{c.Node, kv.CreateRevision}
			}
		}
		return
	}
}

// moves finds claims that go from one place to another in one transaction, by its revision: they are the new one's
// fences.
func (k stormSlots) moves(events []*clientv3.Event) map[int64]stormSlot {
	made, out := map[int64]string{}, map[int64]stormSlot{}
	for _, e := range events {
		var c state.Claim
		if strings.HasPrefix(string(e.Kv.Key), "/pullet/default/slot/") && e.IsCreate() && json.Unmarshal(e.Kv.Value, &c) == nil {
			made[e.Kv.ModRevision] = c.Node
		}
	}
	for _, e := range events {
		old, known := k[string(e.Kv.Key)]
		var c state.Claim
		switch {
		case !strings.HasPrefix(string(e.Kv.Key), "/pullet/default/slot/"):
		case e.Type == clientv3.EventTypeDelete:
			if known && made[e.Kv.ModRevision] == old.node {
				out[e.Kv.ModRevision] = old
			}
			delete(k, string(e.Kv.Key))
		case json.Unmarshal(e.Kv.Value, &c) == nil:
			k[string(e.Kv.Key)] = stormSlot{c.Node, e.Kv.CreateRevision}
		}
	}
	return out
}

// putBacks finds claims that no admission made, by their revisions: an admission says in the same transaction that the
// node runs.
func putBacks(events []*clientv3.Event) map[int64]string {
	made, begun := map[int64]string{}, map[int64]bool{}
	for _, e := range events {
		key := strings.TrimPrefix(string(e.Kv.Key), "/pullet/default/")
		var c state.Claim
		switch {
		case strings.HasPrefix(key, "status/rollout/running/"):
			begun[e.Kv.ModRevision] = true
		case strings.HasPrefix(key, "slot/") && e.IsCreate() && json.Unmarshal(e.Kv.Value, &c) == nil:
			made[e.Kv.ModRevision] = c.Node
		}
	}
	maps.DeleteFunc(made, func(rev int64, _ string) bool { return begun[rev] })
	return made
}

// fact is one change of the fleet's record.
func (s *storm) fact(era int, e *clientv3.Event) {
	if string(e.Kv.Key) == stormMarker {
		return
	}
	key := strings.Split(strings.TrimPrefix(string(e.Kv.Key), "/pullet/default/"), "/")
	put := e.Type == clientv3.EventTypePut
	say := func(what string, args ...any) {
		s.log.say("%s %d %d %s", what, era, e.Kv.ModRevision, strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
	}
	switch {
	case key[0] == "current_version" && put:
		var v state.Version
		s.decode(e, &v)
		s.alias(v)
		say("current", v.ID, v.Rollout())
	case key[0] == "rollout" && key[2] == "gate" && put:
		var g state.Gate
		s.decode(e, &g)
		s.halted.Store(key[1]+"/"+key[3], g.State == state.Halted)
		say("gate", key[1], key[3], g.State, g.Node, strings.Join(strings.Fields(g.Reason), " "))
	case key[0] == "rollout" && key[2] == "soak":
		say("soak", key[1], key[3], map[bool]string{true: "on", false: "off"}[put])
	case key[0] == "rollout" && key[2] == "lost" && put:
		var record struct {
			Fence int64
			Claim state.Claim
		}
		s.decode(e, &record)
		say("lost", record.Claim.Node, record.Fence)
	case key[0] == "alive" && !put:
		say("silent", key[1])
	case key[0] == "alive" && e.IsCreate():
		say("alive", key[1])
	case key[0] == "slot" && put:
		var c state.Claim
		s.decode(e, &c)
		say("idle", c.Node, map[bool]string{true: "on", false: "off"}[c.Idle && len(c.Groups) == 0])
	case key[0] == "command_given" && put:
		var c state.Command
		s.decode(e, &c)
		var stages []string
		for _, nodes := range c.Stages {
			stages = append(stages, strings.Join(nodes, ","))
		}
		say("given", c.Args[1], strings.Join(stages, ";"))
	case key[0] == "config_state":
		s.switchFact(key, put, e, say)
	}
}

func (s *storm) switchFact(key []string, put bool, e *clientv3.Event, say func(string, ...any)) {
	scope := strings.TrimPrefix(strings.Join(key[1:], "/"), "enable/")
	to := "-"
	if put {
		var w state.Switch
		s.decode(e, &w)
		switch {
		case w.Version != "":
			to = w.Version
		case w.Enabled:
			to = "on"
		default:
			to = "off"
		}
	}
	say("switch", scope, to)
}

// alias tells the judge of a version of several repositories: it has the rules of the first one's commit.
func (s *storm) alias(v state.Version) {
	if len(v.Commits) > 1 {
		s.log.say("alias %s %s", v.ID, v.Commits[0].Commit)
	}
}

func (s *storm) decode(e *clientv3.Event, into any) {
	if err := json.Unmarshal(e.Kv.Value, into); err != nil {
		s.t.Errorf("%s: %v", e.Kv.Key, err)
	}
}

// tip is the version of what is pushed.
func (s *storm) tip() string {
	var heads []puller.Head
	for _, repo := range s.repos {
		heads = append(heads, puller.Head{Repo: repo, Commit: s.git(repo, "rev-parse", "HEAD")})
	}
	return puller.Version(heads)
}
