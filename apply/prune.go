package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/journal"
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

// pruner removes what the jobs no longer declare, where they say so, and reports the rest. It comes when everything
// else succeeded, the validations included: what replaces a thing may be what failed.
type pruner struct {
	*execution
	managed *journal.Managed
}

func (p pruner) prune(ctx context.Context) {
	var remove []string
	for _, id := range p.leftovers() {
		thing := p.managed.Things[id]
		switch why := p.leave(thing); {
		case why == "":
			remove = append(remove, id)
		case p.program.onHost(ctx, p.options.Host, id, thing):
			p.reportLeftover(id, why)
		default:
			delete(p.managed.Things, id)
		}
	}
	if most := p.limit(); len(remove) > most {
		for _, id := range remove {
			p.reportLeftover(
				id,
				fmt.Sprintf(
					"%d things at once are more than the limit of %d: look at them with pullet plan --prune-all, and remove them "+
						"with pullet pull --prune-all",
					len(remove),
					most,
				),
			)
		}
		for i := len(p.report.Leftovers) - len(remove); i < len(p.report.Leftovers); i++ {
			p.report.Leftovers[i].Held = true
		}
		return
	}
	react := map[string]bool{}
	for _, s := range p.program.steps {
		react[s.ID()] = p.reactionDue(s.reaction("prune"))
	}
	for _, id := range remove {
		thing := p.managed.Things[id]
		if p.remove(ctx, id, thing) {
			for _, watcher := range thing.Watchers {
				react[watcher] = true
			}
		}
	}
	p.reactions(ctx, "prune", react)
	if len(remove) > 0 {
		p.goneWith(ctx)
	}
}

// goneWith drops leftovers that went with what was removed, as a unit with its package.
func (p pruner) goneWith(ctx context.Context) {
	things := p.managed.Things
	p.report.Leftovers = slices.DeleteFunc(p.report.Leftovers, func(l Leftover) bool {
		gone := !p.program.onHost(ctx, p.options.Host, l.thing, things[l.thing])
		if gone {
			delete(things, l.thing)
		}
		return gone
	})
}

// leftovers are the things that no step declares any longer, the last that came first.
func (p pruner) leftovers() []string {
	m := p.managed
	if len(m.Things) == 0 || m.Digest == p.applied() && len(m.Left) == 0 {
		return nil
	}
	d := p.declared()
	var out []string
	for id, t := range m.Things {
		if !d.has(p.options.Host, id, t) {
			out = append(out, id)
		}
	}
	first := func(id string) int {
		return map[bool]int{true: 1}[p.program.specs[m.Things[id].Absent].RemovesFirst]
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(first(b)-first(a), m.Things[b].Order-m.Things[a].Order, strings.Compare(b, a))
	})
	return out
}

// leave says why a leftover is not removed; "" is to remove it.
func (p pruner) leave(t journal.Thing) string {
	prune, removed := t.Prune || p.options.PruneRemoved, true
	for _, j := range p.program.catalog.Jobs {
		if j.Name == t.Job {
			prune, removed = j.Prune, false
		}
	}
	_, known := p.program.specs[t.Absent]
	switch {
	case !prune && removed:
		return "job " + t.Job + ", which was removed, did not say prune: true"
	case !prune:
		return "job " + t.Job + " does not say prune: true"
	case !known:
		return "nothing removes it by itself: a step has to"
	case !t.New:
		return "it was on the host before job " + t.Job + " managed it"
	case p.report.Failed() || p.report.Pending():
		return "this run did not succeed"
	}
	return ""
}

func (p pruner) limit() int {
	switch {
	case p.options.PruneAll:
		return len(p.managed.Things)
	case p.options.PruneLimit > 0:
		return p.options.PruneLimit
	}
	return DefaultPruneLimit
}

func (p pruner) reportLeftover(id, why string) {
	thing := p.managed.Things[id]
	p.report.Leftovers = append(
		p.report.Leftovers,
		Leftover{thing: id, ID: p.program.title(id, thing), Job: thing.Job, Why: why},
	)
}

// title is the name that people see of a thing.
func (p *Program) title(id string, t journal.Thing) string {
	return p.specs[t.Absent].Title(id)
}

// leftIDs are the leftovers of the report.
func (r *Report) leftIDs() []string {
	var out []string
	for _, l := range r.Leftovers {
		out = append(out, l.ID)
	}
	return out
}

// removal is the step that removes a thing; nil when nothing does.
func (p *Program) removal(id string, t journal.Thing) *boundStep {
	spec, ok := p.specs[t.Absent]
	if !ok {
		return nil
	}
	params, err := render.ParamsOf(t.Params)
	if err != nil {
		return nil
	}
	step := &render.Step{
		Job:       t.Job,
		Name:      pruning + p.title(id, t),
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
	if len(s.bind(p.catalog, p.specs)) > 0 { // of a version of pullet that wrote other parameters
		return nil
	}
	return s
}

// onHost reports that a thing is there. Where that cannot be told, it may be.
func (p *Program) onHost(ctx context.Context, h *Host, id string, t journal.Thing) bool {
	s := p.removal(id, t)
	switch {
	case t.Path != "" && !t.Part && h.Goes(t.Path):
		return false
	case s == nil && t.Path != "" && !t.Part:
		return !h.gone(t.Path)
	case s == nil:
		return true
	case t.Path != "" && !t.Part:
		return s.isThere(ctx, h, t.Path)
	}
	change, err := s.compare(ctx, h)
	return err != nil || !change.Empty()
}

// remove takes a thing off the host, as a step of the report, and reports that it changed something. What cannot be
// removed, such as a directory in which others have something, is left and no failure.
func (p pruner) remove(ctx context.Context, id string, t journal.Thing) bool {
	s := p.program.removal(id, t)
	if s == nil || p.stopped() || ctx.Err() != nil {
		p.reportLeftover(id, "it could not be removed in this run")
		return false
	}
	var before StepReport
	if !p.options.Journal.Ended(s.ID(), &before) {
		change, err := s.compare(ctx, p.options.Host)
		switch {
		case err != nil:
			p.reportLeftover(id, "it cannot be removed: "+err.Error())
			return false
		case change.Empty() && p.program.onHost(ctx, p.options.Host, id, t):
			p.reportLeftover(id, "there is something in it that no job brought")
			return false
		case change.Empty():
			delete(p.managed.Things, id)
			return p.options.Journal.CutOff(s.ID()) // the run that was cut off did it
		}
	}
	p.one(ctx, &turn{step: s}, nil)
	r := p.of(s.ID())
	if r.Outcome != Changed && r.Outcome != OK {
		p.reportLeftover(id, "it could not be removed: "+r.Reason)
	} else { // a plan saves nothing
		delete(p.managed.Things, id)
	}
	return r.Outcome == Changed
}
