package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pullet/pullet/journal"
	"github.com/pullet/pullet/render"
)

// DefaultPruneLimit is how many things one run removes when nothing else is said.
const DefaultPruneLimit = 10

// pruning is what the names of steps begin with that remove things.
const pruning = "prune "

// Leftover is a thing on the host that a job brought there and no job declares any longer.
type Leftover struct {
	ID  string `json:"id"`  // "file /etc/motd"
	Job string `json:"job"` // that brought it
	Why string `json:"why"` // it is left there
	// Held is set for what would be removed if it were not so many at once.
	Held  bool `json:"held,omitempty"`
	thing string
}

// prune removes what the jobs no longer declare, where they say so, and reports the rest. It comes when everything else
// succeeded, the validations included: what replaces a thing may be what failed.
func (x *execution) prune(ctx context.Context) {
	var remove []string
	for _, id := range x.leftovers() {
		thing := x.options.Journal.Managed().Things[id]
		switch why := x.leave(thing); {
		case why == "":
			remove = append(remove, id)
		case x.onHost(ctx, id, thing):
			x.reportLeftover(id, why)
		default:
			delete(x.options.Journal.Managed().Things, id)
		}
	}
	if most := x.pruneLimit(); len(remove) > most {
		for _, id := range remove {
			x.reportLeftover(
				id,
				fmt.Sprintf(
					"%d things at once are more than the limit of %d: look at them with pullet plan --prune-all, and remove them "+
						"with pullet pull --prune-all",
					len(remove),
					most,
				),
			)
		}
		for i := len(x.report.Leftovers) - len(remove); i < len(x.report.Leftovers); i++ {
			x.report.Leftovers[i].Held = true
		}
		return
	}
	react := map[string]bool{}
	for _, s := range x.program.steps {
		react[s.ID()] = x.reactionDue(s.reaction("prune"))
	}
	for _, id := range remove {
		thing := x.options.Journal.Managed().Things[id]
		if x.remove(ctx, id, thing) {
			for _, watcher := range thing.Watchers {
				react[watcher] = true
			}
		}
	}
	x.reactions(ctx, "prune", react)
	if len(remove) > 0 {
		x.goneWith(ctx)
	}
}

// goneWith drops leftovers that went with what was removed, as a unit with its package.
func (x *execution) goneWith(ctx context.Context) {
	things := x.options.Journal.Managed().Things
	x.report.Leftovers = slices.DeleteFunc(x.report.Leftovers, func(l Leftover) bool {
		gone := !x.onHost(ctx, l.thing, things[l.thing])
		if gone {
			delete(things, l.thing)
		}
		return gone
	})
}

// leftovers are the things that no step declares any longer, the last that came first.
func (x *execution) leftovers() []string {
	m := x.options.Journal.Managed()
	if len(m.Things) == 0 || m.Digest == x.applied() && len(m.Left) == 0 {
		return nil
	}
	d := x.declared()
	var out []string
	for id, t := range m.Things {
		if !d.has(x.options.Host, id, t) {
			out = append(out, id)
		}
	}
	first := func(id string) int {
		return map[bool]int{true: 1}[x.program.specs[m.Things[id].Absent].RemovesFirst]
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(first(b)-first(a), m.Things[b].Order-m.Things[a].Order, strings.Compare(b, a))
	})
	return out
}

// leave says why a leftover is not removed; "" is to remove it.
func (x *execution) leave(t journal.Thing) string {
	prune, removed := t.Prune || x.options.PruneRemoved, true
	for _, j := range x.program.catalog.Jobs {
		if j.Name == t.Job {
			prune, removed = j.Prune, false
		}
	}
	_, known := x.program.specs[t.Absent]
	switch {
	case !prune && removed:
		return "job " + t.Job + ", which was removed, did not say prune: true"
	case !prune:
		return "job " + t.Job + " does not say prune: true"
	case !known:
		return "nothing removes it by itself: a step has to"
	case !t.New:
		return "it was on the host before job " + t.Job + " managed it"
	case x.report.Failed() || x.report.Pending():
		return "this run did not succeed"
	}
	return ""
}

