// Package arbiter keeps the hosts of a fleet from waiting for each other in a circle. Versions and runs of reactions
// are items of work. The hosts of an item wait for each other: at steps with sync, serialize or target, and, in a
// version, behind canaries and other roles. A host that waits in one item for a host that waits in another one would
// wait for ever if the second waits for the first.
//
// Two rules prevent that. A run whose hosts wait for each other opens at once on all of them, while none of them is
// within another item, and no other open run has them ahead. Until a host is through with an open run, it begins with
// nothing else. So hosts of an open run wait only for hosts of that run, all of which can go on; and hosts of a version
// wait for those at most until the run is over.
package arbiter

import (
	"maps"
	"slices"
)

// Part is how far a host is with an item.
type Part int

// The parts of hosts.
const (
	Over   Part = iota // the host is through, or has no part in the item
	Ahead              // the host has not begun
	Within             // the host began, and is not through: also while it waits for others
)

// Item is a version or a run of a reaction.
type Item struct {
	Name  string          // for people: "version 1a2b3c4d", "run RUN of the reaction disk/full"
	Run   string          // the id of a run; "" for a version
	Open  bool            // a run that opened; a version never does: its hosts begin one by one
	Parts map[string]Part // by host
}

// Crossing is an item that keeps another one from some hosts.
type Crossing struct {
	Item  Item
	Hosts []string // sorted, never empty
}

// ToOpen returns what keeps a run from opening beside other items; nil if nothing does.
func ToOpen(run Item, others []Item) *Crossing {
	for _, other := range others {
		if other.Run != "" && other.Run == run.Run {
			continue
		}
		crossed := other.among(run, func(p Part) bool { return p == Within || p == Ahead && other.Open })
		if crossed != nil {
			return crossed
		}
	}
	return nil
}

// ToBegin returns the open run that a host has to be through with before it begins with a version; nil if there is
// none.
func ToBegin(host string, others []Item) *Crossing {
	for _, other := range others {
		if other.Open && other.Parts[host] != Over {
			return &Crossing{other, []string{host}}
		}
	}
	return nil
}

// among returns the hosts of a run that have a part of this kind in the item.
func (i Item) among(run Item, keeps func(Part) bool) *Crossing {
	var hosts []string
	for _, host := range slices.Sorted(maps.Keys(run.Parts)) {
		if run.Parts[host] != Over && keeps(i.Parts[host]) {
			hosts = append(hosts, host)
		}
	}
	if len(hosts) == 0 {
		return nil
	}
	return &Crossing{i, hosts}
}
