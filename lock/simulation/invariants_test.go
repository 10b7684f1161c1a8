package simulation

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pullet/pullet/internal/etcdmodel"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

const prefix = "/pullet/f/"

// kept is a key as it is at a revision.
type kept struct {
	etcdmodel.Write
	created int64
}

// checker goes through all that was ever written, and holds it to what is promised.
type checker struct {
	*fleet
	keys    map[string]kept
	lost    map[string]time.Time         // nodes that were seen once and do not live now: since when
	never   map[string]bool              // nodes that were lost at some time
	opened  map[string]time.Time         // barriers
	claims  map[string]map[int64][]*life // slots by key and fence
	groups  map[string]map[string]bool   // in which nodes that hold slots count, since they made the claim
	idle    map[string]bool              // who of them changes nothing
	current *state.Version
	before  map[string]kept // the keys that the revision under way changed, as they were
	claimed bool            // it leaves marks: it is no claim that a node puts back

	all      []etcdmodel.Write    // what was ever written
	branch   []etcdmodel.Write    // and not undone by a restore
	stints   []stint              // what nodes did
	taken    map[string]time.Time // when somebody else took a node's claim
	admitted map[string]string    // the rollouts that nodes were in when the record was restored
	better   map[string]bool      // nodes that know more than the record, which a restore made older and nobody accepted yet
	restores []time.Time
	moves    []move // of the fleet from version to version
}

// life is that of one claim.
type life struct {
	from, until time.Time // until: zero while it lasts
	takenBy     string    // who ended it
	checks      map[string][]time.Time
}

// check looks at the whole history.
func (f *fleet) check() {
	c := &checker{
		fleet: f, never: map[string]bool{}, opened: map[string]time.Time{}, claims: map[string]map[int64][]*life{}, taken: map[string]time.Time{},
		stints: f.stints(), all: f.c.Writes(),
	}
	c.empty()
	for writes := range revisions(c.all) {
		if writes[0].Restored {
			c.restored(writes[0])
			continue
		}
		c.revision(writes)
	}
	c.starts()
	c.onlyOnce()
	c.sameResults()
	c.inTurn()
	c.abandoned()
	c.together()
}

// revisions are the transactions of a log. A restore stands for itself.
func revisions(log []etcdmodel.Write) iter.Seq[[]etcdmodel.Write] {
	return func(yield func([]etcdmodel.Write) bool) {
		for len(log) > 0 {
			n := 1
			for n < len(log) && log[n].Revision == log[0].Revision && !log[n].Restored && !log[0].Restored {
				n++
			}
			if !yield(log[:n]) {
				return
			}
			log = log[n:]
		}
	}
}

// remains is what is left of a log when what restores undid is taken out.
func remains(log []etcdmodel.Write) (out []etcdmodel.Write) {
	for _, w := range log {
		if w.Restored {
			out = out[:sort.Search(len(out), func(i int) bool { return out[i].Revision > w.Revision })]
			continue
		}
		out = append(out, w)
	}
	return out
}

// empty forgets what was written.
func (c *checker) empty() {
	c.keys, c.before, c.lost, c.groups, c.idle = map[string]kept{}, nil, map[string]time.Time{}, map[string]map[string]bool{}, map[string]bool{}
	c.current, c.branch = nil, nil
}

// restored makes the keys what they were at an older revision.
func (c *checker) restored(w etcdmodel.Write) {
	held, admitted := c.counted(), map[string]string{}
	for _, claim := range under[state.Claim](c, "slot/") {
		admitted[claim.Node] = claim.Rollout
	}
	c.admitted = admitted
	log := remains(append(c.branch, w))
	c.empty()
	then := int64(0)
	for writes := range revisions(log) {
		c.apply(writes)
		then = writes[0].Revision
	}
	for node := range held {
		if _, holds := c.counted()[node]; !holds {
			c.taken[node] = w.Time
		}
	}
	c.better = map[string]bool{}
	accepted := c.keys[prefix+"store_accepted"].Time
	for _, e := range c.log {
		if (e.what == "joined" || e.what == "claimed") && e.at.Before(w.Time) && !c.spoilt(e.node, w.Time) {
			before := e.what == "claimed" && c.better[e.node]
			c.better[e.node] = before || e.at.After(accepted) && e.fence > then
		}
	}
	c.restores = append(c.restores, w.Time)
	if c.current != nil {
		c.moves = append(c.moves, move{c.current.Rollout(), w.Time})
	}
}

