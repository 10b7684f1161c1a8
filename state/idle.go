package state

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// LeaseTimes are how old a node's lease is since it was renewed last, and how long it lives, both by the clock of etcd.
type LeaseTimes struct {
	Age, Left time.Duration
}

// Idle is the first node of those that a status names where no pull is at work, since it was killed or ended: nobody
// renews its lease. Where each may be at work, it is the first of them, with the time until which nobody can tell. nil:
// none of them has a lease.
func (s *Views) Idle(ctx context.Context, st Status) (*Blocked, error) {
	times := map[string]LeaseTimes{}
	for _, node := range st.waitsFor(map[string]bool{}) {
		got, err := s.store.Client.Get(ctx, s.store.Presences.AliveKey(node))
		if err != nil {
			return nil, err
		}
		if len(got.Kvs) == 0 {
			continue
		}
		if times[node], err = s.leaseTimes(ctx, got.Kvs[0].Lease); err != nil {
			return nil, err
		}
	}
	return idleOf(st, time.Now(), times), nil
}

// Idles asks for the lease times of the nodes that live and for which others may wait: of so many as Follow follows at
// once, those first that hold slots.
func (s *Views) Idles(ctx context.Context, o *Overview) error {
	for _, node := range o.awaited() {
		var err error
		if o.Times[node], err = s.leaseTimes(ctx, o.Leases[node]); err != nil {
			return err
		}
	}
	return nil
}

// awaited are the nodes that live and hold slots, then those for which others say that they wait, and then those in the
// middle of a run.
func (o *Overview) awaited() (out []string) {
	var holding, named, running []string
	for _, claims := range o.Slots {
		for _, c := range claims {
			holding = append(holding, c.Node)
		}
	}
	seen := map[string]bool{}
	for _, node := range slices.Sorted(maps.Keys(o.Statuses)) {
		if st := o.Statuses[node][Rollout]; st.State == Pending && st.Kind.Idles() {
			named = append(named, st.waitsFor(seen)...)
		}
		if o.Statuses[node][Configured].State == Running {
			running = append(running, node)
		}
	}
	slices.Sort(holding)
	slices.Sort(named)
	for _, node := range slices.Concat(holding, named, running) {
		if o.Alive[node] && !slices.Contains(out, node) && len(out) < maxFollows {
			out = append(out, node)
		}
	}
	return out
}

func (s *Views) leaseTimes(ctx context.Context, lease int64) (LeaseTimes, error) {
	left, err := s.store.Client.TimeToLive(ctx, clientv3.LeaseID(lease))
	if err != nil {
		return LeaseTimes{}, err
	}
	return LeaseTimes{time.Duration(left.GrantedTTL-left.TTL) * time.Second, time.Duration(left.TTL) * time.Second}, nil
}

// IdleOf is Idle for the nodes that Idles asked for.
func (o *Overview) IdleOf(st Status) *Blocked { return idleOf(st, time.Now(), o.Times) }

func idleOf(st Status, now time.Time, times map[string]LeaseTimes) (first *Blocked) {
	for _, node := range st.waitsFor(map[string]bool{}) {
		t, known := times[node]
		switch b := idle(node, now, t, st.Frees); {
		case !known || t.Left <= 0: // it ended just now
		case b.Why != "":
			return b
		case first == nil:
			first = b
		}
	}
	return first
}

// idle says of a node until when its lease lives and what comes then, and whether a pull is at work there: while one
// is, it renews the lease.
func idle(node string, now time.Time, t LeaseTimes, frees bool) *Blocked {
	then := fmt.Sprintf("start %[1]s again, or give it up: pullet decommission %[1]s", node)
	if frees {
		then = "its place is freed"
	}
	ends := now.Add(t.Left).Local().Format(time.TimeOnly)
	if t.Age < renewEvery*3/2 {
		return &Blocked{
			Node: node,
			Remedy: Itself(
				fmt.Sprintf(
					"%s; if no pull of %s is at work, it counts as lost from %s: then %s",
					noAction,
					node,
					ends,
					then,
				),
			),
		}
	}
	return &Blocked{
		Node:   node,
		Why:    fmt.Sprintf("no pull of %s is at work since %s", node, now.Add(-t.Age).Local().Format(time.TimeOnly)),
		Remedy: InTime(fmt.Sprintf("its next pull goes on, or it counts as lost from %s: then %s", ends, then)),
	}
}

// Idles reports whether a kind of wait ends only when a pull of the nodes that it names goes on.
func (k WaitKind) Idles() bool {
	return slices.Contains(
		[]WaitKind{WaitSlot, WaitTotal, WaitQueue, WaitRole, WaitBarrier, WaitSerialize, WaitResult},
		k,
	)
}