func (x *execution) pruneLimit() int {
	switch {
	case x.options.PruneAll:
		return len(x.options.Journal.Managed().Things)
	case x.options.PruneLimit > 0:
		return x.options.PruneLimit
	}
	return DefaultPruneLimit
}

func (x *execution) reportLeftover(id, why string) {
	thing := x.options.Journal.Managed().Things[id]
	x.report.Leftovers = append(
		x.report.Leftovers,
		Leftover{thing: id, ID: x.title(id, thing), Job: thing.Job, Why: why},
	)
}

// title is the name that people see of a thing.
func (x *execution) title(id string, t journal.Thing) string {
	return x.program.specs[t.Absent].Title(id)
}

// leftIDs are the leftovers of the report.
func (x *execution) leftIDs() []string {
	var out []string
	for _, l := range x.report.Leftovers {
		out = append(out, l.ID)
	}
	return out
}

// removal is the step that removes a thing; nil when nothing does.
func (x *execution) removal(id string, t journal.Thing) *boundStep {
	spec, ok := x.program.specs[t.Absent]
	if !ok {
		return nil
	}
	params, err := render.ParamsOf(t.Params)
	if err != nil {
		return nil
	}
	step := &render.Step{
		Job:       t.Job,
		Name:      pruning + x.title(id, t),
		Action:    t.Absent,
		Params:    params,
		Sensitive: t.Sensitive,
	}
	s := &boundStep{
		Step:  step,
		job:   &render.Job{Name: t.Job},
		id:    step.ID(),
		spec:  spec,
		needs: map[string][]*boundStep{},
	}
	if len(s.bind(x.program.catalog, x.program.specs)) > 0 { // of a version of pullet that wrote other parameters
		return nil
	}
	return s
}

// onHost reports that a thing is there. Where that cannot be told, it may be.
func (x *execution) onHost(ctx context.Context, id string, t journal.Thing) bool {
	s := x.removal(id, t)
	switch {
	case t.Path != "" && !t.Part && x.options.Host.Goes(t.Path):
		return false
	case s == nil && t.Path != "" && !t.Part:
		return !x.options.Host.gone(t.Path)
	case s == nil:
		return true
	case t.Path != "" && !t.Part:
		return s.isThere(ctx, x.options.Host, t.Path)
	}
	change, err := s.compare(ctx, x.options.Host)
	return err != nil || !change.Empty()
}

// remove takes a thing off the host, as a step of the report, and reports that it changed something. What cannot be
// removed, such as a directory in which others have something, is left and no failure.
func (x *execution) remove(ctx context.Context, id string, t journal.Thing) bool {
	s := x.removal(id, t)
	if s == nil || x.stopped() || ctx.Err() != nil {
		x.reportLeftover(id, "it could not be removed in this run")
		return false
	}
	var before StepReport
	if !x.options.Journal.Ended(s.ID(), &before) {
		change, err := s.compare(ctx, x.options.Host)
		switch {
		case err != nil:
			x.reportLeftover(id, "it cannot be removed: "+err.Error())
			return false
		case change.Empty() && x.onHost(ctx, id, t):
			x.reportLeftover(id, "there is something in it that no job brought")
			return false
		case change.Empty():
			delete(x.options.Journal.Managed().Things, id)
			return x.options.Journal.CutOff(s.ID()) // the run that was cut off did it
		}
	}
	x.one(ctx, &turn{step: s}, nil)
	r := x.of(s.ID())
	if r.Outcome != Changed && r.Outcome != OK {
		x.reportLeftover(id, "it could not be removed: "+r.Reason)
	} else { // a plan saves nothing
		delete(x.options.Journal.Managed().Things, id)
	}
	return r.Outcome == Changed
}