// joined: a node that knows more than a restored record takes no part in it before an operator accepts that (I16).
func (c *checker) joined(w etcdmodel.Write, node string) {
	_, doubted := c.keys[prefix+"config_state/store"]
	if !w.Deleted && w.By == node && c.better[node] && !doubted && !c.spoilt(node, w.Time) {
		c.fail(w, "I16: %s registers in a record that went back behind it, and nobody accepted that", node)
	}
}

// spoilt reports a node whose disk does not know what it saw.
func (c *checker) spoilt(node string, at time.Time) bool {
	return c.cloned(node) || c.happened(node, c.began, at, "reinstall", "revert the disk")
}

// apply takes one transaction.
func (c *checker) apply(writes []etcdmodel.Write) {
	c.before, c.claimed = map[string]kept{}, false
	for _, w := range writes {
		if _, seen := c.before[w.Key]; !seen {
			c.before[w.Key] = c.keys[w.Key]
		}
		node, alive := strings.CutPrefix(w.Key, prefix+"alive/")
		switch {
		case alive && w.Deleted:
			c.lost[node], c.never[node] = w.Time, true
		case alive:
			delete(c.lost, node)
		case w.Key == prefix+"current_version":
			c.current = &state.Version{}
			parse(w, c.current)
		}
		c.claimed = c.claimed || strings.HasPrefix(w.Key, prefix+"mark/")
		if w.Deleted {
			delete(c.keys, w.Key)
			continue
		}
		k := kept{w, c.keys[w.Key].created}
		if w.Created {
			k.created = w.Revision
		}
		c.keys[w.Key] = k
	}
	c.branch = append(c.branch, writes...)
	c.counting()
}

// revision judges one transaction: by what was before, and then by what is.
func (c *checker) revision(writes []etcdmodel.Write) {
	current, before := c.current, c.counted()
	c.apply(writes)
	for _, w := range writes {
		parts := strings.Split(strings.TrimPrefix(w.Key, prefix), "/")
		switch parts[0] {
		case "store_accepted":
			c.better = nil
		case "node":
			if w.By == "operator" { // a record that was given up is as new as any
				delete(c.better, parts[1])
			}
		case "alive":
			c.joined(w, parts[1])
		case "current_version":
			c.version(w, current)
		case "slot":
			c.slot(w, parts[1], before)
		case "total":
			c.total(w, before)
		case "semaphore":
			c.semaphore(w, parts[1])
		case "rollout":
			c.closing(w, parts[1:])
		case "run":
			c.shared(w, parts[1:])
		case "running_version":
			c.running(w, parts[1], parts[2])
		}
	}
}

func (c *checker) fail(w etcdmodel.Write, format string, args ...any) {
	c.breaks("@%d at %s by %q: "+format, append([]any{w.Revision, w.Time.Sub(c.began), w.By}, args...)...)
}

// was is a key before the revision under way.
func (c *checker) was(key string) (kept, bool) {
	k, touched := c.before[key]
	if !touched {
		k = c.keys[key]
	}
	return k, k.Key != ""
}

// version: the fleet never goes back but by an operator (I6).
func (c *checker) version(w etcdmodel.Write, before *state.Version) {
	c.moves = append(c.moves, move{c.current.Rollout(), w.Time})
	if v := c.current; before != nil && !newer(v.ID, before.ID) && v.ID != before.ID && v.By != "operator" {
		c.fail(w, "I6: the fleet goes back from %s to %s", before.ID, v.ID)
	}
}

func parse(w etcdmodel.Write, v any) { _ = json.Unmarshal([]byte(w.Value), v) } // what the product wrote

// under are the values of a kind of key.
func under[T any](c *checker, below string) map[string]T {
	out := map[string]T{}
	for key, k := range c.keys {
		if strings.HasPrefix(key, prefix+below) {
			var v T
			parse(k.Write, &v)
			out[key] = v
		}
	}
	return out
}

