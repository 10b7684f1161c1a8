package state

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Blocked is a node for which others wait, directly or through more nodes, and that does not go on by itself soon.
type Blocked struct {
	Node  string
	Why   string // in words
	Clear string // what ends it: a command, or a time
}

// The bounds of how far waits are followed.
const (
	maxHops    = 8  // from one node to the next
	maxFollows = 20 // nodes at once
)

// Follow goes from the nodes that a node waits for at a version to those for whom these wait, until it finds one that waits for something
// which other nodes cannot end; nil where there is none. waits are the statuses of some nodes that wait in a rollout.
func Follow(st Status, version string, waits func(nodes []string) (map[string]Status, error)) (*Blocked, error) {
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
			if own.Clear != NoAction && own.Clear != "" && len(own.waitsFor(map[string]bool{})) == 0 {
				return &Blocked{Node: node, Why: node + " waits itself for " + own.Reason, Clear: own.Clear}, nil
			}
			after = append(after, own.waitsFor(seen)...)
		}
		next = after[:min(len(after), maxFollows)]
	}
	return nil, nil
}

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

// WaitsOf are the statuses of some nodes that wait in a rollout.
func (s *Store) WaitsOf(ctx context.Context, nodes []string) (map[string]Status, error) {
	var ops []clientv3.Op
	for _, node := range nodes {
		ops = append(ops, clientv3.OpGet(s.statusKey(Rollout, Pending, node)))
	}
	answers, _, err := s.readMany(ctx, ops)
	if err != nil {
		return nil, err
	}
	out := map[string]Status{}
	for i, node := range nodes {
		for _, kv := range answers[i].GetResponseRange().Kvs {
			if st, err := Read[Status](s, kv); err == nil {
				out[node] = st
			}
		}
	}
	return out, nil
}

// Idle is the first node of those that a status names whose lease lives although nobody renews it: no pull is at work there, since it was killed or
// ended. It goes on with its next pull, or counts as lost when the lease ends; nil where there is none.
func (s *Store) Idle(ctx context.Context, st Status) (*Blocked, error) {
	for _, node := range st.waitsFor(map[string]bool{}) {
		got, err := s.Client.Get(ctx, s.AliveKey(node))
		if err != nil {
			return nil, err
		}
		if len(got.Kvs) == 0 {
			continue
		}
		if b, err := s.idleLease(ctx, node, got.Kvs[0].Lease); b != nil || err != nil {
			return b, err
		}
	}
	return nil, nil
}

// Idles asks of the nodes that hold slots, or come first in a queue, whether a pull is at work there: of so many as Follow follows at once.
func (s *Store) Idles(ctx context.Context, o *Overview) error {
	alive := map[string]bool{}
	for _, claims := range o.Slots {
		for _, c := range claims {
			alive[c.Node] = o.Alive[c.Node]
		}
	}
	for _, categories := range o.Statuses {
		ahead := categories[Rollout].Ahead
		alive[ahead] = o.Alive[ahead]
	}
	maps.DeleteFunc(alive, func(_ string, lives bool) bool { return !lives })
	nodes := slices.Sorted(maps.Keys(alive))
	for _, node := range nodes[:min(len(nodes), maxFollows)] {
		b, err := s.idleLease(ctx, node, o.Leases[node])
		if err != nil {
			return err
		}
		if b != nil {
			o.Idle[node] = b
		}
	}
	return nil
}

func (s *Store) idleLease(ctx context.Context, node string, lease int64) (*Blocked, error) {
	left, err := s.Client.TimeToLive(ctx, clientv3.LeaseID(lease))
	if err != nil {
		return nil, err
	}
	return idle(node, time.Now(), left.GrantedTTL, left.TTL), nil
}

// IdleOf is the first node of those that a status names where no pull is at work, as far as Idles found any.
func (o *Overview) IdleOf(st Status) *Blocked {
	for _, node := range st.waitsFor(map[string]bool{}) {
		if b := o.Idle[node]; b != nil {
			return b
		}
	}
	return nil
}

// idle says of a lease, by its seconds, since when nobody renews it and when it ends.
func idle(node string, now time.Time, granted, left int64) *Blocked {
	age, rest := time.Duration(granted-left)*time.Second, time.Duration(left)*time.Second
	if left < 0 || age < renewEvery*3/2 {
		return nil
	}
	return &Blocked{
		Node: node, Why: fmt.Sprintf("no pull of %s is at work since %s", node, now.Add(-age).Local().Format(time.TimeOnly)),
		Clear: fmt.Sprintf("its next pull goes on, or it counts as lost from %s", now.Add(rest).Local().Format(time.TimeOnly)),
	}
}

// Idles reports whether a kind of wait ends only when a pull of the nodes that it names goes on.
func (k WaitKind) Idles() bool {
	return slices.Contains([]WaitKind{WaitSlot, WaitTotal, WaitQueue, WaitRole, WaitBarrier, WaitSerialize, WaitResult}, k)
}
