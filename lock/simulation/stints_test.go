package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/etcdmodel"
	"github.com/pullet/pullet/state"
)

// stint is a step from its begin to its end, as its host wrote them down. A command that outlives its pullet takes as
// long as any.
type stint struct {
	event
	to time.Time
}

// stints are all steps that ran.
func (f *fleet) stints() []stint {
	var out []stint
	running := map[*host]int{}
	for _, e := range f.log {
		if e.step == nil || e.host == nil {
			continue
		}
		switch at, runs := running[e.host]; {
		case e.what == "start":
			running[e.host] = len(out)
			out = append(out, stint{e, e.at.Add(e.step.takes + time.Millisecond)})
		case runs && out[at].step == e.step && (e.what == "ok" || e.what == failed || e.what == "cut off"):
			delete(running, e.host)
			if e.at.Before(out[at].to) {
				out[at].to = e.at
			}
		}
	}
	return out
}

func (s stint) during(at time.Time) bool { return s.at.Before(at) && at.Before(s.to) }

// inStep are the nodes that were in a step under a claim which nobody took from them; with a name, in that step.
func (c *checker) inStep(at time.Time, step string) map[string]stint {
	out := map[string]stint{}
	for _, s := range c.stints {
		taken := c.taken[s.node]
		if step != "" {
			taken = c.taken[s.node+" "+state.StepHash(step)]
		}
		if s.during(at) && taken.Before(s.at) && (step == "" && s.gated || s.step.name == step && s.step.serialize > 0) {
			out[s.node] = s
		}
	}
	return out
}

// givenBack: a node keeps its slot while a step of it runs, and nobody takes it from a node that is well (I1).
func (c *checker) givenBack(w etcdmodel.Write, old kept, group string) {
	var claim state.Claim
	parse(old.Write, &claim)
	switch {
	case w.By != claim.Node:
		c.taken[claim.Node] = w.Time
		if w.By != "" && w.By != "operator" && c.works(claim.Node, w.Time) {
			c.fail(w, "I1: the slot of %s is taken away, and it is well", claim.Node)
		}
	case !c.holdsSlot(claim.Node) && !c.cloned(claim.Node):
		if s, works := c.inStep(w.Time, "")[claim.Node]; works {
			c.fail(w, "I1: %s gives its slot back, and runs %s since %s", claim.Node, s.step.name, s.at.Sub(c.began))
		}
		c.unrecorded(w, group, claim)
	}
}

// unrecorded: a slot is not free while its holder's failure is not on record (I4), unless a restored record has
// forgotten it (I16). Drift that could not be corrected, without a slot, is the host's own matter.
func (c *checker) unrecorded(w etcdmodel.Write, group string, claim state.Claim) {
	last := map[*task]event{}
	for _, e := range c.log {
		if e.node == claim.Node && e.rollout == claim.Rollout && e.step != nil && e.what != "read" && e.at.Before(w.Time) {
			last[e.step] = e
		}
	}
	var gate state.Gate
	if k, set := c.keys[prefix+"rollout/"+claim.Rollout+"/gate/"+group]; set {
		parse(k.Write, &gate)
	}
	for s, e := range last {
		forgotten := slices.ContainsFunc(c.restores, func(at time.Time) bool { return at.After(e.at) })
		if e.what == failed && e.gated && !s.late && !forgotten && !gate.Counts(claim.Node) {
			c.fail(w, "I4: %s gives its slot back after %s failed in %s, and that is not on record", claim.Node, s.name, claim.Rollout)
		}
	}
}

// stepGivenBack is the same for a place at a serialized step.
func (c *checker) stepGivenBack(w etcdmodel.Write, old kept, hash string) {
	var claim state.Claim
	parse(old.Write, &claim)
	if w.By != claim.Node {
		c.taken[claim.Node+" "+hash] = w.Time
		return
	}
	for _, s := range c.stints {
		if s.node == claim.Node && state.StepHash(s.step.name) == hash && s.during(w.Time) && !c.cloned(s.node) {
			c.fail(w, "I1: %s gives its place at %s back, and runs it since %s", claim.Node, s.step.name, s.at.Sub(c.began))
		}
	}
}

