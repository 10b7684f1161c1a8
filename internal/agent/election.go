package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// election is the choice of the nodes that take a step for all.
func (g *gates) election(s apply.GatedStep) lock.Election {
	t := s.Options.Target
	hosts := t.Hosts.Text
	if hosts == "" {
		hosts = "the nodes with job " + s.Job.Name
	}
	id := fmt.Sprintf("%d of %s", t.Limit, hosts)
	if once(s) { // the choice is the step's own: it stands when the target is written in another way
		id = s.ID()
	}
	stage := g.stageOf(g.catalog.Node.Name, g.catalog.Node.Labels)
	has := func(node string, m state.Member) bool {
		return s.Job.Has(node, m.Labels) && (t.Hosts.Text == "" || t.Hosts.Matches(node, m.Labels))
	}
	candidates := func(node string, m state.Member) bool {
		// Who comes in a later stage waits for this node, and who is frozen never comes.
		return has(node, m) && g.stageOf(node, m.Labels) <= stage &&
			g.rollout.LimitFor(g.rollout.Group(node, m.Labels), 1) > 0
	}
	return lock.Election{ID: id, Limit: t.Limit, Once: once(s), Has: has, Candidates: candidates}
}

// once reports a step that chosen nodes take once in the fleet's life.
func once(s apply.GatedStep) bool { return s.Options.Target != nil && s.Options.Runs == "once" }

// value is what a result holds; one that an operator said holds nothing.
func (g *gates) value(
	ctx context.Context,
	steps *lock.Steps,
	s apply.GatedStep,
	r state.StepResult,
) (one render.StepResult, err error) {
	var shared sharedResult
	if err = steps.Value(ctx, r, &shared); err == nil {
		one, err = g.vouches.open(s, r, shared)
	}
	if err == nil {
		err = g.vouches.reseal(ctx, steps, s, r, shared)
	}
	if one.Result == "" {
		one.Result, one.State = r.Result, r.Result
	}
	return one, err
}

// candidate is the node's part in the step's election; it is asked once in a run.
func (g *gates) candidate(ctx context.Context, s apply.GatedStep) (*lock.Candidate, error) {
	g.electing.Lock()
	defer g.electing.Unlock()
	e := g.election(s)
	if c := g.candidates[e.ID]; c != nil {
		return c, nil
	}
	ctx, cancel := afterwards(ctx) // while etcd is away nobody is chosen, and others do not wait for that
	defer cancel()
	c, err := g.with(s).Elect(ctx, e)
	if err == nil {
		g.candidates[e.ID] = c
	}
	return c, err
}

func (g *gates) Chosen(ctx context.Context, s apply.GatedStep) (bool, string, error) {
	c, err := g.candidate(ctx, s)
	if err != nil {
		return false, "", g.pending(err)
	}
	if !c.Chosen() && g.turn != nil {
		return false, c.Others(), abandoned(ctx, g, c, s)
	}
	return c.Chosen(), c.Others(), nil
}

// abandoned is why a step that others were chosen for is not taken by them; nil: it is.
func abandoned(ctx context.Context, g *gates, c *lock.Candidate, s apply.GatedStep) error {
	step := gateStep(s)
	why, err := c.Abandoned(ctx, step)
	if why != "" && err == nil {
		return &apply.UnsettledError{Step: step.ID, Why: why}
	}
	return g.pending(err)
}

func (g *gates) Record(ctx context.Context, s apply.GatedStep) (apply.Record, error) {
	if _, err := g.vouches.signer(); err != nil { // before the step runs: nobody would believe what it returns
		return apply.Record{}, err
	}
	c, err := g.candidate(ctx, s)
	if err != nil {
		return apply.Record{}, g.pending(err)
	}
	r, err := c.Record(ctx, gateStep(s), s.Options.Target.MaxAge.Std())
	if err != nil {
		return apply.Record{}, g.pending(err)
	}
	g.electing.Lock()
	g.records[s.ID()] = r
	g.electing.Unlock()
	out := apply.Record{Attempt: r.Attempt, Of: r.Result.Attempt, Fresh: r.Fresh, Again: r.Again}
	out.Result, err = g.value(ctx, g.with(s), s, r.Result)
	return out, err
}

func (g *gates) Begin(ctx context.Context, s apply.GatedStep, attempt string) error {
	c, err := g.candidate(ctx, s)
	if err != nil {
		return g.pending(err)
	}
	g.electing.Lock()
	read := g.records[s.ID()]
	g.electing.Unlock()
	return g.pending(c.Start(ctx, gateStep(s), attempt, read))
}

func (g *gates) Publish(
	ctx context.Context,
	s apply.GatedStep,
	attempt string,
	r render.StepResult,
	reason string,
) error {
	c, err := g.candidate(ctx, s)
	if err != nil {
		return g.pending(err)
	}
	value, err := g.vouches.pack(s, attempt, r)
	if err != nil {
		return err
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	return g.pending(
		c.Publish(
			ctx,
			gateStep(s),
			attempt,
			state.StepResult{Result: r.Result, Reason: reason},
			value,
			s.Options.Target.MaxAge.Std(),
		),
	)
}

// openedResult is what a result holds, or why it cannot be read.
type openedResult struct {
	render.StepResult
	err error
}

func (g *gates) Result(ctx context.Context, s apply.GatedStep) (render.StepResult, error) {
	var found map[string]state.StepResult
	steps, opened := g.with(s), map[string]openedResult{}
	opens := func(ctx context.Context, r state.StepResult) (bool, error) {
		one, err := g.value(ctx, steps, s, r)
		opened[r.Node] = openedResult{one, err}
		return !errors.Is(err, errClosed), nil
	}
	err := g.waits.within(ctx, func(ctx context.Context) (err error) {
		found, err = steps.Results(ctx, gateStep(s), g.election(s), s.Options.Target.MaxAge.Std(), opens, g.tell)
		return err
	})
	if err != nil {
		return render.StepResult{}, g.pending(err)
	}
	byNode := map[string]render.StepResult{}
	for _, node := range slices.Sorted(maps.Keys(found)) {
		r := found[node]
		switch why := fmt.Sprintf(" on %s: %s", node, r.Reason); r.Result {
		case lock.Failed:
			return render.StepResult{}, errors.New("it reads the result of " + s.ID() + ", which failed" + why)
		case lock.Unknown:
			why = "it reads the result of " + s.ID() + ", which is unknown" + why
			return render.StepResult{}, &apply.UnsettledError{Step: gateStep(s).ID, Why: why}
		}
		one, read := opened[node]
		if !read || r.Result != "ok" { // of those alone it is asked whether they can be opened
			one.StepResult, one.err = g.value(ctx, steps, s, r)
		}
		if one.err != nil {
			return render.StepResult{}, one.err
		}
		byNode[node] = one.StepResult
	}
	first := byNode[slices.Min(slices.Collect(maps.Keys(byNode)))]
	first.ByNode = byNode
	return first, nil
}
