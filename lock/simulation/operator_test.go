package simulation

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/state"
)

// operator is who runs pullet's commands.
type operator struct {
	*fleet
	store *state.Store
	ctx   context.Context
	mood  *rand.Rand // what it says of steps that nobody knows
}

func (f *fleet) operator(ctx context.Context) *operator {
	return &operator{f, state.Over(f.c.Connect("operator").Client(), "f", f.clock), ctx, rand.New(rand.NewPCG(f.seed, 500))}
}

// insist does something until the store says how it went, or for a while.
func (o *operator) insist(do func(ctx context.Context) error) error {
	var err error
	for range 4 {
		if err = do(o.ctx); err == nil || o.ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(3 * time.Second)
		select {
		case <-timer.C:
		case <-o.ctx.Done():
		}
		timer.Stop()
	}
	return err
}

// try is something that an operator does and looks at no further.
func (o *operator) try(do func(ctx context.Context) error) { _ = o.insist(do) }

// acts draws what operators and committers do.
func (o *operator) acts() []act {
	var out []act
	rng := o.rng
	for range o.coming {
		out = append(out, act{o.upTo(storm), "push", "", o.pushNext})
	}
	for range rng.IntN(7) {
		at, lasts := o.upTo(storm), o.upTo(8*time.Minute)
		h := o.hosts[rng.IntN(len(o.hosts))]
		scope := []state.Scope{state.HostScope(h.name), state.RoleScope(h.role), state.GlobalScope()}[rng.IntN(3)]
		some := state.Switch{Enabled: rng.IntN(5) == 0, Version: commit(1), By: "operator", At: time.Now()}
		if !some.Enabled {
			some.Version = ""
		}
		switch rng.IntN(6) {
		case 0:
			out = append(out, act{at, "pause", h.name, func() { o.try(o.pause) }}, act{at + lasts, "unpause", h.name, func() { o.try(o.unpause) }})
		case 1, 2:
			out = append(out, act{at, "disable", h.name, func() { o.try(o.switching(scope, some)) }},
				act{at + lasts, "enable", h.name, func() { o.try(o.switching(scope, state.Switch{Enabled: true})) }})
		case 3:
			out = append(out, act{at, "resume", h.name, func() { o.try(o.resume) }})
		case 4:
			out = append(out, act{at, "decommission", h.name, func() { o.decommission(h, true, false) }})
		case 5:
			out = append(out, act{at, "back", h.name, func() { o.try(o.back) }}, act{at + lasts, "follow", h.name, func() { o.try(o.follow) }})
		}
	}
	return out
}

// more draws what else operators do.
func (o *operator) more() []act {
	var out []act
	rng := rand.New(rand.NewPCG(o.seed, 501)) // of its own: what else a seed draws stays
	upTo := func(d time.Duration) time.Duration {
		return time.Duration(1+rng.Int64N(int64(d/time.Microsecond))) * time.Microsecond
	}
	for range rng.IntN(4) {
		at, lasts := upTo(storm), upTo(8*time.Minute)
		h := o.hosts[rng.IntN(len(o.hosts))]
		switch rng.IntN(4) {
		case 0:
			out = append(out, act{at, "fail", "", func() { o.try(o.fail) }}, act{at + lasts, "resume", "", func() { o.try(o.resume) }})
		case 1:
			out = append(out, act{at, "undo", "", func() { o.try(o.undo) }}, act{at + lasts, "follow", "", func() { o.try(o.follow) }})
		case 2:
			out = append(out, act{at, "settle", "", func() { o.settle(true) }})
		case 3:
			out = append(out, act{at, "decommission --force", h.name, func() { o.decommission(h, true, true) }})
		}
	}
	return out
}

// fail halts the rollout by hand.
func (o *operator) fail(ctx context.Context) error {
	_, _, err := o.store.Versions.Halt(ctx, "operator", "")
	return err
}

// undo goes back to the last good version.
func (o *operator) undo(ctx context.Context) error {
	current, rev, err := o.store.Versions.Current(ctx)
	if err == nil && current != nil {
		_, _ = o.store.Versions.Undo(ctx, current, rev, "operator", "", 0) // there may be none
	}
	return err
}

// settle says what became of targeted steps: of those of which nobody knows, or of any.
func (o *operator) settle(any bool) {
	steps := map[string]bool{}
	for key, w := range o.present() {
		if strings.Contains(key, "/result/") {
			var r state.StepResult
			if parse(w, &r); any || r.Result == "unknown" {
				steps[r.Step] = true
			}
		}
	}
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		_, _ = o.store.Steps.Settle(o.ctx, step, "operator", state.Settling{Done: o.mood.IntN(2) == 0, Force: o.mood.IntN(2) == 0}) // it may run just now, or be of another version
	}
}

// accept tells the nodes that the fleet's record is to be trusted as it is, once those at work reported, and if anybody
// doubts it.
func (o *operator) accept(ctx context.Context) error {
	if err := state.AwaitReports(ctx, o.store, "operator", nil); err != nil {
		return err
	}
	if _, doubted := o.present()[o.store.Doubts.Key()]; !doubted {
		return nil
	}
	return o.store.Doubts.Accept(ctx, "operator")
}

