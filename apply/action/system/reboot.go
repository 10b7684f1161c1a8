package system

import (
	"context"

	"github.com/pullet/pullet/apply"
)

// Reboot makes the host boot, once for each version and set of parameters, or, with onlyif, whenever that command
// succeeds; one that cannot be run fails the step. Steps that run already end first. The run's journal and the node's
// slot are kept, so no other node takes its turn in the meantime, and the first pull after the boot goes on behind this
// step: pullet's timer or agent has to be enabled on the host. Below another root than / there is nothing to boot.
//
// Example:
//
//	steps:
//	  - name: new kernel
//	    action: system.reboot
//	    parameters: {onlyif: test -e /run/reboot-required}
//	  - name: site answers
//	    action: cmd.run
//	    parameters: {cmd: curl -fsS http://localhost/}
type Reboot struct {
	OnlyIf string `yaml:"onlyif"` // reboot only when this command succeeds
}

// Unchecked reports a reboot that nothing asks for but the step.
func (a *Reboot) Unchecked() bool { return a.OnlyIf == "" }

// Reboots marks the action: it is done once the host booted.
func (a *Reboot) Reboots() {}

// Check asks the command whether a reboot is needed.
func (a *Reboot) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	if !h.IsMachine() {
		return apply.Change{}, nil
	}
	change := apply.Change{Summary: "reboot"}
	if a.OnlyIf != "" {
		out, err := h.Run(ctx, apply.Command{Args: apply.Shell(a.OnlyIf), Theirs: "onlyif"})
		if err != nil {
			return apply.Change{}, err
		}
		yes, lack, err := apply.Answer("onlyif", a.OnlyIf, out)
		if err != nil || !yes && lack == nil {
			return apply.Change{}, err
		}
		change.Lacks = lack
	}
	return change, nil
}

// Apply asks for the boot; the agent makes it when the run has ended.
func (a *Reboot) Apply(_ context.Context, _ *apply.Host, change apply.Change) (apply.Output, error) {
	if err := change.Unanswered(); err != nil {
		return apply.Output{}, err
	}
	return apply.Output{Reboot: true}, nil
}
