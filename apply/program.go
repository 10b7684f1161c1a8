package apply

import (
	"context"
	"errors"

	"github.com/pullet/pullet/render"
)

// ProgramFate is what became of pullet's own program in a run.
type ProgramFate struct {
	HandOver bool  // it was replaced: the new one goes on with the run
	Later    error // it was replaced, and the new one cannot take over now
	Refused  error // the new one was put back: the run fails
}

// errHandOver is why a run ends that the new program goes on with.
var errHandOver = errors.New("pullet was replaced: the new one goes on with the run")

// programCheck asks what became of pullet's own program.
type programCheck struct{ *execution }

// ask ends the run before its validations where another program goes on with it: the host is at the version only
// when the new pullet says so. What was put back fails the run as a step does.
func (x programCheck) ask(ctx context.Context) {
	if x.plan || x.options.Program == nil || x.stopped() || ctx.Err() != nil || x.report.Failed() || x.report.Waits() {
		return
	}
	switch fate := x.options.Program(ctx); {
	case fate.Refused != nil:
		step := &render.Step{Job: "pullet", Name: "program"}
		s := &boundStep{Step: step, job: &render.Job{Name: step.Job}, id: step.ID()}
		x.finish(s, &StepReport{Job: step.Job, Step: step.Name, Outcome: Failed, Reason: fate.Refused.Error()})
	case fate.Later != nil:
		x.stopBecause(fate.Later)
	case fate.HandOver:
		x.report.HandOver = true
		x.stopBecause(errHandOver)
	}
}
