package agent

import (
	"context"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/offer"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// recheck is a check that is asked between two pulls of the loop.
type recheck struct {
	offer render.Offer
	zone  string
	host  *apply.Host
}

// rechecks are the checks of a run that was validated, as far as they are asked between pulls. Without one, nothing is
// ready, and stays so.
func (a *announcer) rechecks(v *state.Version, validated bool) []recheck {
	if !validated || !v.Same(a.local.Running) {
		return nil
	}
	var out []recheck
	for _, o := range a.compiler.offers[v.ID].list {
		if o.Check != nil && o.Check.Interval > 0 && o.Instance().Address != "" {
			out = append(out, recheck{o, a.compiler.offers[v.ID].zone, a.host(v.ID)})
		}
	}
	return out
}

// again asks the check again and again until ctx ends, and tells the fleet what changed.
func (c recheck) again(ctx context.Context, store *state.Store, a *Agent) {
	log := a.logger.WithField("service", c.offer.Name)
	tick := time.NewTicker(c.offer.Check.Interval.Std())
	defer tick.Stop()
	before := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		why := ""
		if err := offer.Check(ctx, c.host, c.offer); err != nil {
			why = err.Error()
		}
		if ctx.Err() != nil { // the next pull asks: what was cut off tells nothing
			return
		}
		if why != before && why != "" {
			log.Warn("not ready: " + why)
		}
		before = why
		asked := time.Now()
		err := store.Explain(store.Services.SetReady(ctx, c.offer.Name, a.config.Node.Name, c.zone, why == "", why))
		if err != nil && ctx.Err() == nil && !a.away.begins(err, asked) {
			log.WithError(err).Warn("the fleet's record does not say whether it is ready")
		}
	}
}
