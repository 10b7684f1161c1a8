package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// turns are the node's turns at places, and the rules under which it takes them, in one pull.
type turns struct {
	*self
	*joined
	local        *local
	registration *registration
	reporter     *reporter
	places       *places
	run          string
	wait         time.Duration // how long the pull may wait in all
	loop         bool          // see Options
}

// request is the node's wish to change to a version, under the rules of that version or those that the rollout was
// started with.
func (t *turns) request(v *state.Version, program *compiled) (lock.Request, error) {
	rollout, err := program.rules(v)
	if err != nil {
		return lock.Request{}, err
	}
	return t.requestUnder(rollout, v, program.catalog), nil
}

// requestUnder is request under these rules.
func (t *turns) requestUnder(rollout render.Rollout, v *state.Version, cat *render.Catalog) lock.Request {
	if v.Proven && rollout.Canary != nil {
		rollout.Canary = &render.Canary{Target: rollout.Canary.Target}
	}
	rules := rulesFor(rollout, cat.Node)
	if rollout.LimitsInstructed() {
		rules.Raise = fmt.Sprintf(
			"raise rolling_rules in the instructions (upgrade.json, or the file that was given) and give them again: "+
				"pullet rollout start %s --instructions FILE",
			v,
		)
	}
	return lock.Request{
		Presence: t.presence, Version: v, VersionRev: t.agreed, Stale: t.current == nil || v.Rollout() != t.current.Rollout(),
		Run: t.run, Order: t.local.Order(v.Rollout()), Lasting: !t.loop,
		Brief: t.wait < lock.Patience, Parked: t.local.Parked == v.Rollout(),
		// asked now: steps write the journal later
		Rules: rules, Inventory: members(cat.Inventory), Waiting: t.reporter.waiting(v, t.local.upToDate(v)),
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
		Group: group, Role: node.Role(), Total: r.RollingRules.Total, MaxFailures: r.MaxFailures,
		MaxHostFailures: r.HostFailuresFor, OnLost: r.OnLost, Deadline: r.Progress(),
		GroupOf:   func(name string, m state.Member) string { return state.GroupOf(r.Group(name, m.Labels)) },
		Limit:     func(roster int) int { return r.LimitFor(own, roster) },
		RoleGroup: func(role string) string { return state.GroupOf(r.RoleGroup(role)) },
		RoleLimit: func(roster int) int { return r.LimitFor(r.RoleGroup(node.Role()), roster) },
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
	if r.Canary != nil {
		out.Canaries = state.GroupOf(render.CanaryGroup)
	}
	for _, g := range r.Depends(own) {
		out.Depends = append(out.Depends, state.GroupOf(g))
	}
	return out
}

// patiently waits for one reason no longer than patience says.
func (t *turns) patiently(w *lock.Wait, wait func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, t.patience(w))
		defer cancel()
		return wait(ctx)
	}
}

// patience is how long a pull waits for one reason, within what it may wait in all. An agent does not wait longer than
// its interval at what is halted: the commit that fixes it is found by the next pull.
func (t *turns) patience(w *lock.Wait) time.Duration {
	if t.loop && w.Halt != "" {
		return min(t.wait, t.config.Agent.Interval.Std())
	}
	return max(t.wait, aLook)
}
