// Package rules draws the versions of a storm: the limits of hosts, and the failures. It writes them as files of a
// state repository, and returns their meaning for the judge. Tests only.
package rules

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// Rules are the contents of pullet.yaml and nodes/ of a version, and of its jobs.
type Rules struct {
	Roles    map[string]string // by node
	Canary   map[string]bool   // by node
	Limit    int               // nodes of a group at a time
	Half     bool              // half of the nodes of web at a time
	Total    int               // nodes of all groups at a time; 0 is no limit
	Mapped   bool              // db and web are one group
	Depends  bool              // web depends on db
	Serial   int               // nodes at a time at the serialized step
	Closed   bool              // no maintenance window opens for days, except for canaries
	Bad      string            // the step that fails, "validation", "syntax", or "" if nothing fails
	BadNode  string            // the node on which it fails
	StepTime time.Duration     // of a step
	OnLost   string            // "hold" or "release"
}

// The values of Rules.Bad that are not steps.
const (
	badValidation = "validation"
	badSyntax     = "syntax"
)

// First returns the rules of the first version, for nodes with these roles.
func First(roles map[string]string, onLost string) *Rules {
	return &Rules{
		Roles: roles, Canary: map[string]bool{"edge1": true}, Limit: 1, Total: 3, Depends: true, Serial: 1,
		StepTime: 150 * time.Millisecond, OnLost: onLost,
	}
}

// group returns the group of a node.
func (r *Rules) group(node string) string {
	if r.Canary[node] {
		return "canary"
	}
	return r.home(node)
}

// home returns the group of the role of a node, in which a canary counts too.
func (r *Rules) home(node string) string {
	role := r.Roles[node]
	if r.Mapped && (role == "db" || role == "web") {
		return "both"
	}
	return role
}

// nodes returns the names of the nodes in their order.
func (r *Rules) nodes() []string { return slices.Sorted(maps.Keys(r.Roles)) }

// size returns the number of nodes with a role.
func (r *Rules) size(role string) (n int) {
	for _, one := range r.Roles {
		if one == role {
			n++
		}
	}
	return n
}

// Version returns the meaning of the rules for the judge, as those of the commit with this number and ID.
func (r *Rules) Version(number int, id string) *Version {
	v := &Version{
		Number: number, ID: id, Roles: r.Roles, Total: r.Total, Serial: r.Serial, Closed: r.Closed, Bad: r.Bad,
		OnLost: r.OnLost,
		Groups: map[string]string{}, Homes: map[string]string{}, Limits: map[string]int{},
		Depends: map[string][]string{}, Meet: map[string]string{},
	}
	sizes := map[string]int{}
	for _, node := range r.nodes() {
		group := r.group(node)
		v.Groups[node], v.Homes[node] = group, r.home(node)
		sizes[group]++
		if v.Limits[group] = r.Limit; group == "web" && r.Half {
			v.Limits[group] = max(1, sizes[group]/2)
		}
		if group != "canary" {
			v.Depends[group] = []string{"canary"}
		}
		if r.Roles[node] != "edge" {
			v.Meet[node] = "others"
			if group == "canary" || group == "web" && r.Depends {
				v.Meet[node] = group
			}
		}
	}
	for _, home := range v.Homes { // of which all nodes may be canaries
		if _, set := v.Limits[home]; !set {
			if v.Limits[home] = r.Limit; home == "web" && r.Half {
				v.Limits[home] = 1
			}
		}
	}
	if r.Depends && !r.Mapped && v.Depends["web"] != nil {
		v.Depends["web"] = append(v.Depends["web"], "db")
	}
	if len(sizes) > 0 && sizes["canary"] == 0 {
		for group := range v.Depends {
			v.Depends[group] = slices.DeleteFunc(v.Depends[group], func(g string) bool { return g == "canary" })
		}
	}
	return v
}

// Change draws the rules of the next version.
func (r *Rules) Change(x *rand.Rand) *Rules {
	next := *r
	next.Roles, next.Canary = maps.Clone(r.Roles), maps.Clone(r.Canary)
	next.Bad, next.BadNode, next.Closed = "", "", false
	nodes := next.nodes()
	some := func() string { return nodes[x.IntN(len(nodes))] }
	if x.IntN(3) == 0 {
		node := some()
		next.Canary[node] = !next.Canary[node]
	}
	// Each role keeps a node: the rules name all of them.
	if node := some(); x.IntN(5) == 0 && next.Roles[node] != "edge" && next.size(next.Roles[node]) > 1 {
		next.Roles[node] = map[string]string{"db": "web", "web": "db"}[next.Roles[node]]
	}
	if x.IntN(4) == 0 {
		next.Total = []int{0, 2, 3}[x.IntN(3)]
	}
	if x.IntN(5) == 0 {
		next.Mapped = !next.Mapped
	}
	if x.IntN(4) == 0 {
		next.Depends = !next.Depends
	}
	if x.IntN(4) == 0 {
		next.Limit, next.Half = 1+x.IntN(2), x.IntN(2) == 0
	}
	if x.IntN(4) == 0 {
		next.Serial = 1 + x.IntN(2)
	}
	next.StepTime = time.Duration(50+x.IntN(700)) * time.Millisecond
	if x.IntN(5) == 0 {
		next.Bad, next.BadNode = []string{Work, Serial, Behind, Last, badValidation, badSyntax}[x.IntN(6)], some()
	} else {
		next.Closed = x.IntN(12) == 0
	}
	return &next
}

// Fix returns rules with which every node can succeed.
func (r *Rules) Fix() *Rules {
	next := *r
	next.Bad, next.BadNode, next.Closed, next.StepTime = "", "", false, 100*time.Millisecond
	return &next
}
