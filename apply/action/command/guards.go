package command

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"path/filepath"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
	"github.com/pullet/pullet/render"
)

// Guards say whether something is to be done that cannot be compared with the host. All that are given must agree. A
// command that cannot be run (exit code 126 or 127), or is killed, has no answer, and the step fails. It answers no
// with these codes where it asks for a program with command -v, type or hash.
type Guards struct {
	Creates string `yaml:"creates"` // do not run when this path exists
	Removes string `yaml:"removes"` // do not run when this path does not exist
	Unless  string `yaml:"unless"`  // do not run when this command succeeds; it is bounded by timeout
	OnlyIf  string `yaml:"onlyif"`  // run only when this command succeeds; it is bounded by timeout
}

// Unchecked reports that there is no guard.
func (g Guards) Unchecked() bool { return g == Guards{} }

// checkPaths finds paths that are none.
func (g Guards) checkPaths() error {
	return absolute(map[string]string{"creates": g.Creates, "removes": g.Removes})
}

// absolute holds the paths of parameters that are set against what a path must be.
func absolute(params map[string]string) error {
	for param, path := range params {
		if path == "" {
			continue
		}
		if err := apply.AbsPath(param, path); err != nil {
			return err
		}
	}
	return nil
}

// permit asks the guards. Their commands only read; run says where, as whom and for how long they do. What it returns
// besides is the program that a guard lacks, which an earlier step may still bring.
func (g Guards) permit(
	h *apply.Host, run func(param string, args []string) (apply.Output, error),
) (permitted bool, lack *apply.LackError, err error) {
	for _, guard := range []struct {
		path   string
		wanted bool
	}{{g.Creates, false}, {g.Removes, true}} {
		if guard.path == "" {
			continue
		}
		if there, err := place.Stands(h, guard.path); err != nil || there != guard.wanted {
			return false, nil, err
		}
	}
	for _, guard := range []struct {
		param, line string
		wanted      bool
	}{{"unless", g.Unless, false}, {"onlyif", g.OnlyIf, true}} {
		if guard.line == "" {
			continue
		}
		out, err := run(guard.param, apply.Shell(guard.line))
		if err != nil {
			return false, nil, fmt.Errorf("%s: %s: %w", guard.param, guard.line, err)
		}
		yes, without, err := apply.Answer(guard.param, guard.line, out)
		switch {
		case err != nil:
			return false, nil, err
		case without != nil:
			lack = without
		case yes != guard.wanted:
			return false, nil, nil
		}
	}
	return true, lack, nil
}

// Options are how a command runs, and when.
type Options struct {
	Cwd     string            `yaml:"cwd"`     // where it runs; default: the root
	Env     map[string]string `yaml:"env"`     // added to a clean environment
	User    string            `yaml:"user"`    // who runs it; default: the agent's own user
	Timeout render.Duration   `yaml:"timeout"` // after which it, or a guard, is killed; default: the run's deadline
	Guards  `yaml:",inline"`
	// Changed says from result whether the command changed something: "result.StdOut contains 'created'"; default: it
	// did
	Changed *render.Expression `yaml:"changed"`
	// Failed says from result whether the command failed: "result.ExitCode not in [0, 2]"; default: any exit code but 0
	Failed *render.Expression `yaml:"failed"`
}

// Verdict gives the expressions that judge the command.
func (o Options) Verdict() (changed, failed *render.Expression) { return o.Changed, o.Failed }

// bind finds what is wrong with the expressions that judge the command.
func (o Options) bind(b apply.Binding) error {
	if b.Step == nil { // a macro, which is not judged
		return nil
	}
	for _, e := range []*render.Expression{o.Changed, o.Failed} {
		if bad := b.Catalog.Judgement(b.Step.ID(), e); len(bad) > 0 {
			return bad
		}
	}
	return nil
}

// Reaction is what a command does when something that it watches changed.
func (o Options) Reaction() string { return "run again" }

func (o Options) check() error {
	if err := absolute(map[string]string{"cwd": o.Cwd}); err != nil {
		return err
	}
	return o.checkPaths()
}

// due is the change that running would be, if the guards permit it.
func (o Options) due(ctx context.Context, h *apply.Host, what string) (apply.Change, error) {
	permitted, lack, err := o.permit(h, func(param string, args []string) (apply.Output, error) {
		return o.run(ctx, h, param, args)
	})
	if errors.Is(err, errNotYet) {
		permitted, err = true, nil
	}
	if err != nil || !permitted {
		return apply.Change{}, err
	}
	return apply.Change{Summary: "run " + what, Lacks: lack}, nil
}

// execute runs a command. An exit code other than 0 is an error.
func (o Options) execute(ctx context.Context, h *apply.Host, what string, args []string) (apply.Output, error) {
	out, err := o.run(ctx, h, "the command", args)
	if err != nil {
		return out, fmt.Errorf("%s: %w", what, err)
	}
	if out.ExitCode != 0 {
		return out, &apply.ExitError{Command: what, Output: out}
	}
	return out, nil
}

// errNotYet is a user or a directory that is not on the host, which an earlier step may still make: guards cannot be
// asked.
var errNotYet = errors.New("it is not on this host")

// run runs a command where, as whom and for how long the parameters say. Theirs is the parameter that it stands in.
func (o Options) run(ctx context.Context, h *apply.Host, theirs string, args []string) (apply.Output, error) {
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Timeout.Std())
		defer cancel()
	}
	dir, err := h.Resolve(filepath.Join("/", o.Cwd))
	if err != nil {
		return apply.Output{}, err
	}
	if !hostfile.Exists(dir) {
		return apply.Output{}, fmt.Errorf("cwd %s: %w", o.Cwd, errNotYet)
	}
	if _, err := user.Lookup(o.User); o.User != "" && errors.As(err, new(user.UnknownUserError)) {
		return apply.Output{}, fmt.Errorf("user %q: %w", o.User, errNotYet)
	}
	return h.Run(ctx, apply.Command{Args: args, Dir: dir, Env: o.Env, User: o.User, Theirs: theirs})
}