func (c *checker) cloned(node string) bool {
	return slices.ContainsFunc(c.clones, func(h *host) bool { return h.name == node })
}

// works reports that a node's agent was at work for long enough to be registered, and that nothing was wrong with its
// name or with etcd.
func (c *checker) works(node string, at time.Time) bool {
	if len(c.restores) > 0 || c.cloned(node) || c.happened(node, at.Add(-20*time.Minute), at, "reinstall", "move", "revert the disk") {
		return false
	}
	fair := true
	for _, f := range c.weather {
		if f.at.Before(at.Add(-10 * time.Minute)) {
			fair = f.well
		} else if f.at.Before(at) {
			fair = false
		}
	}
	h := c.host(node)
	return fair && h.loop && h.well(at.Add(-30*time.Second), at) && c.rejoined(node, at)
}

// rejoined reports a node that has registered since it was cut off or stood still: its lease may have ended, and it
// registers anew with its next pull.
func (c *checker) rejoined(node string, at time.Time) bool {
	last := ""
	for _, e := range c.log {
		if e.node == node && e.at.Before(at) && (e.what == "joined" || e.what == "heal" || e.what == "go on") {
			last = e.what
		}
	}
	return last == "joined"
}

// happened reports that one of some things happened to a node.
func (c *checker) happened(node string, from, to time.Time, what ...string) bool {
	return slices.ContainsFunc(c.log, func(e event) bool {
		return e.node == node && slices.Contains(what, e.what) && e.at.After(from) && e.at.Before(to)
	})
}

func (f *fleet) host(node string) *host {
	return f.hosts[slices.IndexFunc(f.hosts, func(h *host) bool { return h.name == node })]
}

// together: of hosts that use one name one works (I15), and it takes one step at a time (I1). A copy may go on for one
// that counts as lost, or that an operator gave up by force while it ran.
func (c *checker) together() {
	for i, s := range c.stints {
		for _, o := range c.stints[i+1:] {
			if o.node != s.node || !s.during(o.at) {
				continue
			}
			if s.host != o.host && (!s.host.well(o.at.Add(-2*time.Minute), o.at) || c.happened(o.node, s.at, o.at, "decommission --force")) {
				continue
			}
			promise := map[bool]string{true: "I1", false: "I15"}[s.host == o.host]
			c.breaks("%s: %s starts %s at %s while %s runs there (%s)", promise, o.node, o.step.name, o.at.Sub(c.began), s.step.name, s.at.Sub(c.began))
		}
	}
}

// within is in what a targeted step is taken once: a version, or the fleet's life.
func (e event) within() string {
	if e.step.once {
		return state.OnceScope + " " + e.step.name
	}
	return e.version + " " + e.step.name
}

// again reports that between two moments an operator had a step run again, or that what is on record was lost.
func (c *checker) again(e event, from, to time.Time) bool {
	scope := e.version
	if e.step.once {
		scope = state.OnceScope
	}
	key := prefix + "settled/" + scope + "/" + state.StepHash(e.step.name)
	runsAgain := func(w etcdmodel.Write) bool {
		var said state.Settlement
		parse(w, &said)
		return !said.Done
	}
	return slices.ContainsFunc(c.restores, func(at time.Time) bool { return at.Before(to) }) ||
		slices.ContainsFunc(c.all, func(w etcdmodel.Write) bool {
			return w.Key == key && w.Time.After(from) && w.Time.Before(to) && runsAgain(w)
		})
}

