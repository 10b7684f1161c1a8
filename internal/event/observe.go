package event

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/state"
)

// The events that the reactor finds in the fleet's record. Hosts cannot tell them of themselves.
const (
	nodeJoined      = "pullet/node/joined"
	nodeLost        = "pullet/node/lost"
	nodeBack        = "pullet/node/back"
	nodeGone        = "pullet/node/decommissioned"
	rolloutStarted  = "pullet/rollout/started"
	rolloutHalted   = "pullet/rollout/halted"
	rolloutFinished = "pullet/rollout/finished"
	rolloutUndone   = "pullet/rollout/undone"
	serviceReady    = "pullet/service/ready"
	serviceGone     = "pullet/service/gone"
)

// FoundInRecord are the names of events that the reactor finds in the fleet's record.
func FoundInRecord() []string {
	return []string{
		nodeJoined, nodeLost, nodeBack, nodeGone, rolloutStarted, rolloutHalted, rolloutFinished, rolloutUndone, serviceReady,
		serviceGone,
	}
}

// Change is an event that the reactor found, and what it knows once that is told.
type Change struct {
	state.Event
	Tell func(*state.Observed)
}

// perEvent is about how many hosts one event is.
const perEvent = 100

// Observe compares what the reactor knew with the fleet as it is at a time by the fleet's clock. It is a pure function.
// Where nothing was known, nothing changed.
func Observe(was *state.Observed, now *state.Overview, at time.Time) (next state.Observed, out []Change) {
	seen := observed(now, at)
	if was == nil {
		return seen, nil
	}
	next = *was
	if next.At = at; was.Rollout == seen.Rollout {
		next.Halted = without(was.Halted, without(was.Halted, seen.Halted)) // what was opened is no event
	}
	return next, slices.Concat(rolloutChanges(was, &seen, now), nodeChanges(was, &seen), serviceChanges(was, &seen))
}

// observed is the fleet as it is.
func observed(o *state.Overview, at time.Time) state.Observed {
	out := state.Observed{At: at, Nodes: slices.Sorted(maps.Keys(o.Nodes))}
	out.Finished = o.Current != nil
	for _, name := range out.Nodes {
		switch {
		case !o.Alive[name]:
			out.Lost = append(out.Lost, name)
		case o.Current != nil && o.Running[name] != o.Current.ID:
			out.Finished = false
		}
	}
	if v := o.Current; v != nil {
		out.Version, out.Rollout, out.Release = v.ID, v.Rollout(), v.Release
		for _, group := range slices.Sorted(maps.Keys(o.Gates)) {
			if o.Gates[group].State == state.Halted {
				out.Halted = append(out.Halted, group)
			}
		}
	}
	for name, byNode := range o.Services {
		for node, s := range byNode {
			if !s.Ready.IsZero() && o.Alive[node] {
				out.Ready = append(out.Ready, name+"/"+node)
			}
		}
	}
	slices.Sort(out.Ready)
	return out
}

// rolloutChanges are how the fleet's rollout went on.
func rolloutChanges(was, seen *state.Observed, o *state.Overview) (out []Change) {
	v := o.Current
	if v == nil {
		return nil
	}
	data := func(more ...string) map[string]any {
		d := map[string]any{"version": v.ID, "release": v.Release, "by": v.By, "reason": v.Reason}
		for i := 0; i+1 < len(more); i += 2 {
			d[more[i]] = more[i+1]
		}
		return d
	}
	add := func(name string, hosts []string, d map[string]any, tell func(*state.Observed)) {
		out = append(out, Change{state.Event{Name: name, Hosts: hosts, Data: d}, tell})
	}
	halted := was.Halted
	if was.Rollout != seen.Rollout {
		halted = nil
		name := rolloutStarted
		if v.Epoch > 0 && slices.Contains(v.Bad, was.Version) {
			name = rolloutUndone
		}
		add(name, nil, data("from", was.Version), func(o *state.Observed) {
			o.Version, o.Rollout, o.Release, o.Finished, o.Halted = seen.Version, seen.Rollout, seen.Release, false, nil
		})
	}
	for _, group := range without(seen.Halted, halted) {
		gate := o.Gates[group]
		var hosts []string
		if gate.Node != "" {
			hosts = []string{gate.Node}
		}
		scope := state.GroupGate{Group: group, Gate: gate}.Scope()
		add(rolloutHalted, hosts, data("scope", scope, "why", gate.Why()), func(o *state.Observed) {
			o.Halted = with(o.Halted, []string{group})
		})
	}
	if seen.Finished && (was.Rollout != seen.Rollout || !was.Finished) {
		add(rolloutFinished, nil, data(), func(o *state.Observed) { o.Finished = true })
	}
	return out
}

// nodeChanges are hosts that came, went, and came back.
func nodeChanges(was, seen *state.Observed) (out []Change) {
	joined, gone := without(seen.Nodes, was.Nodes), without(was.Nodes, seen.Nodes)
	lost := without(without(seen.Lost, was.Lost), joined)
	back := without(without(was.Lost, seen.Lost), gone)
	add := func(name string, nodes []string, tell func(*state.Observed, []string)) {
		for some := range slices.Chunk(nodes, perEvent) {
			out = append(out, Change{state.Event{Name: name, Hosts: some}, func(o *state.Observed) { tell(o, some) }})
		}
	}
	add(nodeJoined, joined, func(o *state.Observed, some []string) { o.Nodes = with(o.Nodes, some) })
	add(nodeLost, lost, func(o *state.Observed, some []string) { o.Lost = with(o.Lost, some) })
	add(nodeBack, back, func(o *state.Observed, some []string) { o.Lost = without(o.Lost, some) })
	add(nodeGone, gone, func(o *state.Observed, some []string) {
		o.Nodes, o.Lost = without(o.Nodes, some), without(o.Lost, some)
	})
	return out
}

// serviceChanges are instances of services that became ready, or are it no more.
func serviceChanges(was, seen *state.Observed) (out []Change) {
	add := func(name, instance string, edit func(list, names []string) []string) {
		service, node, _ := strings.Cut(instance, "/")
		e := state.Event{Name: name, Hosts: []string{node}, Data: map[string]any{"service": service}}
		out = append(out, Change{e, func(o *state.Observed) { o.Ready = edit(o.Ready, []string{instance}) }})
	}
	for _, instance := range without(seen.Ready, was.Ready) {
		add(serviceReady, instance, with)
	}
	for _, instance := range without(was.Ready, seen.Ready) {
		add(serviceGone, instance, without)
	}
	return out
}

// with and without are sorted lists with more names, or fewer.
func with(list, more []string) []string {
	out := slices.Concat(list, more)
	slices.Sort(out)
	return slices.Compact(out)
}

func without(list, fewer []string) (out []string) {
	for _, name := range list {
		if _, has := slices.BinarySearch(fewer, name); !has {
			out = append(out, name)
		}
	}
	return out
}
