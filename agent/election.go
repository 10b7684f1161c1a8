package agent

import (
	"context"
	"encoding/json"
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
	stage := g.stageOf(g.catalog.Node.Name, g.catalog.Node.Labels)
	return lock.Election{ID: fmt.Sprintf("%d of %s", t.Limit, hosts), Limit: t.Limit, Candidates: func(node string, m state.Member) bool {
		if !s.Job.Has(node, m.Labels) || t.Hosts.Text != "" && !t.Hosts.Matches(node, m.Labels) {
			return false
		}
		// Who comes in a later stage waits for this node, and who is frozen never comes.
		return g.stageOf(node, m.Labels) <= stage && g.rollout.LimitFor(g.rollout.Group(node, m.Labels), 1) > 0
	}}
}

// candidate is the node's part in the step's election; it is asked once in a run.
func (g *gates) candidate(ctx context.Context, s apply.GatedStep) (*lock.Candidate, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
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
	return c.Chosen(), c.Others(), nil
}

func (g *gates) Begin(ctx context.Context, s apply.GatedStep) error {
	c, err := g.candidate(ctx, s)
	if err != nil {
		return g.pending(err)
	}
	return g.pending(c.Start(ctx, g.step(s)))
}

func (g *gates) Fresh(ctx context.Context, s apply.GatedStep) (published, fresh bool, err error) {
	c, err := g.candidate(ctx, s)
	if err == nil {
		published, fresh, err = c.Fresh(ctx, g.step(s), s.Options.Target.MaxAge.Std())
	}
	return published, fresh, g.pending(err)
}

func (g *gates) Publish(ctx context.Context, s apply.GatedStep, r render.StepResult, reason string) error {
	c, err := g.candidate(ctx, s)
	if err != nil {
		return g.pending(err)
	}
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	return g.pending(c.Publish(ctx, g.step(s), state.StepResult{Result: r.Result, Reason: reason}, value, s.Options.Target.MaxAge.Std()))
}

func (g *gates) Result(ctx context.Context, s apply.GatedStep) (render.StepResult, error) {
	var found map[string]state.StepResult
	steps := g.with(s)
	err := g.waits(ctx, func(ctx context.Context) (err error) {
		found, err = steps.Results(ctx, g.step(s), g.election(s), s.Options.Target.MaxAge.Std(), s.Repeatable, g.tell)
		return err
	})
	if err != nil {
		return render.StepResult{}, g.pending(err)
	}
	byNode := map[string]render.StepResult{}
	for _, node := range slices.Sorted(maps.Keys(found)) {
		r := found[node]
		if r.Result == "failed" || r.Result == "unknown" {
			return render.StepResult{}, fmt.Errorf("it reads the result of %s, which is %s on %s: %s", s.ID(), r.Result, node, r.Reason)
		}
		var one render.StepResult
		if err := steps.Value(ctx, r, &one); err != nil {
			return render.StepResult{}, err
		}
		byNode[node] = one
	}
	first := byNode[slices.Min(slices.Collect(maps.Keys(byNode)))]
	first.ByNode = byNode
	return first, nil
}
