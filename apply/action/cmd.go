package action

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// CmdRun runs a command. A text is a line for /bin/sh; a list is a program with its arguments, without a shell. It succeeds with
// exit code 0.
//
// With creates, removes, unless or onlyif it runs whenever they say so. Without, it runs once for each version and set of
// parameters; runs: always makes it run at every pull.
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
type CmdRun struct {
	Cmd     render.Line       `yaml:"cmd,required"` // a line for /bin/sh, or a list without a shell
	Cwd     string            `yaml:"cwd"`          // where it runs; default: the root
	Env     map[string]string `yaml:"env"`          // added to a clean environment
	User    string            `yaml:"user"`         // who runs it; default: the agent's own user
	Timeout render.Duration   `yaml:"timeout"`      // after which it is killed; default: the run's deadline
	Creates string            `yaml:"creates"`      // do not run when this path exists
	Removes string            `yaml:"removes"`      // do not run when this path does not exist
	Unless  string            `yaml:"unless"`       // do not run when this command succeeds
	OnlyIf  string            `yaml:"onlyif"`       // run only when this command succeeds
	// Changed says from result whether the command changed something: "result.StdOut contains 'created'"; default: it did
	Changed *render.Expression `yaml:"changed"`
	// Failed says from result whether the command failed: "result.ExitCode not in [0, 2]"; default: any exit code but 0
	Failed *render.Expression `yaml:"failed"`
}

// Verdict gives the expressions that judge the command.
func (a *CmdRun) Verdict() (changed, failed *render.Expression) { return a.Changed, a.Failed }

// Bind checks the parameters.
func (a *CmdRun) Bind(apply.Binding) error {
	for param, path := range map[string]string{"cwd": a.Cwd, "creates": a.Creates, "removes": a.Removes} {
		if path != "" {
			if err := apply.AbsPath(param, path); err != nil {
				return err
			}
		}
	}
	if len(a.Cmd.Args) == 0 {
		return apply.BadParam("cmd", "is empty")
	}
	return nil
}

// Unchecked reports a command without a guard.
func (a *CmdRun) Unchecked() bool {
	return a.Creates == "" && a.Removes == "" && a.Unless == "" && a.OnlyIf == ""
}

// Check asks the guards. They are commands that only read.
func (a *CmdRun) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	run := apply.Change{Summary: "run " + a.Cmd.String()}
	for path, wanted := range map[string]bool{a.Creates: false, a.Removes: true} {
		if path == "" {
			continue
		}
		at, err := h.Path(path)
		if err != nil {
			return apply.Change{}, err
		}
		if exists(at) != wanted {
			return apply.Change{}, nil
		}
	}
	for line, wanted := range map[string]bool{a.Unless: false, a.OnlyIf: true} {
		if line == "" {
			continue
		}
		out, err := a.run(ctx, h, apply.Shell(line))
		if err != nil {
			return apply.Change{}, fmt.Errorf("%s: %w", line, err)
		}
		if (out.ExitCode == 0) != wanted {
			return apply.Change{}, nil
		}
	}
	return run, nil
}

// Apply runs the command.
func (a *CmdRun) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	if a.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.Timeout.Std())
		defer cancel()
	}
	args := a.Cmd.Args
	if a.Cmd.Shell {
		args = apply.Shell(args[0])
	}
	out, err := a.run(ctx, h, args)
	if err != nil {
		return out, fmt.Errorf("%s: %w", a.Cmd.String(), err)
	}
	if out.ExitCode != 0 {
		return out, &apply.ExitError{Command: a.Cmd.String(), Output: out}
	}
	return out, nil
}

// run runs a command where and as whom the parameters say.
func (a *CmdRun) run(ctx context.Context, h *apply.Host, args []string) (apply.Output, error) {
	dir, err := h.Resolve(filepath.Join("/", a.Cwd))
	if err != nil {
		return apply.Output{}, err
	}
	return h.Run(ctx, apply.Command{Args: args, Dir: dir, Env: a.Env, User: a.User})
}

// React runs the command again because something that it watches changed.
func (a *CmdRun) React(ctx context.Context, h *apply.Host) (apply.Output, error) {
	return a.Apply(ctx, h, apply.Change{})
}
