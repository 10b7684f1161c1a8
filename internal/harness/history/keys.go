package history

import (
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// checkBefore checks a change against the state before it.
func (j *judge) checkBefore(key string, e *clientv3.Event, changed map[string]*clientv3.Event) {
	put, parts := e.Type == clientv3.EventTypePut, strings.Split(key, "/")
	switch {
	case parts[0] == "slot" && put:
		j.checkSlot(parts[1], key, e.Kv)
	case parts[0] == "slot":
		j.checkFreed(key, changed)
	case parts[0] == "semaphore" && put:
		j.checkSemaphore(parts[1], key, e.Kv)
	case parts[0] == "current_version":
		j.checkForward(e.Kv)
	case parts[0] == "running_version":
		j.checkMove(key, parts[1], parts[2], put, changed)
	case parts[0] == "rollout" && parts[2] == "closed" && put:
		j.checkClosed(parts[1], parts[3], changed)
	case parts[0] == "rollout" && parts[2] == "gate" && put:
		j.checkGate(key, parts[1], parts[3], e.Kv)
	case parts[0] == "rollout" && parts[2] == "lost" && put:
		j.checkReclaimed(e.Kv)
	case parts[0] == "run" && parts[3] == "open" && put:
		j.checkOpening(parts[1], parts[2], e, changed)
	case parts[0] == "run" && parts[3] == "place" && put:
		j.checkElected(key, parts[1], parts[2], e.Kv)
	}
}

// checkSlot checks a claim. A new one is an admission, and so is one that a node adopts for another version.
func (j *judge) checkSlot(group, key string, kv *mvccpb.KeyValue) {
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
	j.checkAdmission(now)
	for _, g := range []string{state.AllGroups, group} {
		if gate := j.gateOf(now.Rollout, g); gate.State == state.Halted && !slices.Contains(gate.Failed, now.Node) {
			j.breach("%s is claimed by %s although %s is halted: %s", key, now.Node, g, gate.Reason)
		}
	}
	for _, dep := range map[string][]string{"db": {"canary"}, "web": {"canary", "db"}}[group] {
		at := "rollout/" + now.Rollout + "/"
		if j.keys[at+"closed/"+dep] == nil || j.keys[at+"soak/"+dep] != nil ||
			j.gateOf(now.Rollout, dep).State == state.Halted {
			j.breach("%s is claimed by %s although %s, on which it depends, is not done, soaks or is halted", key,
				now.Node, dep)
		}
	}
}

// checkAdmission checks the conditions of every admission to a group.
func (j *judge) checkAdmission(c state.Claim) {
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

// checkSemaphore checks a claim of a serialized step.
func (j *judge) checkSemaphore(hash, key string, kv *mvccpb.KeyValue) {
	now := j.claim(kv)
	if j.keys[key] != nil {
		return
	}
	j.seen["serialized"]++
	if gate := j.gateOf(now.Rollout, "step-"+hash); gate.State == state.Halted && !slices.Contains(gate.Failed, now.Node) {
		j.breach("%s is claimed by %s although the step is halted: %s", key, now.Node, gate.Reason)
	}
}

// checkFreed checks that the end of a claim also frees the slot of the node in the total.
func (j *judge) checkFreed(key string, changed map[string]*clientv3.Event) {
	c := j.claim(j.keys[key])
	for other, kv := range j.keys {
		if strings.HasPrefix(other, "total/") && j.claim(kv).Node == c.Node && changed[other] == nil {
			j.breach("%s was freed, and %s of %s was not", key, other, c.Node)
		}
	}
}

// checkForward checks that the version of the fleet goes forward in git, and that each names the one before.
func (j *judge) checkForward(kv *mvccpb.KeyValue) {
	var now state.Version
	j.decode(kv, &now)
	before := j.current()
	if now.ID == before.ID {
		return
	}
	j.seen["versions"]++
	if j.order[now.ID] <= j.order[before.ID] || now.Previous != before.ID || before.ID != "" && now.Seq != before.Seq+1 {
		j.breach("the fleet goes from version %d to %d (%s, seq %d, previous %s)", j.order[before.ID], j.order[now.ID],
			now.ID, now.Seq, now.Previous)
	}
}

// checkMove checks a change of the version that a node runs: the same transaction records the end of the upgrade, and
// frees the claim.
func (j *judge) checkMove(key, version, node string, put bool, changed map[string]*clientv3.Event) {
	if !put {
		for other := range changed {
			if to, ok := strings.CutSuffix(other, "/"+node); ok && strings.HasPrefix(to, "running_version/") && other != key &&
				changed[other].Type == clientv3.EventTypePut {
				return
			}
		}
		j.breach("%s was deleted and nothing took its place", key)
		return
	}
	j.seen["upgrades"]++
	if through := changed["status/rollout/success/"+node]; through == nil || through.Type != clientv3.EventTypePut {
		j.breach("%s moved in another transaction than the end of an upgrade", key)
	}
	if v := j.versionOf(version); v.Bad != "" && strings.HasSuffix(v.Bad, " on "+node) {
		j.breach("%s runs version %d, which cannot have succeeded there (%s)", node, j.order[version], v.Bad)
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

// checkClosed checks that all nodes of the roster of a closed group are done, except for those that the rules release.
func (j *judge) checkClosed(rollout, group string, changed map[string]*clientv3.Event) {
	for _, node := range j.roster("rollout/" + rollout + "/roster/" + group) {
		done := "rollout/" + rollout + "/done/" + group + "/" + node
		if j.keys[done] == nil && changed[done] == nil && !j.isReleased(node) {
			j.breach("group %s of %s is closed although %s is not done", group, rollout, node)
		}
	}
	j.seen["groups through"]++
}

// isReleased reports whether others need not wait for a node: its lease ended, and the rules release such nodes.
func (j *judge) isReleased(node string) bool {
	return j.OnLost == "release" && j.keys["alive/"+node] == nil
}

// checkGate checks halts. A good version causes one only if the result of a step that must not run twice is
// unknown.
func (j *judge) checkGate(key, rollout, group string, kv *mvccpb.KeyValue) {
	now, before := state.Gate{}, j.gateOf(rollout, group)
	j.decode(kv, &now)
	switch {
	case now.State != state.Halted:
		// A step's is opened by the node that failed there.
		if before.State == state.Halted && now.Resumed == "" && !strings.HasPrefix(group, "step-") {
			j.breach("%s is opened, and no operator resumed it", key)
		}
	case before.State != state.Halted:
		j.seen["halts"]++
		if v := j.versionOf(rollout); v.Bad == "" && !strings.Contains(now.Reason, "unknown") {
			j.breach("%s is halted although version %d is good: %s: %s", key, j.order[v.ID], now.Node, now.Reason)
		} else if v.Bad == "" {
			j.seen["halts by an unknown result"]++
		}
	}
}

// checkReclaimed checks that a claim was reclaimed from a node without a lease.
func (j *judge) checkReclaimed(kv *mvccpb.KeyValue) {
	var record struct {
		Fence int64     `json:"fence"`
		Time  time.Time `json:"time"`
		Claim state.Claim
	}
	j.decode(kv, &record)
	if j.keys["alive/"+record.Claim.Node] != nil {
		j.breach("the claim of %s is reclaimed although it has a lease", record.Claim.Node)
	}
	j.lost[record.Fence] = record.Time
	j.seen["claims taken back"]++
}

// checkOpening checks that all participants of a barrier arrived, and that none failed.
func (j *judge) checkOpening(rollout, hash string, e *clientv3.Event, changed map[string]*clientv3.Event) {
	at := "run/" + rollout + "/" + hash + "/"
	var by struct{ Time time.Time }
	j.decode(e.Kv, &by)
	for _, node := range j.roster(at + "roster") {
		in := j.keys[at+"in/"+node]
		if now := changed[at+"in/"+node]; now != nil {
			in = now.Kv
		}
		if in == nil && !j.isReleased(node) || in != nil && string(in.Value) == "failed" {
			j.breach("the barrier of %s opens although %s did not arrive, or failed", at, node)
		}
		// A lost node that comes back late arrives last, and opens it once more.
		if _, before := j.opened[rollout+" "+node]; !before {
			j.opened[rollout+" "+node] = by.Time.Format(time.RFC3339Nano)
		}
	}
	j.seen["barriers"]++
}

// checkElected checks that the node that started an elected step keeps its place.
func (j *judge) checkElected(key, rollout, hash string, kv *mvccpb.KeyValue) {
	old := j.keys[key]
	if old == nil {
		j.seen["elections"]++
		return
	}
	started := false
	for took := range j.keys {
		started = started || strings.HasPrefix(took, "run/"+rollout+"/"+hash+"/took/"+string(old.Value)+"/")
	}
	if started || !j.isReleased(string(old.Value)) {
		j.breach("%s goes from %s, which has a lease or started a step, to %s", key, old.Value, kv.Value)
	}
}

// checkAfter checks the state at the revision.
func (j *judge) checkAfter(changed map[string]*clientv3.Event) {
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
		limit := map[string]int{"total": j.TotalLimit, "semaphore": 1, "slot": j.GroupLimit}[strings.Split(group, "/")[0]]
		sum := 0
		for node, n := range nodes {
			if sum += n; n > 1 {
				j.breach("%s holds %d claims of %s", node, n, group)
			}
			// Who waits for another role with an older claim lets others have it.
			if strings.HasPrefix(group, "slot/") && held["total"][node] == 0 && !older[node] {
				j.breach("%s holds a claim of %s that the total does not count", node, group)
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
