package lock

import (
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

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

// spared is how many of the claims of other nodes do not count against the limit. The gate that it reads is compared
// when a claim is made: an admission never rests on a host fault that is struck meanwhile.
func (v View) spared() int {
	n := 0
	for _, c := range v.Claims {
		if c.Node != v.Node && slices.Contains(v.Gate.Hosts, c.Node) {
			n++
		}
	}
	return min(n, v.Spares)
}

// faults counts a host fault, once a node, and halts a group that has too many. A node that failed by the commit stays
// counted there until it succeeds: a fault of its host must not hide that.
func faults(gate *state.Gate, node, reason string, survives int) {
	if !counted(*gate, node) {
		gate.Hosts = append(gate.Hosts, node)
	}
	if len(gate.Hosts) > survives && gate.State != state.Halted {
		gate.Halt(node, tooManyHosts(len(gate.Hosts), survives)+": "+reason)
	}
}

func tooManyHosts(n, survives int) string {
	return fmt.Sprintf("host faults: %d, and rollout.maxHostFailures is %d here", n, survives)
}

// fails counts a failure of the commit, once a node, and halts a group that has too many. It reports that it did.
func fails(gate *state.Gate, node, reason string, survives int) bool {
	gate.Hosts = without(gate.Hosts, node)
	if !slices.Contains(gate.Failed, node) {
		gate.Failed = append(gate.Failed, node)
	}
	if len(gate.Failed) > survives && gate.State != state.Halted {
		gate.Halt(node, reason)
		return true
	}
	return false
}

// counted reports that a node's failure counts in a gate.
func counted(g state.Gate, node string) bool {
	return slices.Contains(g.Failed, node) || slices.Contains(g.Hosts, node)
}

// strike takes a node's failure out of a gate, and reports that there was one.
func strike(g *state.Gate, node string) bool {
	if !counted(*g, node) {
		return false
	}
	g.Failed, g.Hosts = without(g.Failed, node), without(g.Hosts, node)
	return true
}

// freeTotal gives the node's place in the whole fleet back, and keeps that in its group: a broken host must not keep
// other groups waiting. It retries inside its place in the group.
func (t *Turn) freeTotal() []clientv3.Op {
	if t.key == "" {
		return nil
	}
	idle := t.claimed(t.at)
	idle.Idle = true
	ops := []clientv3.Op{state.Put(t.key, idle)}
	if t.total != "" {
		ops = append(ops, clientv3.OpDelete(t.total))
	}
	return ops
}
