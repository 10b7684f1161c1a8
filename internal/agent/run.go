package agent

import (
	"context"
	"path/filepath"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// run applies a program to the host.
func (p *pull) run(ctx context.Context, v *state.Version, program *compiled, turn *lock.Turn) (*apply.Report, error) {
	p.phases.begin(PhaseApply)
	defer p.phases.begin(PhasePublish)
	ctx, cancel := context.WithTimeout(ctx, p.config.Agent.Deadline.Std()+p.Wait) // waits are not counted
	defer cancel()
	says := p.reporter.steps(ctx, v)
	gates, err := p.gatesFor(ctx, v, program, turn, says)
	if err != nil {
		return nil, err
	}
	o := apply.Options{
		Run: p.out.Run, Host: p.agent.host(v.ID), Journal: p.local.journal, Begin: says.begin, Watch: says.ended, Log: p.log,
		Keep: filepath.Join(p.config.Paths.State, "lastgood"), Turn: turn != nil,
		PruneLimit: p.config.Agent.PruneLimit, PruneAll: p.PruneAll, PruneRemoved: p.PruneRemoved,
		Upgrade: !p.local.upToDate(v) && turn != nil, Rest: p.waits.rest, FleetReader: p.fleetReaders(gates),
		Vault: p.compiler.keys.vault(), Program: ownProgram{p}.fate(v),
	}
	if gates != nil { // an interface that holds a nil pointer would not be nil
		o.Gates, o.Host.Fence = gates, gates.Fence
	}
	o.Host.Fleet, p.applied = p.compiler.fleet(), append(p.applied, o.Host)
	p.reporter.begin(ctx, v, turn)
	o.Await = func(a apply.Awaited) func(bool) { return p.awaitsCondition(ctx, v, gates, says, a) }
	report, err := program.Run(ctx, o)
	end := gates.ended()
	says.over(end.silent)
	if end.at != nil {
		p.out.awaits(end.at)
		p.overtaken = end.overtook
	}
	if report != nil {
		report.Commits = v.Described()
	}
	p.out.ran(report)
	if p.silent = end.silent; err == nil && report.Stopped == "" && !p.silent {
		err = gates.leftSteps(ctx)
	}
	return report, err
}

// heads are a version's commits as the puller names them.
func heads(v *state.Version) []puller.Head {
	out := make([]puller.Head, len(v.Commits))
	for i, c := range v.Commits {
		out[i] = puller.Head{Repo: c.Repo, Commit: c.Commit, Tag: c.Tag}
	}
	return out
}
