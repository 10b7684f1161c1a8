package apply

import (
	"context"
	"fmt"
	"time"

	"github.com/pullet/pullet/render"
)

// judgeTimeout bounds the judgement of a trigger, with all macros that it calls.
const judgeTimeout = 10 * time.Minute

// Judge evaluates the expression of a trigger on the host, with its macros run afresh and the fleet as it is now. Of
// the options it looks at Host and FleetReader. An error says that the expression cannot be judged, or why ctx ended.
func (p *Program) Judge(ctx context.Context, o Options, t *render.Trigger) (bool, error) {
	late := fmt.Errorf("trigger %s: its expression takes longer than %s", t.Name, judgeTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, judgeTimeout, late)
	defer cancel()
	x := p.execution(o)
	// With results, though there are none, each judgement has its own work to do, and not what compiling has left.
	none := func(string) (render.StepResult, bool) { return render.StepResult{}, false }
	by := render.Judged{Context: ctx, Results: none, Run: x.runMacro(ctx)}
	var fleet FleetReader
	if o.FleetReader != nil {
		fleet = o.FleetReader()
		by.Look = func() (render.View, error) { return fleet.View(ctx) }
	}
	yes, err := p.catalog.Eval(t.Expression, by)
	return yes, unseen(ctx, p.catalog.Inventory, fleet, err)
}
