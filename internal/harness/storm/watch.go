package storm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// watcher logs the decisions of the fleet and of operators with the revisions of etcd. The revisions order claims,
// whose fences are revisions, against versions, halts and switches. The judge sees the results in the lines of the
// steps.
type watcher struct {
	*notes
	era    int           // of etcd
	seen   *atomic.Int64 // the last revision that the log has
	halted *sync.Map     // "ROLLOUT/GROUP" to whether it is halted
}

// prefix is that of the record of the fleet.
const prefix = "/pullet/default/"

// marker is a key that the watcher sees and no host: its deletion shows how far the watcher is.
const marker = "/pullet/default~"

// run logs changes from a revision on until ctx ends.
func (w *watcher) run(ctx context.Context, client *clientv3.Client, from int64) {
	known := slots{}
	for ctx.Err() == nil {
		watched := client.Watch(clientv3.WithRequireLeader(ctx), prefix, clientv3.WithRange(marker+"\x00"),
			clientv3.WithRev(from))
		for got := range watched {
			if got.CompactRevision > from && from == 1 { // the log has all that was compacted
				known.read(ctx, client, got.CompactRevision)
				w.say("kept %d %d", w.era, got.CompactRevision)
				from = got.CompactRevision + 1
				break
			}
			if got.CompactRevision > from {
				w.t.Errorf("the watch of the storm is behind a compaction: %d, at %d", got.CompactRevision, from)
				return
			}
			moves := known.moves(got.Events)
			for rev, moved := range moves {
				w.say("moved %d %d %s %d", w.era, rev, moved.node, moved.fence)
			}
			for rev, node := range putBacks(got.Events) {
				if _, moved := moves[rev]; !moved {
					w.say("putback %d %d %s", w.era, rev, node)
				}
			}
			for _, e := range got.Events {
				w.fact(e)
				from = e.Kv.ModRevision + 1
			}
			w.seen.Store(from - 1)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// fact logs one change of the record of the fleet.
func (w *watcher) fact(e *clientv3.Event) {
	if string(e.Kv.Key) == marker {
		return
	}
	key := strings.Split(strings.TrimPrefix(string(e.Kv.Key), prefix), "/")
	put := e.Type == clientv3.EventTypePut
	say := func(what string, args ...any) {
		w.say("%s %d %d %s", what, w.era, e.Kv.ModRevision, strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
	}
	switch {
	case key[0] == "current_version" && put:
		var v state.Version
		w.decode(e, &v)
		w.alias(v)
		say("current", v.ID, v.Rollout())
	case key[0] == "rollout" && key[2] == "gate" && put:
		var g state.Gate
		w.decode(e, &g)
		w.halted.Store(key[1]+"/"+key[3], g.State == state.Halted)
		say("gate", key[1], key[3], g.State, g.Node, strings.Join(strings.Fields(g.Reason), " "))
	case key[0] == "rollout" && key[2] == "soak":
		say("soak", key[1], key[3], map[bool]string{true: "on", false: "off"}[put])
	case key[0] == "rollout" && key[2] == "lost" && put:
		var record struct {
			Fence int64
			Claim state.Claim
		}
		w.decode(e, &record)
		say("lost", record.Claim.Node, record.Fence)
	case key[0] == "alive" && !put:
		say("silent", key[1])
	case key[0] == "alive" && e.IsCreate():
		say("alive", key[1])
	case key[0] == "slot" && put:
		var c state.Claim
		w.decode(e, &c)
		left := len(c.Groups)
		if key[1] == "canary" {
			left-- // one is that of its role
		}
		say("idle", c.Node, map[bool]string{true: "on", false: "off"}[c.Idle && left <= 0])
	case key[0] == "command_given" && put:
		var c state.Command
		w.decode(e, &c)
		var stages []string
		for _, nodes := range c.Stages {
			stages = append(stages, strings.Join(nodes, ","))
		}
		say("given", c.Args[1], strings.Join(stages, ";"))
	case key[0] == "config_state":
		w.switchFact(key, put, e, say)
	}
}

// switchFact logs a change of a switch.
func (w *watcher) switchFact(key []string, put bool, e *clientv3.Event, say func(string, ...any)) {
	scope := strings.TrimPrefix(strings.Join(key[1:], "/"), "enable/")
	to := "-"
	if put {
		var set state.Switch
		w.decode(e, &set)
		switch {
		case set.Version != "":
			to = set.Version
		case set.Enabled:
			to = "on"
		default:
			to = "off"
		}
	}
	say("switch", scope, to)
}

// alias logs which rules a version of several repositories has: those of the commit of the first one.
func (w *watcher) alias(v state.Version) {
	if len(v.Commits) > 1 {
		w.say("alias %s %s", v.ID, v.Commits[0].Commit)
	}
}

// decode decodes the value of a key.
func (w *watcher) decode(e *clientv3.Event, into any) {
	if err := json.Unmarshal(e.Kv.Value, into); err != nil {
		w.t.Errorf("%s: %v", e.Kv.Key, err)
	}
}