// slot: never more than the limit, never two nodes at one place (I1); nobody is admitted who may not be (I4, I5).
func (c *checker) slot(w etcdmodel.Write, group string, before map[string]bool) {
	if w.Deleted {
		old := c.before[w.Key]
		if l := c.life(w.Key, old.created); l != nil {
			l.until, l.takenBy = w.Time, w.By
		}
		c.givenBack(w, old, group)
		return
	}
	var now, then state.Claim
	parse(w, &now)
	old, had := c.was(w.Key)
	if had {
		parse(old.Write, &then)
	}
	if had && then.Node != now.Node {
		c.fail(w, "I1: %s takes the place of %s in %s", now.Node, then.Node, group)
	}
	if w.Created {
		if c.claims[w.Key] == nil {
			c.claims[w.Key] = map[int64][]*life{}
		}
		c.claims[w.Key][w.Revision] = append(c.claims[w.Key][w.Revision], &life{from: w.Time, checks: map[string][]time.Time{}})
		if _, held := before[now.Node]; held || !c.claimed { // it had one in another group until now, or puts one back, and may be above the limit
			return
		}
		if c.limits(w, group, now); group == canaries {
			c.role(w, now)
		}
	} else if l := c.life(w.Key, old.created); l != nil && now.Step != "" {
		l.checks[now.Step] = append(l.checks[now.Step], w.Time)
	}
	goesOn := !w.Created && now.Step != "" && c.admitted[now.Node] == now.Rollout // by a claim that a restored record has as it was before
	if w.Created || now.Rollout != then.Rollout && !goesOn {
		c.admission(w, group, now)
	} else if !now.Since.Equal(then.Since) && !now.Idle && c.current.Rollout() != now.Rollout {
		c.fail(w, "I6: %s goes on with %s in %s, and the fleet is at %s", now.Node, now.Step, now.Rollout, c.current.Rollout())
	}
}

// life is that of the claim of a key which was made at a revision: behind a restore there may be several, and it is the
// last.
func (c *checker) life(key string, fence int64) *life {
	lives := c.claims[key][fence]
	if len(lives) == 0 {
		return nil
	}
	return lives[len(lives)-1]
}

// limits: a claim that is made leaves the group, and the fleet, within what is allowed (I1).
func (c *checker) limits(w etcdmodel.Write, group string, claim state.Claim) {
	r := c.find(claim.Version)
	roster, err := c.roster(claim.Rollout, group)
	if err != nil {
		c.fail(w, "I1: a claim of %s without a roster: %v", group, err)
		return
	}
	limit, away := r.limit(group, roster.Size), []string{}
	claims := under[state.Claim](c, "slot/"+group+"/")
	holds := map[string]int{}
	for _, one := range claims {
		if holds[one.Node]++; holds[one.Node] > 1 {
			c.fail(w, "I1: %s holds two slots of %s", one.Node, group)
		}
	}
	maps.Copy(holds, c.countIn(w, r, group, func(string) bool { return false }))
	holds[claim.Node] = 1
	if r.onLost == lock.Hold {
		for _, h := range c.hosts {
			since, lost := c.lost[h.name]
			_, seen := c.was(prefix + "seen/" + state.GroupOf(r.role(h.name, h.role)) + "/" + h.name)
			if lost && seen && holds[h.name] == 0 && roster.Has(h.name) && w.Time.Sub(since) > 16*time.Minute {
				away = append(away, h.name)
			}
		}
	}
	beside := 0
	var gate state.Gate
	parse(c.keys[prefix+"rollout/"+claim.Rollout+"/gate/"+group].Write, &gate)
	for _, one := range claims {
		if one.Node != claim.Node && slices.Contains(gate.Hosts, one.Node) {
			beside++
		}
	}
	if len(holds)-min(beside, r.faulty)+len(away) > limit {
		c.fail(w, "I1: %s is admitted to %s: %q count there, %d of them beside the limit, and %q are away, of %d", claim.Node, group, slices.Sorted(maps.Keys(holds)), min(beside, r.faulty), away, limit)
	}
	if r.total > 0 && !slices.ContainsFunc(c.totals(), func(one state.Claim) bool { return one.Node == claim.Node }) {
		c.fail(w, "I1: %s is admitted to %s outside the total of %d", claim.Node, group, r.total)
	}
}

