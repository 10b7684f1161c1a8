package command

import (
	"context"
	"errors"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// Run runs a command. A text is a line for /bin/sh; a list is a program with its arguments, without a shell. It
// succeeds with exit code 0.
//
// With creates, removes, unless or onlyif it runs whenever they say so. Without, it runs once for each version and set
// of parameters; runs: always makes it run at every pull.
//
// Example:
//
//	steps:
//	  - name: search index
//	    action: cmd.run
//	    parameters:
//	      cmd: /usr/local/bin/make-index --all
//	      creates: /srv/index/current
//	      timeout: 10m
type Run struct {
	Cmd     render.Line `yaml:"cmd,required"` // a line for /bin/sh, or a list without a shell
	Options `yaml:",inline"`
}

// Bind checks the parameters.
func (a *Run) Bind(b apply.Binding) error {
	if err := a.check(); err != nil {
		return err
	}
	if len(a.Cmd.Args) == 0 {
		return apply.BadParam("cmd", "is empty")
	}
	return a.bind(b)
}

// Check asks the guards. They are commands that only read.
func (a *Run) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	return a.due(ctx, h, a.Cmd.String())
}

// Apply runs the command.
func (a *Run) Apply(ctx context.Context, h *apply.Host, change apply.Change) (apply.Output, error) {
	if err := change.Unanswered(); err != nil {
		return apply.Output{}, err
	}
	args := a.Cmd.Args
	if a.Cmd.Shell {
		args = apply.Shell(args[0])
	}
	return a.execute(ctx, h, a.Cmd.String(), args)
}

// React runs the command again because something that it watches changed.
func (a *Run) React(ctx context.Context, h *apply.Host) (apply.Output, error) {
	return a.Apply(ctx, h, apply.Change{})
}

// Reads refuses parameters that say whether the command runs or changed something: a macro's command always runs, and
// only reads.
func (a *Run) Reads() error {
	if !a.Unchecked() || a.Changed != nil || a.Failed != nil {
		return errors.New(
			"a macro always runs its command, which only reads: leave out creates, removes, unless, onlyif, changed and failed",
		)
	}
	return nil
}

// Read is what the command prints.
func (a *Run) Read(ctx context.Context, h *apply.Host) (string, error) {
	out, err := a.Apply(ctx, h, apply.Change{})
	return out.StdOut, err
}
