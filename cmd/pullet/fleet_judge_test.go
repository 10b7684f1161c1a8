package main

import (
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// before judges a change by what was there before it.
func (j *judge) before(key string, e *clientv3.Event, changed map[string]*clientv3.Event) {
	put, parts := e.Type == clientv3.EventTypePut, strings.Split(key, "/")
	switch {
	case parts[0] == "slot" && put:
		j.slot(parts[1], key, e.Kv)
	case parts[0] == "slot":
		j.freed(key, changed)
	case parts[0] == "semaphore" && put:
		j.semaphore(parts[1], key, e.Kv)
	case parts[0] == "current_version":
		j.forward(e.Kv)
	case parts[0] == "running_version":
		j.moves(key, parts[1], parts[2], put, changed)
	case parts[0] == "rollout" && parts[2] == "closed" && put:
		j.closed(parts[1], parts[3], changed)
	case parts[0] == "rollout" && parts[2] == "gate" && put:
		j.gate(key, parts[1], parts[3], e.Kv)
	case parts[0] == "rollout" && parts[2] == "lost" && put:
		j.takenBack(e.Kv)
	case parts[0] == "run" && parts[3] == "open" && put:
		j.opens(parts[1], parts[2], e, changed)
	case parts[0] == "run" && parts[3] == "place" && put:
		j.place(key, parts[1], parts[2], e.Kv)
	}
}

// slot judges a claim: a new one, or one that a node adopts for another version, is an admission.
func (j *judge) slot(group, key string, kv *mvccpb.KeyValue) {
	now, before := j.claim(kv), state.Claim{}
	j.claims[kv.CreateRevision] = append(j.claims[kv.CreateRevision], checked{now, j.rev})
	if old := j.keys[key]; old != nil {
		if before = j.claim(old); before.Node != now.Node {
			j.breach("%s goes from %s to %s", key, before.Node, now.Node)
		}
	} else {
		j.seen["claims"]++
	}
	if now.Rollout == before.Rollout {
		return
	}
	j.admission(now)
	for _, g := range []string{state.AllGroups, group} {
		if gate := j.gateOf(now.Rollout, g); gate.State == state.Halted && !slices.Contains(gate.Failed, now.Node) {
			j.breach("%s is claimed by %s although %s is halted: %s", key, now.Node, g, gate.Reason)
		}
	}
	for _, dep := range map[string][]string{"db": {"canary"}, "web": {"canary", "db"}}[group] {
		at := "rollout/" + now.Rollout + "/"
		if j.keys[at+"closed/"+dep] == nil || j.keys[at+"soak/"+dep] != nil || j.gateOf(now.Rollout, dep).State == state.Halted {
			j.breach("%s is claimed by %s although %s, on which it depends, is not through, is watched or is halted", key, now.Node, dep)
		}
	}
}

// admission judges what holds for every admission to a group.
func (j *judge) admission(c state.Claim) {
	if j.keys["config_state/pause"] != nil {
		j.breach("%s is admitted in a pause", c.Node)
	}
	if j.keys["alive/"+c.Node] == nil {
		j.breach("%s is admitted although its lease ended", c.Node)
	}
	if current := j.current(); current.Rollout() != c.Rollout {
		j.breach("%s is admitted to %s although the fleet is at %s", c.Node, c.Rollout, current.Rollout())
	}
}

// semaphore judges a claim of a serialized step.
func (j *judge) semaphore(hash, key string, kv *mvccpb.KeyValue) {
	now := j.claim(kv)
	if j.keys[key] != nil {
		return
	}
	j.seen["serialized"]++
	if gate := j.gateOf(now.Rollout, "step-"+hash); gate.State == state.Halted && !slices.Contains(gate.Failed, now.Node) {
		j.breach("%s is claimed by %s although the step is halted: %s", key, now.Node, gate.Reason)
	}
}

// freed judges the end of a claim: the cap over the whole fleet is freed with it, and the mark of the holder.
func (j *judge) freed(key string, changed map[string]*clientv3.Event) {
	c := j.claim(j.keys[key])
	for other, kv := range j.keys {
		if strings.HasPrefix(other, "total/") && j.claim(kv).Node == c.Node && changed[other] == nil {
			j.breach("%s was freed, and %s of %s was not", key, other, c.Node)
		}
	}
}

// forward judges the fleet's version: it goes forward in git, each names the one before.
func (j *judge) forward(kv *mvccpb.KeyValue) {
	var now state.Version
	j.decode(kv, &now)
	before := j.current()
	if now.ID == before.ID {
		return
	}
	j.seen["versions"]++
	if j.order[now.ID] <= j.order[before.ID] || now.Previous != before.ID || before.ID != "" && now.Seq != before.Seq+1 {
		j.breach("the fleet goes from version %d to %d (%s, seq %d, previous %s)", j.order[before.ID], j.order[now.ID], now.ID, now.Seq, now.Previous)
	}
}

// moves judges a change of the version that a node runs: it moves in the transaction that says that the node is
// through, and frees its claim.
func (j *judge) moves(key, version, node string, put bool, changed map[string]*clientv3.Event) {
	if !put {
		for other := range changed {
			if to, ok := strings.CutSuffix(other, "/"+node); ok && strings.HasPrefix(to, "running_version/") && other != key && changed[other].Type == clientv3.EventTypePut {
				return
			}
		}
		j.breach("%s was deleted and nothing took its place", key)
		return
	}
	j.seen["upgrades"]++
	if through := changed["status/rollout/success/"+node]; through == nil || through.Type != clientv3.EventTypePut {
		j.breach("%s moved beside the end of an upgrade", key)
	}
	if v := j.versionOf(version); v.bad != "" && strings.HasSuffix(v.bad, " on "+node) {
		j.breach("%s runs version %d, which cannot have succeeded there (%s)", node, j.order[version], v.bad)
	}
	for held, kv := range j.keys {
		if strings.HasPrefix(held, "slot/") && j.claim(kv).Node == node {
			if gone := changed[held]; gone == nil || gone.Type != clientv3.EventTypeDelete || j.claim(kv).Version != version {
				j.breach("%s moved while the node holds %s for %s", key, held, j.claim(kv).Version)
			}
			return
		}
	}
	var before state.Status
	if was := j.keys["status/rollout/pending/"+node]; was != nil {
		j.decode(was, &before)
	}
	if !before.Parked {
		j.breach("%s moved without a claim, and the node had not parked", key)
	}
}

// closed judges that a group is through: all of its frozen roster are, but those that the rules give up.
func (j *judge) closed(rollout, group string, changed map[string]*clientv3.Event) {
	for _, node := range j.roster("rollout/" + rollout + "/roster/" + group) {
		done := "rollout/" + rollout + "/done/" + group + "/" + node
		if j.keys[done] == nil && changed[done] == nil && !j.givenUp(node) {
			j.breach("group %s of %s is closed although %s is not through", group, rollout, node)
		}
	}
	j.seen["groups through"]++
}

// givenUp reports a node that nobody waits for: its lease ended, and the rules release those.
func (j *judge) givenUp(node string) bool {
	return j.onLost == "release" && j.keys["alive/"+node] == nil
}

// gate notes halts. A version that is good halts nowhere but where nobody can know what came of a step that must not
// run twice.
func (j *judge) gate(key, rollout, group string, kv *mvccpb.KeyValue) {
	now, before := state.Gate{}, j.gateOf(rollout, group)
	j.decode(kv, &now)
	switch {
	case now.State != state.Halted:
		if before.State == state.Halted && now.Resumed == "" && !strings.HasPrefix(group, "step-") { // a step's is opened by the node that failed there
			j.breach("%s is opened, and nobody resumed it", key)
		}
	case before.State != state.Halted:
		j.seen["halts"]++
		if v := j.versionOf(rollout); v.bad == "" && !strings.Contains(now.Reason, "unknown") {
			j.breach("%s is halted although version %d is good: %s: %s", key, j.order[v.id], now.Node, now.Reason)
		} else if v.bad == "" {
			j.seen["halts by an unknown result"]++
		}
	}
}

func (j *judge) takenBack(kv *mvccpb.KeyValue) {
	var record struct {
		Fence int64     `json:"fence"`
		Time  time.Time `json:"time"`
		Claim state.Claim
	}
	j.decode(kv, &record)
	if j.keys["alive/"+record.Claim.Node] != nil {
		j.breach("the claim of %s is taken back although it lives", record.Claim.Node)
	}
	j.lost[record.Fence] = record.Time
	j.seen["claims taken back"]++
}

// opens judges a barrier: everybody arrived, and well.
func (j *judge) opens(rollout, hash string, e *clientv3.Event, changed map[string]*clientv3.Event) {
	at := "run/" + rollout + "/" + hash + "/"
	var by struct{ Time time.Time }
	j.decode(e.Kv, &by)
	for _, node := range j.roster(at + "roster") {
		in := j.keys[at+"in/"+node]
		if now := changed[at+"in/"+node]; now != nil {
			in = now.Kv
		}
		if in == nil && !j.givenUp(node) || in != nil && string(in.Value) == "failed" {
			j.breach("the barrier of %s opens although %s did not arrive, or failed", at, node)
		}
		if _, before := j.opened[rollout+" "+node]; !before { // a lost node that comes back late arrives last, and opens it once more
			j.opened[rollout+" "+node] = by.Time.Format(time.RFC3339Nano)
		}
	}
	j.seen["barriers"]++
}

// place judges an election: who started a step keeps its place for good.
func (j *judge) place(key, rollout, hash string, kv *mvccpb.KeyValue) {
	old := j.keys[key]
	if old == nil {
		j.seen["elections"]++
		return
	}
	started := false
	for took := range j.keys {
		started = started || strings.HasPrefix(took, "run/"+rollout+"/"+hash+"/took/"+string(old.Value)+"/")
	}
	if started || !j.givenUp(string(old.Value)) {
		j.breach("%s goes from %s, which is there or started a step, to %s", key, old.Value, kv.Value)
	}
}

// after judges the revision as a whole.
func (j *judge) after(changed map[string]*clientv3.Event) {
	held := map[string]map[string]int{} // group -> node -> claims
	now, older := j.current(), map[string]bool{}
	status := map[string][]string{}
	runs, tickets := map[string]int{}, map[string]int{}
	for key, kv := range j.keys {
		parts := strings.Split(key, "/")
		switch parts[0] {
		case "slot", "semaphore", "total":
			group := strings.Join(parts[:len(parts)-1], "/")
			if held[group] == nil {
				held[group] = map[string]int{}
			}
			c := j.claim(kv)
			held[group][c.Node]++
			older[c.Node] = older[c.Node] || parts[0] == "slot" && c.Rollout != now.Rollout()
		case "rollout":
			if parts[2] == "queue" {
				_, node, _ := strings.Cut(parts[4], "-")
				tickets[parts[3]+" of "+parts[1]+" by "+node]++
			}
		case "status":
			status[parts[1]+" "+parts[3]] = append(status[parts[1]+" "+parts[3]], parts[2])
		case "running_version":
			runs[parts[2]]++
		}
	}
	for group, nodes := range held {
		limit := map[string]int{"total": fleetTotal, "semaphore": 1, "slot": fleetLimit}[strings.Split(group, "/")[0]]
		sum := 0
		for node, n := range nodes {
			if sum += n; n > 1 {
				j.breach("%s holds %d claims of %s", node, n, group)
			}
			if strings.HasPrefix(group, "slot/") && held["total"][node] == 0 && !older[node] { // who waits for another role with an older claim lets others have it
				j.breach("%s holds a claim of %s that the cap of the fleet does not count", node, group)
			}
		}
		if sum > limit {
			j.breach("%s has %d claims, the limit is %d: %v", group, sum, limit, nodes)
		}
		j.seen["most at a time of "+group] = max(sum, j.seen["most at a time of "+group])
	}
	for which, n := range tickets {
		if n > 1 && !j.told[which] {
			j.told[which] = true
			j.breach("%d tickets in the queue %s", n, which)
		}
	}
	for who, states := range status {
		if len(states) != 1 {
			j.breach("status of %s: %v", who, states)
		}
	}
	for node, n := range runs {
		if n != 1 {
			j.breach("%s runs %d versions", node, n)
		}
	}
}