// countIn are the nodes that change in a group by the rules of a release, or by those under which they began. Waits
// says of a node that it holds a place and does not count.
func (c *checker) countIn(w etcdmodel.Write, r *release, group string, waits func(node string) bool) map[string]int {
	inStep, out := c.inStep(w.Time, ""), map[string]int{}
	for _, h := range c.hosts {
		s, works := inStep[h.name]
		holds := len(c.groups[h.name]) > 0 && !waits(h.name)
		belongs := r.group(h.name, h.role) == group || r.canary && r.home(h.name, h.role) == group
		if holds && (c.groups[h.name][group] || belongs) || works && (belongs || s.group == group) {
			out[h.name] = 1
		}
	}
	return out
}

// role: a canary is admitted only where the group of its role has room (I1). A node that waits in an older claim does
// not count: it may wait for the canary.
func (c *checker) role(w etcdmodel.Write, claim state.Claim) {
	r := c.find(claim.Version)
	home := r.home(claim.Node, c.roleOf(claim.Node))
	waiting, claims := map[string]bool{}, under[state.Claim](c, "slot/")
	for _, one := range claims {
		waiting[one.Node] = one.Idle && one.Rollout != claim.Rollout
	}
	holds := c.countIn(w, r, home, func(node string) bool { return waiting[node] })
	holds[claim.Node] = 1
	size := 0
	for _, h := range c.hosts {
		if r.group(h.name, h.role) == home {
			size++
		}
	}
	if roster, err := c.roster(claim.Rollout, home); err == nil {
		size = roster.Size
	}
	var gate state.Gate
	parse(c.keys[prefix+"rollout/"+claim.Rollout+"/gate/"+home].Write, &gate)
	beside := 0
	for node := range holds {
		if node != claim.Node && slices.Contains(gate.Hosts, node) {
			beside++
		}
	}
	if limit := r.limit(home, size); limit > 0 && len(holds)-min(beside, r.faulty) > limit {
		c.fail(w, "I1: the canary %s is admitted, and in %s %q change, of %d", claim.Node, home, slices.Sorted(maps.Keys(holds)), limit)
	}
}

func (c *checker) totals() []state.Claim {
	var out []state.Claim
	for _, one := range under[state.Claim](c, "total/") {
		out = append(out, one)
	}
	return out
}

// changing is how many change now in the whole fleet, under whatever rules they began.
func (c *checker) changing(at time.Time) int {
	out := map[string]bool{}
	for _, one := range c.totals() {
		out[one.Node] = true
	}
	for node := range c.groups {
		if !c.idle[node] {
			out[node] = true
		}
	}
	for node := range c.inStep(at, "") {
		out[node] = true
	}
	return len(out)
}

// counted are the nodes that hold slots, and whether they count in the total.
func (c *checker) counted() map[string]bool {
	out := map[string]bool{}
	for node := range c.groups {
		out[node] = !c.idle[node]
	}
	return out
}

// counting keeps where nodes count that hold slots: in all groups to which they belonged since they made the claim,
// until they are known to change nothing.
func (c *checker) counting() {
	groups, idle := map[string]map[string]bool{}, map[string]bool{}
	for key, claim := range under[state.Claim](c, "slot/") {
		now := groups[claim.Node]
		if now == nil {
			now = map[string]bool{}
		}
		r, role := c.find(claim.Version), c.roleOf(claim.Node)
		left := slices.ContainsFunc(claim.Groups, func(g string) bool { return g != r.home(claim.Node, role) })
		if idle[claim.Node] = claim.Idle; !claim.Idle || left {
			maps.Copy(now, c.groups[claim.Node])
			now[r.group(claim.Node, role)], now[r.home(claim.Node, role)] = true, true
		}
		now[strings.Split(strings.TrimPrefix(key, prefix+"slot/"), "/")[0]] = true
		groups[claim.Node] = now
	}
	c.groups, c.idle = groups, idle
}

