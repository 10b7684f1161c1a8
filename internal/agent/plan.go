package agent

import (
	"context"
	"errors"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// Plan compares the node with the version that a pull would bring it to, or, where dir is given, with the state
// repository that stands in that directory; of the options it takes Run and those of pruning. Nothing is touched: not
// the host, not the fleet's record, not the journal. Nothing that a directory wants to run is run, unless Run says so.
func (a *Agent) Plan(ctx context.Context, dir string, o Options) (*Outcome, error) {
	p := a.pull(ctx, o)
	p.out.warn(p.config.openSecrets(warned)...)
	if err := p.local.open(p.config.Node.Name); err != nil {
		return p.out, err
	}
	if err := p.local.openJournal(); err != nil {
		return p.out, err
	}
	store, err := a.connection.read(ctx)
	var away *state.UnreachableError
	if errors.As(err, &away) {
		p.out.warn(err)
	} else if err != nil {
		return p.out, err
	}
	p.opened(store)
	defer p.nameBad()
	program, err := p.planned(ctx, dir)
	if err != nil {
		return p.out, err
	}
	host := a.host(p.out.Version.ID)
	host.Fleet, host.Untrusted = p.compiler.fleet(), dir != "" && !o.Run
	ctx, cancel := context.WithTimeout(ctx, a.config.Agent.Deadline.Std())
	defer cancel()
	p.out.ran(program.Plan(ctx, apply.Options{
		Run: p.out.Run, Host: host, Journal: p.local.journal, Upgrade: true, Log: p.log,
		PruneLimit: a.config.Agent.PruneLimit, PruneAll: p.PruneAll, PruneRemoved: p.PruneRemoved,
		Vault: p.compiler.keys.vault(),
	}))
	return p.out, nil
}

// planned is the program to compare the node with.
func (p *pull) planned(ctx context.Context, dir string) (*compiled, error) {
	if dir != "" {
		p.out.worksOn(&state.Version{ID: "worktree", Release: dir})
		view, err := p.compiler.view(ctx)
		if err != nil {
			return nil, err
		}
		files, err := puller.WorkTree(ctx, dir)
		if err != nil {
			return nil, err
		}
		return p.compiler.bind(ctx, render.Open(render.Layer{Name: "main", FS: files}), p.out.Version, view, nil)
	}
	own, err := p.outside.Repositories.Pull(ctx)
	if err != nil {
		return nil, err
	}
	var current *state.Version
	if p.store != nil {
		if current, _, err = p.store.Versions.Current(ctx); err != nil && lock.Unreadable("", err) == nil {
			return nil, err
		}
	}
	wanted, err := p.agreement.wanted(ctx, current, own)
	if err != nil {
		return nil, err
	}
	p.out.worksOn(wanted)
	return p.compiler.compile(ctx, wanted)
}

// wanted is the version that a pull would bring the node to: its current one, where this host refuses the fleet's.
func (a *agreement) wanted(ctx context.Context, current *state.Version, own []puller.Head) (*state.Version, error) {
	next, err := a.newer(ctx, current, own)
	if current == nil || err != nil {
		a.noteProblems(own)
		return next, err
	}
	stays, err := a.stays(ctx, current, next)
	if err != nil {
		return nil, err
	}
	if stays != "" {
		next = current
	}
	var refused *RefusedVersionError
	if err := a.doubt(ctx, next, own); errors.As(err, &refused) {
		if v := a.refuses(own, refused); v != nil {
			return v, nil
		}
		return nil, refused
	} else if err != nil {
		return nil, err
	}
	a.noteProblems(own)
	return next, nil
}
