package puller

import (
	"context"
	"maps"
	"slices"

	"github.com/pullet/pullet/internal/trust"
)

// own is the commit that a step leads to.
func (a advance) own() *link { return a.commits[len(a.commits)-1] }

// paths says whether each signer of a step may change what it changes. A merge answers for what none of the merged
// commits changed: so it cannot take a path back to what it was on another branch.
func (v *verifier) paths(ctx context.Context, step advance, rules *trust.Rules) error {
	if rules.Empty() {
		return nil
	}
	merged := map[string]bool{}
	for _, c := range step.commits[:len(step.commits)-1] {
		if _, signed := v.signers[c.id]; !signed {
			continue // of the trusted history
		}
		changed, err := v.changedByAll(ctx, c)
		if err != nil {
			return err
		}
		if err := v.known(ctx, c, v.allow(c, changed, rules)); err != nil {
			return err
		}
		maps.Copy(merged, changed)
	}
	own, err := v.store.changed(ctx, step.from, step.own().id)
	if err != nil {
		return err
	}
	maps.DeleteFunc(own, func(path string, _ bool) bool { return merged[path] })
	mixed, err := v.changedByAll(ctx, step.own())
	if err != nil {
		return err
	}
	maps.Copy(own, mixed)
	return v.allow(step.own(), own, rules)
}

// changedByAll are the paths in which a commit differs from each of its parents.
func (v *verifier) changedByAll(ctx context.Context, c *link) (map[string]bool, error) {
	changed, err := v.store.changed(ctx, firstParent(c), c.id)
	if err != nil {
		return nil, err
	}
	for _, parent := range c.parents[min(1, len(c.parents)):] {
		also, err := v.store.changed(ctx, parent, c.id)
		if err != nil {
			return nil, err
		}
		maps.DeleteFunc(changed, func(path string, _ bool) bool { return !also[path] })
	}
	return changed, nil
}

// allow is an *UnverifiedError for the first path that a signer may not change.
func (v *verifier) allow(c *link, paths map[string]bool, rules *trust.Rules) error {
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if err := rules.Allow(v.signers[c.id], path); err != nil {
			return unverified(c.id, "", err)
		}
	}
	return nil
}
