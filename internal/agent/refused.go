package agent

import (
	"context"
	"errors"

	"github.com/pullet/pullet/state"
)

// correctAnyhow corrects drift of the version that runs here where etcd refused a request between the registration and
// the run, or did not answer it: as in a pull that cannot reach etcd. What etcd refused stays the pull's error.
func (p *pull) correctAnyhow(ctx context.Context, err error) error {
	if p.store == nil || p.out.Report != nil || ctx.Err() != nil {
		return err
	}
	err = p.store.Explain(err)
	if _, refused := errors.AsType[*state.UnreachableError](err); !refused {
		return err
	}
	running := p.local.fallback()
	if running == nil {
		return err
	}
	p.drop()
	program, failed := p.announcer.prepare(ctx, running)
	if failed != nil {
		return errors.Join(err, failed)
	}
	if frozen, failed := p.orders.frozen(ctx, nil); frozen || failed != nil {
		return errors.Join(err, failed)
	}
	return errors.Join(err, p.converge(ctx, running, program))
}
