package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/state"
)

// RolledBackError says that a version is left alone on a host whose files were put back after it failed there.
type RolledBackError struct {
	Version *state.Version
	state.RolledBack
}

func (e *RolledBackError) Error() string {
	return fmt.Sprintf(
		"version %s failed on this host at %s and its files were put back: %s; the host does not try it again before the "+
			"commit, its variables or "+
			"its facts change; to try it now: pullet pull --retry here, or pullet rollout resume for the fleet",
		e.Version,
		e.At.Format(time.RFC3339),
		e.Why,
	)
}

// noteRollback remembers that the files of a version were put back, and on what that depended. A fault of the host may
// pass by itself: then the version is tried again as after any other failure.
func (p *pull) noteRollback(ctx context.Context, v *state.Version, program *compiled, report *apply.Report) error {
	if !report.Restored || !report.Failed() || report.Fault() == apply.HostFault {
		return nil
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	_, rev, err := p.turns.ownGate(ctx, v, program)
	if err != nil {
		return err
	}
	p.local.RolledBack = &state.RolledBack{
		Rollout: v.Rollout(),
		Digest:  program.Digest(),
		Gate:    rev,
		Why:     report.Why(),
		At:      time.Now().UTC(),
	}
	return p.local.save()
}

// leftAlone reports that the version is not tried again here: its files were put back, and nothing that it depends on
// has changed since.
func (p *pull) leftAlone(ctx context.Context, v *state.Version, program *compiled) (bool, error) {
	was := p.local.RolledBack
	if was == nil || p.Retry || was.Rollout != v.Rollout() || was.Digest != program.Digest() {
		return false, nil
	}
	gate, rev, err := p.turns.ownGate(ctx, v, program)
	if err != nil || gate.Resumed != "" && rev > was.Gate {
		return false, err
	}
	p.out.worksOn(v)
	p.out.fail(&RolledBackError{v, *was})
	return true, p.reporter.tellConfigured(ctx, v)
}

// ownGate is the gate of this node's group in the rollout of a version, and its revision.
func (t *turns) ownGate(ctx context.Context, v *state.Version, program *compiled) (state.Gate, int64, error) {
	req, err := t.request(v, program)
	if err != nil {
		return state.Gate{}, 0, err
	}
	return t.store.Rollouts.Gate(ctx, v.Rollout(), req.Rules.Group)
}