// total: as many as the fleet may change at a time, each under a slot (I1).
func (c *checker) total(w etcdmodel.Write, before map[string]bool) {
	if w.Deleted {
		return
	}
	var claim, then state.Claim
	parse(w, &claim)
	if old, had := c.was(w.Key); had {
		if parse(old.Write, &then); then.Node != claim.Node {
			c.fail(w, "I1: %s takes the place of %s in the total", claim.Node, then.Node)
		}
	}
	if n := c.changing(w.Time); w.Created && !before[claim.Node] && n > c.find(claim.Version).total {
		c.fail(w, "I1: %d change at a time in the fleet, of %d", n, c.find(claim.Version).total)
	}
	for _, one := range c.totals() {
		_, leaves := c.keys[prefix+"decommissioned/"+one.Node] // its slot goes first, its place in the total behind it
		if !leaves && !c.holdsSlot(one.Node) {
			c.fail(w, "I1: %s counts in the total and holds no slot", one.Node)
		}
	}
}

func (c *checker) holdsSlot(node string) bool {
	for _, one := range under[state.Claim](c, "slot/") {
		if one.Node == node {
			return true
		}
	}
	return false
}

// admission: nobody is admitted while a gate is halted, or an operator keeps the node where it is (I4), or before what
// it depends on is through (I5).
func (c *checker) admission(w etcdmodel.Write, group string, claim state.Claim) {
	r := c.find(claim.Version)
	for _, g := range append([]string{group, state.AllGroups}, r.before(group)...) {
		var gate state.Gate
		k, set := c.was(prefix + "rollout/" + claim.Rollout + "/gate/" + g)
		if set {
			parse(k.Write, &gate)
		}
		own := g == group || g == state.AllGroups
		if gate.State == state.Halted && !(own && (slices.Contains(gate.Failed, claim.Node) || slices.Contains(gate.Hosts, claim.Node))) {
			c.fail(w, "I4: %s is admitted to %s while %s is halted (%s)", claim.Node, group, g, gate.Reason)
		}
	}
	if _, doubted := c.was(prefix + "config_state/store"); doubted {
		c.fail(w, "I16: %s is admitted while the record is not accepted", claim.Node)
	}
	if _, paused := c.was(prefix + "config_state/pause"); paused {
		c.fail(w, "I4: %s is admitted while all is paused", claim.Node)
	}
	c.switched(w, claim)
	if c.current == nil || c.current.Rollout() != claim.Rollout {
		c.fail(w, "I6: %s is admitted for %s, and the fleet is at %+v", claim.Node, claim.Rollout, c.current)
	}
	for _, g := range r.before(group) {
		_, closed := c.was(prefix + "rollout/" + claim.Rollout + "/closed/" + g)
		_, soaking := c.was(prefix + "rollout/" + claim.Rollout + "/soak/" + g)
		if !closed || soaking {
			c.fail(w, "I5: %s is admitted to %s, and %s is closed %t, soaking %t", claim.Node, group, g, closed, soaking)
		}
	}
}

// switched: the nearest switch holds (I4).
func (c *checker) switched(w etcdmodel.Write, claim state.Claim) {
	role := c.find(claim.Version).role(claim.Node, c.roleOf(claim.Node))
	for _, scope := range []string{"host/" + claim.Node, "role/" + role, "global"} {
		k, set := c.was(prefix + "config_state/enable/" + scope)
		if !set {
			continue
		}
		var s state.Switch
		parse(k.Write, &s)
		if !s.Enabled || s.Version != "" && s.Version != claim.Version {
			c.fail(w, "I4: %s is admitted for %s while %s is switched off", claim.Node, claim.Version, scope)
		}
		return
	}
}

