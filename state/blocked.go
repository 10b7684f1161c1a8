package state

import (
	"cmp"
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Blocked is a node for which others wait, directly or through more nodes, and what is known of it: that it does not go
// on by itself soon, or until when its lease lives.
type Blocked struct {
	Node string
	Why  string // in words; empty: it may be at work
	Remedy
}

// After is a reason to wait with what was found out behind it.
func (b *Blocked) After(reason string) string {
	if b.Why == "" {
		return reason
	}
	return reason + "; " + b.Why
}

// The bounds of how far waits are followed.
const (
	maxHops    = 8  // from one node to the next
	maxFollows = 20 // nodes at once
)

// Follow goes from the nodes that a node waits for at a version to those for whom these wait, until it finds one that
// waits for something which other nodes cannot end, or else the first for whose place an operator has to act; nil where
// there is none. waits are the statuses of some nodes that wait in a rollout.
func Follow(st Status, version string, waits func(nodes []string) (map[string]Status, error)) (*Blocked, error) {
	var place *Blocked
	seen := map[string]bool{}
	next := st.waitsFor(seen)
	for hop := 0; hop < maxHops && len(next) > 0; hop++ {
		found, err := waits(next)
		if err != nil {
			return nil, err
		}
		var after []string
		for _, node := range next {
			own, ok := found[node]
			if !ok || own.Version != version {
				continue
			}
			if own.Stays() {
				b := &Blocked{Node: node, Why: node + " waits itself for " + own.Reason, Remedy: own.Remedy}
				if len(own.waitsFor(map[string]bool{})) == 0 {
					return b, nil
				}
				if own.Kind.places() {
					place = cmp.Or(place, b)
				}
			}
			after = append(after, own.waitsFor(seen)...)
		}
		next = after[:min(len(after), maxFollows)]
	}
	return place, nil
}

// places reports a wait for one of several places, whose holders are named.
func (k WaitKind) places() bool { return k == WaitSlot || k == WaitTotal || k == WaitSerialize }

// waitsFor are the nodes that a status names, without those that were seen.
func (s Status) waitsFor(seen map[string]bool) (out []string) {
	names := []string{s.Ahead}
	for _, h := range s.Holders {
		names = append(names, h.Node)
	}
	for _, name := range names {
		if name != "" && !seen[name] && len(out) < maxFollows {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

// Waits are the statuses of some nodes that wait in a rollout.
func (s *Statuses) Waits(ctx context.Context, nodes []string) (map[string]Status, error) {
	var ops []clientv3.Op
	for _, node := range nodes {
		ops = append(ops, clientv3.OpGet(s.key(Rollout, Pending, node)))
	}
	answers, _, err := s.store.ReadMany(ctx, ops)
	if err != nil {
		return nil, err
	}
	out := map[string]Status{}
	for i, node := range nodes {
		for _, kv := range answers[i].GetResponseRange().Kvs {
			if st, err := Read[Status](s.store, kv); err == nil {
				out[node] = st
			}
		}
	}
	return out, nil
}