// onlyOnce: a step that must not run twice starts once for each place in a version, or in the fleet's life, whatever
// becomes of disks, unless its failure is on record or an operator has it run again (I3).
func (c *checker) onlyOnce() {
	nodes, since, last := map[string]map[string]bool{}, map[string]time.Time{}, map[string]event{}
	for _, e := range c.log {
		if e.step == nil || e.step.target == 0 || e.step.repeatable || e.what != "start" && e.what != "ok" && e.what != failed {
			continue
		}
		at, one := fmt.Sprintf("%d of %s", e.step.target, e.within()), e.node+" "+e.within() // a place is one of an election
		before, known := last[one]
		if e.what == "start" {
			if nodes[at] == nil || c.again(e, since[at], e.at) { // also with other nodes
				nodes[at], since[at] = map[string]bool{}, e.at
			}
			if nodes[at][e.node] = true; len(nodes[at]) > e.step.target {
				c.breaks("I3: %q start %s", slices.Sorted(maps.Keys(nodes[at])), at)
			}
			if known && before.what != failed && !c.again(e, before.at, e.at) {
				c.breaks("I3: %s starts %s again at %s, after %s at %s", e.node, at, e.at.Sub(c.began), before.what, before.at.Sub(c.began))
			}
		}
		if again := known && before.what == "ok" && e.what == "ok"; !again { // it let the same result stand, which it read before an operator's word
			last[one] = e
		}
	}
}

// sameResults: all who read the result of a step that ran once read the same one (I3).
func (c *checker) sameResults() {
	type result struct{ within, of string }
	read := map[result]event{}
	for _, e := range c.log {
		if e.what != "read" || e.step.maxAge > 0 {
			continue
		}
		of, _, _ := strings.Cut(e.value, ": ")
		at := result{e.within(), of}
		first, known := read[at]
		if known && first.value != e.value && !c.settled(e, first.at, e.at) {
			c.breaks("I3: %s reads %q as the result of %s at %s, where %s read %q", e.node, e.value, e.step.name, e.at.Sub(c.began), first.node, first.value)
		}
		read[at] = e
	}
}

// inTurn: who reads a result that it did not read before in this version changes under a slot (I1).
func (c *checker) inTurn() {
	type result struct{ host, version, step, of string }
	read := map[result]string{}
	for _, e := range c.log {
		if e.what != "read" {
			continue
		}
		of, value, _ := strings.Cut(e.value, ": ")
		at := result{e.host.name, e.version, e.step.name, of}
		if read[at] != value && !e.gated {
			c.breaks("I1: %s reads a new result of %s in %s at %s, and has no slot", e.node, e.step.name, e.rollout, e.at.Sub(c.began))
		}
		read[at] = value
	}
}

// settled reports that an operator said what became of a step between two moments.
func (c *checker) settled(e event, from, to time.Time) bool {
	return c.again(e, from, to) || slices.ContainsFunc(c.all, func(w etcdmodel.Write) bool {
		return strings.Contains(w.Key, "/"+state.StepHash(e.step.name)+"/result/") && w.By == "operator" && w.Time.Before(to)
	})
}

// abandoned: once the fleet left a version, a node starts at most one more of its steps, before which it had asked
// (I6).
func (c *checker) abandoned() {
	type left struct {
		host    *host
		rollout string
		since   time.Time
	}
	more := map[left]int{}
	for _, e := range c.log {
		if e.what != "start" || !e.gated {
			continue
		}
		current, since := c.currentAt(e.at)
		if current == e.rollout || current == "" {
			continue
		}
		at := left{e.host, e.rollout, since}
		if more[at]++; more[at] > 1 {
			c.breaks("I6: %s starts %s of %s at %s, and the fleet is at %s since %s", e.node, e.step.name, e.rollout, e.at.Sub(c.began), current,
				fmt.Sprint(since.Sub(c.began)))
		}
	}
}

// currentAt is the fleet's rollout at a moment, and since when.
func (c *checker) currentAt(at time.Time) (rollout string, since time.Time) {
	for _, v := range c.moves {
		if v.since.After(at) {
			break
		}
		if v.rollout != rollout {
			rollout, since = v.rollout, v.since
		}
	}
	return rollout, since
}

// move is the fleet at another version.
type move struct {
	rollout string
	since   time.Time
}
