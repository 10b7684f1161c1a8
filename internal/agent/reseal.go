package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// resealOnce encrypts what steps that run once returned for the hosts that the version adds. The node does so before it
// has its turn: a host that waits for that may be one that it waits for.
func (t *turns) resealOnce(ctx context.Context, req lock.Request, v *vouches) error {
	steps := lock.NewSteps(t.store, req)
	for _, job := range v.program.catalog.Jobs {
		for _, step := range job.Steps {
			s := apply.GatedStep{Step: step, Job: job}
			if !once(s) {
				continue
			}
			if err := v.resealAll(ctx, steps, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// resealAll is reseal for all that a step returned.
func (v *vouches) resealAll(ctx context.Context, steps *lock.Steps, s apply.GatedStep) error {
	results, err := steps.Shared(ctx, gateStep(s))
	if err != nil {
		return err
	}
	for _, r := range results {
		var shared sharedResult
		if steps.Value(ctx, r, &shared) != nil { // who reads it says why
			continue
		}
		if err := v.reseal(ctx, steps, s, r, shared); err != nil {
			return err
		}
	}
	return nil
}

// reseal encrypts a result anew where it is not encrypted for all of its readers and this host can read it. Of hosts at
// a version that the fleet left none does: they know older readers.
func (v *vouches) reseal(
	ctx context.Context,
	steps *lock.Steps,
	s apply.GatedStep,
	of state.StepResult,
	shared sharedResult,
) error {
	if steps.Stale() {
		return nil
	}
	value, err := v.forAll(s, of, shared)
	if value == nil || err != nil {
		return err
	}
	return steps.Reseal(ctx, gateStep(s), of, value)
}

// forAll is what a host shared, encrypted anew where some of its readers cannot open it; nil: all can, or this host
// cannot.
func (v *vouches) forAll(s apply.GatedStep, of state.StepResult, shared sharedResult) ([]byte, error) {
	if !shared.Encrypted || v.vouched(s, of, shared) != nil {
		return nil, nil
	}
	to, _, err := v.readers(s)
	if err != nil {
		return nil, err
	}
	has, err := trust.ReadersOf(shared.Signed)
	lacks := func(key trust.Recipient) bool {
		listed, sure := has.Has(key)
		return sure && !listed
	}
	if err != nil || !slices.ContainsFunc(to, lacks) {
		return nil, err
	}
	salted, err := v.salted(shared)
	if errors.Is(err, trust.ErrNotRecipient) {
		return nil, nil
	}
	if err == nil {
		err = shared.seal(salted, to)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(shared)
}