// semaphore: never more than may take a step at a time, never two nodes at one place (I1).
func (c *checker) semaphore(w etcdmodel.Write, hash string) {
	if w.Deleted {
		c.stepGivenBack(w, c.before[w.Key], hash)
		return
	}
	var claim, then state.Claim
	parse(w, &claim)
	if old, had := c.was(w.Key); had {
		if parse(old.Write, &then); then.Node != claim.Node {
			c.fail(w, "I1: %s takes the place of %s in a serialized step", claim.Node, then.Node)
		}
		return
	}
	if !c.claimed { // it is put back, and may be above the limit
		return
	}
	if _, doubted := c.was(prefix + "config_state/store"); doubted {
		c.fail(w, "I16: %s takes a serialized step while the record is not accepted", claim.Node)
	}
	for _, s := range c.find(claim.Version).steps {
		if state.StepHash(s.name) != hash {
			continue
		}
		takes := map[string]bool{}
		for _, one := range under[state.Claim](c, "semaphore/"+hash+"/") {
			takes[one.Node] = true
		}
		for node := range c.inStep(w.Time, s.name) {
			takes[node] = true
		}
		if len(takes) > s.serialize {
			c.fail(w, "I1: %q take %s, of %d", slices.Sorted(maps.Keys(takes)), s.name, s.serialize)
		}
	}
}

// through reports that nobody waits for a node any more.
func (c *checker) through(node, onLost string) bool {
	_, gone := c.keys[prefix+"decommissioned/"+node]
	return gone || c.never[node] && onLost != lock.Hold
}

// roster is that of a group in a rollout.
func (c *checker) roster(rollout, group string) (state.Roster, error) {
	return c.rosterAt(prefix + "rollout/" + rollout + "/roster/" + group)
}

func (c *checker) rosterAt(key string) (state.Roster, error) { return rosterOf(key, c.keys[key].Value) }

func rosterOf(key, value string) (state.Roster, error) {
	return state.Read[state.Roster](state.Over(nil, "f", nil), &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value)})
}

// closing: a group is closed when all of its nodes are through (I5).
func (c *checker) closing(w etcdmodel.Write, parts []string) {
	if parts[1] == "gate" && !w.Deleted {
		c.gate(w, parts[0], parts[2])
	}
	if parts[1] != "closed" || !w.Created {
		return
	}
	rollout, group := parts[0], parts[2]
	r := c.find(strings.Split(rollout, ".")[0])
	roster, err := c.roster(rollout, group)
	if err != nil {
		c.fail(w, "I5: %s is closed without a roster: %v", group, err)
		return
	}
	changed := false // a node of it
	for _, node := range roster.Nodes() {
		mark, done := c.keys[prefix+"rollout/"+rollout+"/done/"+group+"/"+node]
		changed = changed || done && mark.Value != "decommissioned" // it may be given up while the last one closes the group
		if !done && !c.through(node, r.onLost) {
			c.fail(w, "I5: %s of %s is closed, and %s is not through", group, rollout, node)
		}
	}
	if _, soaking := c.keys[prefix+"rollout/"+rollout+"/soak/"+group]; group == canaries && changed && r.soak > 0 && !soaking && !(c.current.Rollout() == rollout && c.current.Proven) {
		c.fail(w, "I5: the canaries of %s are closed and not watched", rollout)
	}
}

// gate: a group that has more failures than it survives is halted (I4).
func (c *checker) gate(w etcdmodel.Write, rollout, group string) {
	survives := c.find(strings.Split(rollout, ".")[0]).failing
	if strings.HasPrefix(group, "step-") {
		survives = 0
	}
	var gate state.Gate
	if parse(w, &gate); len(gate.Failed) > survives && gate.State != state.Halted {
		c.fail(w, "I4: %s of %s goes on after failures of %q, of %d", group, rollout, gate.Failed, survives)
	}
	if faulty := c.find(strings.Split(rollout, ".")[0]).faulty; len(gate.Hosts) > faulty && gate.State != state.Halted {
		c.fail(w, "I4: %s of %s goes on after host faults of %q, of %d", group, rollout, gate.Hosts, faulty)
	}
}

// ages reports that the result of a step, named by its hash, is made anew in the same version.
func (c *checker) ages(hash string) bool {
	for _, r := range c.releases {
		for _, s := range r.steps {
			if s.maxAge > 0 && state.StepHash(s.name) == hash {
				return true
			}
		}
	}
	return false
}

