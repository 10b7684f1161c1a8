package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// request is the node's wish to change to a version, under the rules of that version or those that the rollout was started with.
func (p *pull) request(v *state.Version, program *compiled) (lock.Request, error) {
	rollout, err := program.rules(v)
	if err != nil {
		return lock.Request{}, err
	}
	return p.requestUnder(rollout, v, program.catalog), nil
}

// requestUnder is request under these rules.
func (p *pull) requestUnder(rollout render.Rollout, v *state.Version, cat *render.Catalog) lock.Request {
	if v.Proven && rollout.Canary != nil {
		rollout.Canary = &render.Canary{Target: rollout.Canary.Target}
	}
	rules := rulesFor(rollout, cat.Node)
	if rollout.LimitsInstructed() {
		rules.Raise = fmt.Sprintf("raise rolling_rules in the instructions (upgrade.json, or the file that was given) and give them again: "+
			"pullet rollout start %s --instructions FILE", v)
	}
	return lock.Request{
		Presence: p.presence, Version: v, VersionRev: p.agreed, Stale: p.current == nil || v.Rollout() != p.current.Rollout(), Run: p.out.Run, Order: p.local.Order(v.Rollout()), Lasting: !p.loop,
		Brief: p.Wait < lock.Patience, Parked: p.local.Parked == v.Rollout(),
		Rules: rules, Inventory: members(cat.Inventory), Waiting: p.waiting(v),
	}
}

// members are the inventory's nodes as rosters see them.
func members(inventory render.Inventory) map[string]state.Member {
	out := map[string]state.Member{}
	for name, n := range inventory {
		out[name] = state.Member{Role: n.Role(), Labels: n.Labels}
	}
	return out
}

// rulesFor are the rules of a rollout as they hold for a node.
func rulesFor(r render.Rollout, node render.Node) lock.Rules {
	own := r.Group(node.Name, node.Labels)
	group := state.GroupOf(own)
	out := lock.Rules{
		Group: group, Role: node.Role(), Total: r.RollingRules.Total, MaxFailures: r.MaxFailures, MaxHostFailures: r.HostFailuresFor, OnLost: r.OnLost, Deadline: r.Progress(),
		GroupOf: func(name string, m state.Member) string { return state.GroupOf(r.Group(name, m.Labels)) },
		Limit:   func(roster int) int { return r.LimitFor(own, roster) },
		Closed: func(now time.Time) string {
			if at := r.Opens(own, now); !at.IsZero() {
				return at.Format(render.WindowTime)
			}
			return ""
		},
		Soak: func(g string) time.Duration {
			if r.Canary == nil || g != render.CanaryGroup {
				return 0
			}
			return r.Canary.Soak.Std()
		},
	}
	for _, g := range r.Depends(own) {
		out.Depends = append(out.Depends, state.GroupOf(g))
	}
	return out
}

// waiting tells everybody why the node waits. Several steps may wait at once.
func (p *pull) waiting(v *state.Version) func(*lock.Wait) {
	said, settled := "", p.upToDate(v) // asked now: steps write the journal later
	var mu sync.Mutex
	return func(w *lock.Wait) {
		mu.Lock()
		defer mu.Unlock()
		if w.Error() == said {
			return
		}
		said = w.Error()
		if !settled && w.Kind != state.WaitEtcd { // else it is no matter of the rollout, or cannot be recorded
			p.recordWait(v, w)
		}
		if p.Waiting != nil { // behind the record: what is shown asks etcd
			p.Waiting(p.shown(w))
		}
	}
}

// recordWait tells the fleet for what the node waits, or holds that back until a run begins.
func (p *pull) recordWait(v *state.Version, w *lock.Wait) {
	st := p.waitStatus(v, w)
	if p.holdsBack {
		p.untold.Store(&st)
		return
	}
	p.tellWait(st)
}

// tellWait tells the fleet for what the node waits.
func (p *pull) tellWait(st state.Status) {
	ctx, cancel := afterwards(p.ctx)
	defer cancel()
	asked := time.Now()
	err := p.store.Explain(p.store.Tell(ctx, p.presence, p.store.StatusOps(p.config.Node.Name, state.Rollout, state.Pending, st)...))
	p.toldWait.Store(err == nil)
	if err != nil && !(p.loop && p.away.begins(err, asked)) {
		p.log.WithError(err).Warn("the reason to wait could not be recorded")
	}
}

// tellHeldBack tells for what the node waits, where the begin of a run did not.
func (p *pull) tellHeldBack() {
	if st := p.untold.Swap(nil); st != nil {
		p.tellWait(*st)
	}
}

// waitStatus is the status of a node that waits. It began to wait when an earlier pull said so that came to the same gate.
func (p *pull) waitStatus(v *state.Version, w *lock.Wait) state.Status {
	p.waitMu.Lock()
	defer p.waitMu.Unlock()
	st := p.status(v, "")
	saysWait(&st, w)
	st.Holders, st.Ahead, st.Frees, st.Since = w.Holders, w.Ahead, w.Frees, st.Time
	if before := p.before; before.Version == v.ID && before.Gate == w.Gate {
		st.Since = before.Time
		if !before.Since.IsZero() {
			st.Since = before.Since
		}
	}
	p.before = st
	return st
}

// saysWait puts into a status what the node waits for.
func saysWait(st *state.Status, w *lock.Wait) {
	st.Kind, st.Gate, st.Reason, st.Remedy, st.Halt, st.Until = w.Kind, w.Gate, w.Gate+": "+w.Reason, w.Remedy, w.Halt, w.Until.UTC()
}

// waitsNoMore forgets for what the node waited: it has its place.
func (p *pull) waitsNoMore() {
	p.waitMu.Lock()
	defer p.waitMu.Unlock()
	p.before = state.Status{}
}

// patiently waits for one reason no longer than patience says.
func (p *pull) patiently(w *lock.Wait, wait func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, p.patience(w))
		defer cancel()
		return wait(ctx)
	}
}

// patience is how long a pull waits for one reason, within what it may wait in all. An agent does not wait longer than its interval at what is
// halted: the commit that mends it is found by the next pull.
func (p *pull) patience(w *lock.Wait) time.Duration {
	if p.loop && w.Halt != "" {
		return min(p.Wait, p.config.Agent.Interval.Std())
	}
	return max(p.Wait, aLook)
}
