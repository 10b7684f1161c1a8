package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// command is the action of every step: it takes its time, and ends as the seed has it.
type command struct {
	Name  string `yaml:"name,required"` // the step
	Reads string `yaml:"reads"`         // results by node, in JSON

	p *process
}

// actions are those of a host's agent.
func (p *process) actions() []apply.Spec {
	return []apply.Spec{{Name: "simulation.command", Summary: "take a while", New: func() apply.Action { return &command{p: p} }}}
}

// Unchecked is true: what it did cannot be seen.
func (c *command) Unchecked() bool { return true }

// Check always finds something to do.
func (c *command) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "run"}, nil
}

// hostFault is a failure by a fault of the host.
type hostFault struct{ error }

func (hostFault) HostFault() bool { return true }

// Apply runs it.
func (c *command) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	r := c.p.fleet.find(h.Env["PULLET_VERSION"])
	s := r.step(c.Name)
	e := c.p.event(r, s, h.Fence)
	e.what = "start"
	if err := c.p.arrow(); err != nil {
		return apply.Output{}, err
	}
	c.p.fleet.record(e)
	c.read(e)
	c.p.runs(e, s.takes)
	if err := c.p.sleep(ctx, s.takes); err != nil { // it was killed
		return apply.Output{}, err
	}
	c.p.ended()
	err := c.fails(s)
	e.what = map[bool]string{true: failed, false: "ok"}[err != nil]
	c.p.fleet.record(e)
	return apply.Output{StdOut: fmt.Sprintf("%s-%d", c.p.name, time.Now().UnixNano())}, err
}

// fails draws whether the command fails.
func (c *command) fails(s *task) error {
	p := c.p
	switch {
	case p.fleet.isCalm():
	case p.drawn() < s.fails:
		return errors.New("it failed")
	case p.drawn() < s.faults:
		return hostFault{errors.New("the host is at fault")}
	}
	return nil
}

// read writes down which results the step was given.
func (c *command) read(e event) {
	if e.step.reads == nil {
		return
	}
	var found map[string]render.StepResult
	c.p.fleet.must(json.Unmarshal([]byte(c.Reads), &found))
	if len(found) == 0 {
		c.p.fleet.breaks("%s reads no result of %s", c.p.name, e.step.reads.name)
	}
	for node, r := range found {
		switch {
		case r.StdOut == "": // an operator said what became of it
		case !strings.HasPrefix(r.StdOut, node+"-"):
			c.p.fleet.breaks("%s reads %q as the result of %s", c.p.name, r.StdOut, node)
		default:
			of := e
			of.what, of.value, of.step = "read", node+": "+r.StdOut, e.step.reads
			c.p.fleet.record(of)
		}
	}
}

// event is something that happens to a step on the host now.
func (p *process) event(r *release, s *task, fence func() int64) event {
	group := r.group(p.name, p.role)
	e := event{
		host: p.host, node: p.name, version: r.id, group: group, step: s, stage: r.stage(group),
	}
	if fence != nil {
		e.fence = fence()
	}
	e.gated = e.fence != 0 || p.upgrades(r)
	e.rollout = p.fleet.rolloutOf(p.name, r.id, e.fence)
	return e
}

// rolloutOf is the rollout in which a host works on a version: that of its claim, or the last one of the version.
func (f *fleet) rolloutOf(node, version string, fence int64) string {
	last := version
	for _, w := range slices.Backward(f.c.Writes()) {
		switch {
		case fence != 0 && strings.HasPrefix(w.Key, prefix+"slot/") && !w.Deleted:
			var claim state.Claim
			if parse(w, &claim); claim.Node == node {
				return claim.Rollout
			}
		case fence == 0 && w.Key == prefix+"current_version" && !w.Deleted:
			var v state.Version
			if parse(w, &v); v.ID == version {
				return v.Rollout()
			}
		}
	}
	return last
}

// local is the host's own record.
func (p *process) local() state.Local {
	disk, err := state.LoadLocal(p.disk())
	p.fleet.must(err)
	return disk
}

// upgrades reports that the host is being brought to a release, whether it asked for its turn or not.
func (p *process) upgrades(r *release) bool {
	disk := p.local()
	return disk.Upgrading != "" || disk.Running == nil || disk.Running.ID != r.id
}

// worksOn is the release whose steps run: the one that the host is brought to, or the one that it runs.
func (p *process) worksOn() *release {
	switch disk := p.local(); {
	case disk.Upgrading != "":
		return p.fleet.find(disk.Upgrading)
	case disk.Running != nil:
		return p.fleet.find(disk.Running.ID)
	}
	return nil
}

// reported notes how a step ended that ran no command: it stood already, or others take it.
func (p *process) reported(report *apply.StepReport) {
	r := p.worksOn()
	if r == nil || p.arrow() != nil {
		return
	}
	s := r.step(report.Job + "/" + report.Step)
	if s == nil {
		return
	}
	e := p.event(r, s, nil)
	switch report.Outcome {
	case apply.Skipped:
		e.what = skipped
	case apply.OK:
		e.what = "ok"
	default:
		return
	}
	p.fleet.record(e)
}