// shared: barriers open when all arrived (I2), places of elections and results are not taken from who started (I3).
func (c *checker) shared(w etcdmodel.Write, parts []string) {
	rollout, hash, kind := parts[0], parts[1], parts[2]
	key := prefix + "run/" + rollout + "/" + hash + "/"
	switch {
	case w.Deleted:
	case kind == "roster" && w.Created:
		c.rostered(w, rollout, hash)
	case kind == "open" && w.Created:
		if _, before := c.opened[rollout+"/"+hash]; !before { // a restore may have undone it, for those behind it nothing
			c.opened[rollout+"/"+hash] = w.Time
		}
		c.barrier(w, rollout, key)
	case kind == "place" && !w.Created:
		old, _ := c.was(w.Key)
		for took := range c.keys {
			if old.Value != w.Value && strings.HasPrefix(took, key+"took/"+old.Value+"/") {
				c.fail(w, "I3: %s takes the place of %s, which started", w.Value, old.Value)
			}
		}
	case kind == "result" && !w.Created && w.By != "operator":
		var old state.StepResult
		was, _ := c.was(w.Key)
		if parse(was.Write, &old); old.Result == "ok" && !c.ages(hash) || w.By != parts[3] {
			c.fail(w, "I3: the result of %s, which is %s, is replaced", parts[3], old.Result)
		}
	}
}

// rostered: who is in the middle of the rollout belongs to its barriers, whatever an operator switched off (I2).
func (c *checker) rostered(w etcdmodel.Write, rollout, hash string) {
	roster, err := rosterOf(w.Key, w.Value)
	if err != nil {
		c.fail(w, "I2: %v", err)
		return
	}
	r := c.find(strings.Split(rollout, ".")[0])
	for _, claim := range under[state.Claim](c, "slot/") {
		role := c.roleOf(claim.Node)
		for _, s := range r.steps {
			gate := r.staged(s, claim.Node, role)
			yes, _ := gate.Members(claim.Node, state.Member{Role: role})
			if claim.Rollout == rollout && state.StepHash(gate.ID+"\x00"+gate.Stage) == hash && yes && !roster.Has(claim.Node) {
				c.fail(w, "I2: %s is in the middle of %s, and left out at %s", claim.Node, rollout, s.name)
			}
		}
	}
}

func (c *checker) barrier(w etcdmodel.Write, rollout, key string) {
	r := c.find(strings.Split(rollout, ".")[0])
	roster, err := c.rosterAt(key + "roster")
	if err != nil {
		c.fail(w, "I2: a barrier without a roster opens: %v", err)
		return
	}
	bad, faulty := 0, 0
	for _, node := range roster.Nodes() {
		in, arrived := c.keys[key+"in/"+node]
		switch {
		case arrived && in.Value == lock.Failed:
			if !c.through(node, lock.Hold) {
				bad++
			}
		case arrived && in.Value == lock.Faulty:
			if !c.through(node, lock.Hold) {
				faulty++
			}
		case !arrived && !c.through(node, r.onLost):
			c.fail(w, "I2: the barrier %s opens, and %s did not arrive", key, node)
		}
	}
	if bad > r.failing || faulty > r.faulty {
		c.fail(w, "I2: the barrier %s opens although %d failed, and %d by faults of their hosts", key, bad, faulty)
	}
}

// running: who is said to run a version has taken all of its steps (I7).
func (c *checker) running(w etcdmodel.Write, version, node string) {
	if w.Deleted {
		return
	}
	ended := map[*task]bool{}
	for _, e := range c.log {
		if e.node == node && e.version == version && !e.at.After(w.Time) && (e.what == "ok" || e.what == skipped) {
			ended[e.step] = true
		}
	}
	for _, s := range c.find(version).steps {
		if c.find(version).has(s, node, c.roleOf(node)) && !ended[s] {
			c.fail(w, "I7: %s is said to run %s and did not take %s", node, version, s.name)
		}
	}
}