func (o *operator) pause(ctx context.Context) error {
	_, err := o.store.Switches.Pause(ctx, &state.Switch{By: "operator"}, 0)
	return err
}

func (o *operator) unpause(ctx context.Context) error {
	_, err := o.store.Switches.Unpause(ctx)
	return err
}

func (o *operator) switching(c state.Scope, w state.Switch) func(context.Context) error {
	return func(ctx context.Context) error { return setSwitch(ctx, o.store, c, w, 0) }
}

func (o *operator) resume(ctx context.Context) error {
	_, err := o.store.Rollouts.Resume(ctx, "operator")
	return err
}

// decommission gives a host up that does not answer.
func (o *operator) decommission(h *host, once, force bool) {
	o.try(func(ctx context.Context) error {
		_, err := o.store.Nodes.Decommission(ctx, h.name, "operator", force)
		if once {
			return nil
		}
		return err
	})
}

// back sets the version before the current one again, and holds the fleet there.
func (o *operator) back(ctx context.Context) error {
	current, rev, err := o.store.Versions.Current(ctx)
	if err != nil || current == nil || current.Previous == "" {
		return err
	}
	bad := append(slices.Clone(current.Bad), current.ID)
	if _, left, err := o.store.Versions.LastGood(ctx, current); err == nil { // with what a restored record forgot
		bad = slices.DeleteFunc(left, func(id string) bool { return id == current.Previous })
	}
	v := state.Version{ID: current.Previous, Commits: commits(current.Previous), Previous: current.ID, Held: true, By: "operator", Bad: bad, Canary: o.find(current.Previous).waitsForCanaries()}
	is, err := o.store.Versions.Propose(ctx, v, current, rev)
	if err == nil && !is.Done {
		err = errors.New("another was faster")
	}
	return err
}

// start sets the head of the repository as the fleet's version.
func (o *operator) start(ctx context.Context) error {
	current, rev, err := o.store.Versions.Current(ctx)
	if err != nil || current == nil || current.ID == o.head().id {
		return err
	}
	return o.store.Versions.Move(ctx, state.Version{ID: o.head().id, Commits: commits(o.head().id), Previous: current.ID, Bad: current.Bad, By: "operator", At: time.Now().UTC()}, current, rev)
}

// follow ends a hold.
func (o *operator) follow(ctx context.Context) error {
	_, _, err := o.store.Versions.Follow(ctx)
	if errors.Is(err, state.ErrNoVersion) {
		return nil
	}
	return err
}

// help does what the reasons to wait ask of an operator.
func (o *operator) help() {
	if _, doubted := o.present()[o.store.Doubts.Key()]; doubted {
		o.try(o.accept)
	}
	o.try(o.unpause)
	o.settle(false)
	o.try(o.resume)
	o.try(o.follow)
	for _, h := range o.hosts {
		o.try(o.switching(state.HostScope(h.name), state.Switch{Enabled: true}))
		o.try(o.switching(state.RoleScope(h.role), state.Switch{Enabled: true}))
		h.mu.Lock()
		gone := h.gone
		h.mu.Unlock()
		if gone {
			o.decommission(h, false, false)
		}
	}
	o.try(o.switching(state.GlobalScope(), state.Switch{Enabled: true}))
	o.handOver()
}

// What a node says that waits for a chosen one which is gone and keeps its place.
var (
	keepsPlace = regexp.MustCompile(`^start (\S+) again, or let another node run what it started again: `)
	runAgain   = regexp.MustCompile(`pullet rollout settle (\S+) --again`)
)

// handOver has the steps run again by which a host that is gone keeps its place: it is not started again, so that is
// what is left to do.
func (o *operator) handOver() {
	steps := map[string]bool{}
	for key, w := range o.present() {
		if !strings.HasPrefix(key, prefix+"status/rollout/pending/") {
			continue
		}
		var st state.Status
		parse(w, &st)
		keeps := keepsPlace.FindStringSubmatch(st.Clear)
		if keeps == nil || !o.lost(keeps[1]) {
			continue
		}
		for _, step := range runAgain.FindAllStringSubmatch(st.Clear, -1) {
			steps[step[1]] = true
		}
	}
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		_, _ = o.store.Steps.Settle(o.ctx, step, "operator", state.Settling{Force: true}) // it may be done already
	}
}

// lost reports a host that is gone for good.
func (o *operator) lost(node string) bool {
	return slices.ContainsFunc(o.hosts, func(h *host) bool { return h.name == node && h.gone })
}

// setSwitch sets a switch whatever it was before.
func setSwitch(ctx context.Context, s *state.Store, c state.Scope, w state.Switch, lasts time.Duration) error {
	all, err := s.Switches.List(ctx)
	if err != nil {
		return err
	}
	var was *state.Switch
	if have, there := all[c.String()]; there {
		was = &have
	}
	to := &w
	if w.Enabled && w.Version == "" && c.Kind != "host" { // as if it had never been set
		to = nil
	}
	return s.Switches.Set(ctx, c, to, was, lasts)
}
