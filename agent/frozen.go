package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// frozen reports that an operator stopped all changes of this node, and leaves it in the outcome. While the fleet's record is away, what the
// node knew last holds.
func (p *pull) frozen(ctx context.Context) (bool, error) {
	if err := p.learnFreeze(ctx); err != nil {
		return false, err
	}
	f := p.local.Frozen
	if f == nil || f.Ended(time.Now()) {
		return false, nil
	}
	p.out.Wait = &lock.Wait{
		Gate: f.Scope + " (all changes disabled)", Reason: "disabled by " + f.By + until(f.Until) + because(f.Reason) + "; drift is not corrected either",
		Clear: "pullet enable --" + f.Scope, Since: f.At,
	}
	return true, nil
}

// learnFreeze reads the switches of the node, its role and the fleet, and remembers the one that stops all changes.
func (p *pull) learnFreeze(ctx context.Context) error {
	if p.store == nil {
		return nil
	}
	n := p.node()
	w, scope, err := p.store.Frozen(ctx, n.Name, n.Role())
	if err != nil {
		return err
	}
	was := p.local.Frozen
	p.local.Frozen = nil
	if w != nil {
		p.local.Frozen = &state.Freeze{Switch: *w, Scope: scope.String()}
	}
	if was == nil && w == nil || was != nil && w != nil && was.At.Equal(w.At) && was.Scope == scope.String() {
		return nil
	}
	return p.local.Save(p.config.Paths.State)
}

func until(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf(" until %s", t.Local().Format(time.DateTime))
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
