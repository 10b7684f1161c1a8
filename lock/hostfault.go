package lock

import (
	"fmt"
	"slices"

	"github.com/pullet/pullet/state"
)

// A host fault is a failure that the host causes and not the commit: a full disk, a link that a local user planted. The
// host keeps its claim, because it may be half changed, but the claim does not use up the group's limit: else one local
// user could stop a whole role. At most Rules.MaxHostFailures hosts of a group fail this way before the group halts. So
// at any time no more than the limit plus that number of hosts are unavailable.

// hostFailures is how many hosts of a roster may fail by faults of their own before the group halts.
func (r Rules) hostFailures(roster int) int {
	if r.MaxHostFailures == nil {
		return 0
	}
	return r.MaxHostFailures(max(1, roster))
}

// faultyHosts is how many of the claims of other nodes do not count against the limit. The gate that it reads is
// compared when a claim is made: an admission never rests on a host fault that is struck meanwhile.
func (v View) faultyHosts() int {
	n := 0
	for _, c := range v.Claims {
		if c.Node != v.Node && slices.Contains(v.Gate.Hosts, c.Node) {
			n++
		}
	}
	for _, g := range v.Guests { // of the group itself, as a canary sees it
		if g.Group == v.Group && slices.Contains(v.Gate.Hosts, g.Node) {
			n++
		}
	}
	return min(n, v.MaxHostFaults)
}

// survived is how many failures do not halt a group, or a step.
type survived struct{ failures, hosts int }

// survived is what the pool's group survives. At a serialized step, or a command, no failure of the commit is survived.
func (p *pool) survived(q *Request, roster int) survived {
	s := survived{hosts: q.Rules.hostFailures(roster)}
	if p.slots {
		s.failures = q.Rules.MaxFailures
	}
	return s
}

// count counts a node's failure in a gate, once a node, and halts a group that has too many. It reports that a failure
// of the commit halted it.
func (s survived) count(gate *state.Gate, node, reason string, how Failure) bool {
	if how == Host {
		s.countHostFault(gate, node, reason)
		return false
	}
	return s.countFailure(gate, node, reason)
}

// countHostFault counts a host fault. A node that failed by the commit stays counted there until it succeeds: a fault
// of its host must not hide that.
func (s survived) countHostFault(gate *state.Gate, node, reason string) {
	if !gate.Counts(node) {
		gate.Hosts = append(gate.Hosts, node)
	}
	if len(gate.Hosts) > s.hosts && gate.State != state.Halted {
		gate.Halt(node, tooManyHosts(len(gate.Hosts), s.hosts)+": "+reason)
	}
}

func tooManyHosts(n, survives int) string {
	return fmt.Sprintf("host faults: %d, and rollout.maxHostFailures is %d here", n, survives)
}

// countFailure counts a failure of the commit.
func (s survived) countFailure(gate *state.Gate, node, reason string) bool {
	gate.Hosts = without(gate.Hosts, node)
	if !slices.Contains(gate.Failed, node) {
		gate.Failed = append(gate.Failed, node)
	}
	if len(gate.Failed) > s.failures && gate.State != state.Halted {
		gate.Halt(node, reason)
		return true
	}
	return false
}

// uncount takes a node's failure out of a gate, and reports that there was one.
func uncount(g *state.Gate, node string) bool {
	if !g.Counts(node) {
		return false
	}
	g.Failed, g.Hosts = without(g.Failed, node), without(g.Hosts, node)
	return true
}

// without is a list less one of its items.
func without(list []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == one })
}