// starts: no step starts but under a claim that was asked for it just then (I1, I13), and behind open barriers (I2).
func (c *checker) starts() {
	last := map[string]time.Time{}
	for _, e := range c.log {
		if e.what != "start" {
			if e.step != nil {
				last[e.node] = e.at
			}
			continue
		}
		if !e.gated { // drift of what the node runs: it passed there before
			last[e.node] = e.at
			continue
		}
		c.covered(e, last[e.node])
		last[e.node] = e.at
		for _, s := range c.find(e.version).steps {
			if s == e.step {
				break
			}
			if !s.sync || !c.find(e.version).has(s, e.node, c.roleOf(e.node)) {
				continue
			}
			at, open := c.opened[e.rollout+"/"+state.StepHash(s.name+"\x00"+strconv.Itoa(e.stage))]
			if !open || at.After(e.at) {
				c.breaks("I2: %s starts %s in %s at %s, behind the barrier of %s, which is open %t since %s", e.node, e.step.name, e.rollout, e.at.Sub(c.began), s.name, open, at.Sub(c.began))
			}
		}
	}
}

func (c *checker) roleOf(node string) string {
	for _, h := range c.hosts {
		if h.name == node {
			return h.role
		}
	}
	return ""
}

// asked reports a look at the claim between a moment and the begin of the step.
func (e event) asked(after time.Time) func(time.Time) bool {
	return func(t time.Time) bool { return !t.Before(after) && !t.After(e.at) }
}

// covered: the store said, after the step before, that the node has its claim; and if it has it no more, somebody took
// it back.
func (c *checker) covered(e event, after time.Time) {
	why := "without a claim"
	for _, key := range slices.Sorted(maps.Keys(c.claims)) { // behind a restore several may have one fence
		if !strings.HasPrefix(key, prefix+"slot/"+e.group+"/") {
			continue
		}
		for _, l := range c.claims[key][e.fence] {
			switch ended := !l.until.IsZero() && l.until.Before(e.at); {
			case !slices.ContainsFunc(l.checks[e.step.name], e.asked(after)):
				why = "and did not ask for its claim"
			case ended && l.takenBy == e.node:
				why = "and gave its claim back"
			default:
				return
			}
		}
	}
	c.breaks("I1: %s starts %s in %s at %s, fence %d, %s", e.node, e.step.name, e.rollout, e.at.Sub(c.began), e.fence, why)
}

// present are the keys as they are now.
func (f *fleet) present() map[string]etcdmodel.Write {
	out := map[string]etcdmodel.Write{}
	for _, w := range remains(f.c.Writes()) {
		if out[w.Key] = w; w.Deleted {
			delete(out, w.Key)
		}
	}
	return out
}

func (f *fleet) current() *state.Version {
	w, set := f.present()[prefix+"current_version"]
	if !set {
		return nil
	}
	v := &state.Version{}
	parse(w, v)
	return v
}

// told reports that the store has had a node's failure written since a moment.
func (f *fleet) told(node string, since time.Time) bool {
	for _, w := range slices.Backward(f.c.Writes()) {
		if w.Time.Before(since) {
			break
		}
		if w.Key == prefix+"status/rollout/failed/"+node && !w.Deleted {
			return true
		}
	}
	return false
}

// tidy: when all is done nobody holds anything (I12).
func (f *fleet) tidy() {
	present := f.present()
	for _, key := range f.held() {
		f.breaks("I12: all run the version, and %s is still held: %s", key, present[key].Value)
	}
}

// held are the places that nodes hold.
func (f *fleet) held() (out []string) {
	for _, key := range slices.Sorted(maps.Keys(f.present())) {
		kind, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
		if slices.Contains([]string{"slot", "total", "semaphore"}, kind) {
			out = append(out, key)
		}
	}
	return out
}

// reasons is why nodes wait, as the fleet says it.
func (f *fleet) reasons() string {
	var out []string
	for key, w := range f.present() {
		if strings.HasPrefix(key, prefix+"status/rollout/") && !strings.Contains(key, "/success/") {
			out = append(out, strings.TrimPrefix(key, prefix)+" "+w.Value)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func (e event) tell(began time.Time) string {
	switch {
	case e.step == nil:
		return fmt.Sprintf("%s ## %s %s", e.at.Sub(began), e.what, e.node)
	case e.what == "read":
		return fmt.Sprintf("%s ** %s: reads the result of %s in %s, %s", e.at.Sub(began), e.node, e.step.name, e.rollout, e.value)
	}
	return fmt.Sprintf("%s ** %s: %s %s in %s, fence %d, gated %t", e.at.Sub(began), e.node, e.what, e.step.name, e.rollout, e.fence, e.gated)
}
