package state

import (
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/authority"
)

// writer says who may write the records of a kind. Whoever has a role may read all of them.
type writer int

const (
	nodes     writer = iota // every node
	itsNode                 // the node that its key names
	operators               // people, and no node
	keeper                  // who keeps the datastore, and nobody else
	holder                  // whom its key names: a host, an operator or a viewer
)

// String is the writer in the words of the table in docs/etcd.md.
func (w writer) String() string {
	return [...]string{"every host", "its host", "operators", "the keeper", "whom it names"}[w]
}

// Range are keys from From up to, and without, End. With no End it is one key.
type Range struct{ From, End string }

// covers reports that all keys of another range are among those of this one.
func (r Range) covers(o Range) bool {
	if r.End == "" {
		return r == o
	}
	if o.End == "" {
		return r.From <= o.From && o.From < r.End
	}
	return r.From <= o.From && o.From < o.End && o.End <= r.End // etcd takes the end "\x00" for none
}

func prefixed(key string) Range { return Range{key, clientv3.GetPrefixRangeEnd(key)} }

// Role is what somebody with a name may do in a fleet's record.
type Role struct {
	Name  string
	Read  []Range
	Write []Range // all of which may be read, too
}

// Permission is what a role may do with a range of keys.
type Permission struct {
	Range
	Write bool // beside reading
}

// Word is the permission as etcdctl spells it.
func (p Permission) Word() string {
	if p.Write {
		return "readwrite"
	}
	return "read"
}

// Permissions are those of a role as etcd has them: one for a range.
func (r Role) Permissions() (out []Permission) {
	for _, keys := range r.Read {
		if !slices.Contains(r.Write, keys) {
			out = append(out, Permission{Range: keys})
		}
	}
	for _, keys := range r.Write {
		out = append(out, Permission{keys, true})
	}
	return out
}

// RolesOf are those of somebody.
func RolesOf(kind authority.Kind, fleet, name string) []Role {
	switch kind {
	case authority.Node:
		return NodeRoles(fleet, name)
	case authority.Operator:
		return OperatorRoles(fleet, name)
	default:
		return ViewerRoles(fleet, name)
	}
}

// The names of the roles that all nodes, all operators and all viewers have. Each of them has one of its own beside.
const (
	nodesRole    = "nodes"
	operatorRole = "operators"
	viewerRole   = "viewers"
)

// dns are the keys that CoreDNS reads: they name services, so that no key in them says whose it is.
var dns = prefixed(dnsPath + "/")

// OwnRole is the name of the role that somebody has alone.
func OwnRole(name string) string { return "own-" + name }

// NodeRoles are what a node may do: what all may, and what it alone may.
func NodeRoles(fleet, node string) []Role {
	own := ownRole(fleet, node)
	own.Write = append(own.Write, ranges(fleet, node, itsNode)...)
	return []Role{NodesRole(fleet), own}
}

// ownRole is what nobody else may do: an operator who could ask for the next certificate of another one would act in
// that one's name.
func ownRole(fleet, name string) Role {
	return Role{Name: OwnRole(name), Write: ranges(fleet, name, holder)}
}

// writable is all that a node may write.
func writable(fleet, node string) (out []Range) {
	for _, r := range NodeRoles(fleet, node) {
		out = append(out, r.Write...)
	}
	return out
}

// NodesRole is what all nodes may do.
func NodesRole(fleet string) Role {
	return Role{nodesRole, all(fleet), append(ranges(fleet, "", nodes), dns)}
}

// OperatorRole is what operators may do: whatever a node may do, and what only people may.
func OperatorRole(fleet string) Role {
	write := append(ranges(fleet, "", nodes), dns)
	for _, w := range []writer{itsNode, operators} {
		write = append(write, ranges(fleet, "", w)...)
	}
	return Role{operatorRole, all(fleet), write}
}

// OperatorRoles are what one of them may do.
func OperatorRoles(fleet, name string) []Role {
	return []Role{OperatorRole(fleet), ownRole(fleet, name)}
}

// ViewerRole is what people may do who only look.
func ViewerRole(fleet string) Role { return Role{Name: viewerRole, Read: all(fleet)} }

// ViewerRoles are what one of them may do: each may ask for its next certificate.
func ViewerRoles(fleet, name string) []Role {
	return []Role{ViewerRole(fleet), ownRole(fleet, name)}
}

func all(fleet string) []Range { return []Range{prefixed("/pullet/" + fleet + "/"), dns} }

// ranges are the keys of the kinds that somebody writes: those of a node, or with an empty name those of all nodes.
func ranges(fleet, node string, by writer) []Range {
	var out []Range
	for _, k := range kinds {
		if k.by != by {
			continue
		}
		for _, r := range k.ranges("/pullet/"+fleet, node) {
			if !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out
}

// ranges are the keys of a kind. A word in capitals ends what a range can say, but for the node that is meant, and for
// words of which there are few.
func (k *kind) ranges(prefix, node string) []Range {
	open := []string{prefix}
	for word := range strings.SplitSeq(k.shape, "/") {
		var values []string
		switch {
		case word[0] >= 'a':
			values = []string{word}
		case word == "NODE" && node != "":
			values = []string{node}
		case word == "CATEGORY" && node != "":
			values = Categories()
		case word == "STATE" && node != "":
			values = states[:]
		default:
			return each(open, func(key string) Range { return prefixed(key + "/") })
		}
		open = product(open, values)
	}
	return each(open, func(key string) Range { return Range{From: key} })
}

func product(open, values []string) (out []string) {
	for _, o := range open {
		for _, v := range values {
			out = append(out, o+"/"+v)
		}
	}
	return out
}

func each(keys []string, of func(string) Range) (out []Range) {
	for _, k := range keys {
		out = append(out, of(k))
	}
	return out
}
