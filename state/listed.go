package state

import (
	"encoding/json"
	"maps"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Listed are the nodes that the inventory of a version lists, by role. Who proposes the version writes it beside it, so
// that a command without the repository knows whom the fleet waits for.
type Listed map[string][]string

// maxListed is how large the list may be, in bytes: a request to etcd holds it with the rest of the proposal. A longer
// one is not written.
const maxListed = 1 << 20

func (l *Listed) limit() int { return maxListed }

func (l *Listed) check(Key) error {
	var c checks
	c.unless(len(*l) <= maxNames, "it has %d roles, of %d at most", len(*l), maxNames)
	names := 0
	for role, nodes := range *l {
		c.word("role", role)
		c.nodes(nodes)
		names += len(nodes)
	}
	c.unless(names <= maxNames, "it names %d nodes, of %d at most", names, maxNames)
	return c.err
}

// ListedKey is where the inventory of a version is listed.
func (s *Nodes) ListedKey(version string) string { return s.store.key("inventory", version) }

// ListedBy lists an inventory for a proposal.
func ListedBy(inventory map[string]Member) Listed {
	out := Listed{}
	for _, name := range slices.Sorted(maps.Keys(inventory)) {
		out[inventory[name].Role] = append(out[inventory[name].Role], name)
	}
	return out
}

// listOps write the list of a version.
func (s *Nodes) listOps(v Version) []clientv3.Op {
	text, _ := json.Marshal(v.Listed) // plain data
	if len(v.Listed) == 0 || len(text) > maxListed {
		return nil
	}
	return []clientv3.Op{clientv3.OpPut(s.ListedKey(v.ID), string(text))}
}

// roles are the listed nodes with their roles.
func (l Listed) roles() map[string]string {
	out := map[string]string{}
	for role, nodes := range l {
		for _, node := range nodes {
			out[node] = role
		}
	}
	return out
}
