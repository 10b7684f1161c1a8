package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/cmd/pullet/fleetnames"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

const exitStatusHelp = `
EXIT STATUS
  0   the node is at the fleet's version
  1   an error, or a step that failed
  3   not finished: the node waits at a gate, for its repository or for another pull on it, or a signal stopped the pull
  5   the repository was refused: its history was rewritten, a tag was moved, or a commit cannot be used
  64  the command line is wrong
With --detailed-exitcode: 0 nothing changed, 2 changed, 4 failed, 6 changed and failed.`

// pullFlags are the flags of a pull that are no options of the agent's.
type pullFlags struct {
	detailed bool
	quiet    bool
	splay    time.Duration
}

func pullCommand(a *app) *cobra.Command {
	var o agent.Options
	var p pullFlags
	c := &cobra.Command{
		Use: "pull", GroupID: "node", Args: noArgs,
		Short: "Bring this node to the fleet's version, once",
		Long: "Pull fetches the state repositories, agrees with the fleet on a version, renders it for this node\n" +
			"and applies it. A version that is new to the node waits for its turn; one that it runs already is\n" +
			"checked, and drift is corrected. For cron and timers.\n" + exitStatusHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := a.pull(cmd, o, p)
			if next, ok := errors.AsType[*agent.ReplacedError](err); ok {
				return next.Program.Continue(withoutSplay(os.Args[1:]))
			}
			return err
		},
	}
	f := c.Flags()
	durationVar(f, &o.Wait, "wait", 0, "how long to wait in all (default: agent.wait of the configuration, 10m)")
	f.BoolVar(
		&o.AcceptRewind,
		"accept-rewind",
		false,
		"accept a rewritten history or a moved tag, for the whole fleet; it is recorded",
	)
	f.BoolVar(
		&o.PruneAll,
		"prune-all",
		false,
		"remove what jobs no longer declare although it is more than agent.pruneLimit at once",
	)
	f.BoolVar(
		&o.PruneRemoved,
		"prune-removed",
		false,
		"remove also what removed jobs left that did not say prune: true",
	)
	f.BoolVar(
		&o.Retry,
		"retry",
		false,
		"try a version again that failed here and whose files were put back (onFailure: restore)",
	)
	f.BoolVar(&p.detailed, "detailed-exitcode", false, "tell changed from unchanged by the exit code")
	f.BoolVarP(
		&p.quiet,
		"quiet",
		"q",
		false,
		"print only what is wrong; a wait, also for another pull on this node, is just the exit code 3",
	)
	durationVar(f, &p.splay, "splay", 0, "begin later by at most so much, always the same on a node: for cron")
	return c
}

func (a *app) pull(cmd *cobra.Command, o agent.Options, p pullFlags) (err error) {
	collectLess()
	config, err := a.readConfig()
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("wait") {
		o.Wait = config.Agent.Wait.Std()
	}
	if o.Wait < 0 {
		return usage(fmt.Errorf("--wait %s: write a time from 0s on, such as 10m", o.Wait))
	}
	if p.splay < 0 {
		return usage(fmt.Errorf("--splay %s: write a time from 0s on, such as 30s", p.splay))
	}
	live, logged := a.verbose > 0, toJournal(a.err) && a.output == "table"
	if logged {
		a.verbose = max(a.verbose, 1)
	}
	splay := splayOf(config.Node.Name, p.splay)
	if splay >= time.Second && !p.quiet {
		fmt.Fprintf(a.err, "this node's pull begins in %s, by --splay\n", splay.Round(time.Second))
	}
	if err := standBy(cmd.Context(), splay); err != nil {
		return stopped(cmd.Context(), err)
	}
	log := a.logger()
	node, err := agent.New(config, build().Version, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	node.EndNow = a.endNow
	if err := ownProgram(node, a.rootDir, config); err != nil {
		return err
	}
	o.By = a.operator()
	show, stop := a.watcher(cmd.Context(), log, logged, p.quiet, func() int64 { return agent.Received(config) })
	o.Waiting, o.Begins, o.Watch, o.Phase = show.Waiting, show.Begin, show.Step, show.Phase
	if live || !p.quiet && drawable(a.err) {
		node.Live = show.Live
	}
	out, err := node.Pull(cmd.Context(), o)
	stop()
	var locked *state.LockedError
	var orphan *apply.OrphanError
	if errors.As(err, &locked) || errors.As(err, &orphan) {
		if p.quiet {
			err = nil
		}
		return &exit{agent.ExitWaiting, err}
	}
	if err != nil && out.Report == nil {
		return incomplete(cmd.Context(), out, err)
	}
	handsOver := err == nil && out.HandsOver()
	if logged {
		newRunLog(log).Pulled(out, nil)
	} else if !handsOver { // else the new program prints what came of the run
		if unsaid := a.printOutcome(out, config, p.quiet); unsaid != nil {
			return errors.Join(unsaid, err)
		}
	}
	if handsOver {
		return &agent.ReplacedError{Program: node.Program}
	}
	if err != nil { // what was done is shown also where it could not be recorded
		return incomplete(cmd.Context(), out, err)
	}
	if code := exitCode(out, p.detailed); code != 0 {
		return &exit{code, nil}
	}
	return nil
}

// withoutSplay are arguments without the time that a pull waits before it begins: it began.
func withoutSplay(args []string) (out []string) {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--splay":
			i++
		case !strings.HasPrefix(args[i], "--splay="):
			out = append(out, args[i])
		}
	}
	return out
}

// collectLess lets the heap grow to three times what is in use before garbage is collected, instead of twice: this
// process ends soon. GOGC of the environment wins.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
}

// watcher sees a pull while it runs.
type watcher interface {
	Waiting(*lock.Wait)
	Begin(apply.Begun)
	Step(*apply.StepReport)
	Live(step, line string)
	Phase(agent.PhaseName)
}

// watcher is what shows a pull: the log in systemd's journal, and elsewhere the progress, which a quiet pull has for
// nobody.
func (a *app) watcher(
	ctx context.Context,
	log *logrus.Entry,
	logged, quiet bool,
	received func() int64,
) (w watcher, stop func()) {
	switch {
	case logged:
		return newRunLog(log), func() {}
	case quiet:
		return newProgress(ctx, io.Discard)
	}
	p, stop := newProgress(ctx, a.err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loud, p.bytes = a.verbose > 0, received
	return p, stop
}

// stopped is the error of a pull that could not be made, or none of its own where a signal stopped it.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return &exit{agent.ExitWaiting, fmt.Errorf("stopped by a signal (%w): the next pull goes on", err)}
}

// incomplete is the error of a pull that began and could not be ended.
func incomplete(ctx context.Context, out *agent.Outcome, err error) error {
	if code := out.ExitCodeAfter(err); ctx.Err() == nil && code != agent.ExitError {
		return &exit{code, err}
	}
	return stopped(ctx, err)
}

// operator is who runs the command, for the record: the name in the certificate of an operator, and who types it where.
func (a *app) operator() string {
	config, err := a.readConfig()
	if name := config.Operator(); err == nil && name != "" {
		return name + " (" + userOnHost() + ")"
	}
	return userOnHost()
}

// userOnHost is who types a command, and on which host: root alone could be anybody.
func userOnHost() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

func agentCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "agent", GroupID: "node", Args: noArgs,
		Short: "Pull on a timer, when a file changes and when the fleet moves on",
		RunE: func(cmd *cobra.Command, _ []string) error {
			reload := make(chan os.Signal, 1)
			signal.Notify(reload, syscall.SIGHUP)
			service := newUnit()
			for {
				err := a.agent(cmd.Context(), service, reload)
				next, replaced := errors.AsType[*agent.ReplacedError](err)
				switch {
				case replaced:
					return next.Program.Continue(os.Args[1:])
				case !errors.Is(err, agent.ErrReload):
					return err
				}
				service.reloads()
			}
		},
	}
}

// agent runs the loop until a signal stops it or the configuration changes.
func (a *app) agent(ctx context.Context, service *unit, reload <-chan os.Signal) (err error) {
	config, err := a.readConfig()
	if err != nil {
		return err
	}
	live := a.verbose > 0
	a.verbose = max(a.verbose, 1)
	log := a.logger().WithField("node", config.Node.Name)
	node, err := agent.New(config, build().Version, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	node.EndNow = a.endNow
	if err := ownProgram(node, a.rootDir, config); err != nil {
		return err
	}
	says := newRunLog(log)
	if live {
		node.Live = says.Live
	}
	log.WithField("version", build().Version).Info("the agent starts")
	defer log.Info("the agent stops")
	service.log = log
	defer context.AfterFunc(ctx, func() { service.stops(config.Agent.Finish.Std()) })()
	o := agent.Observer{Waiting: says.Waiting, Begin: says.Begin, Step: says.Step, Pulled: says.Pulled, Reload: reload}
	return node.Loop(ctx, service.watches(o))
}

func factsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "facts [NAME]", GroupID: "node", Args: upToOne,
		Short: "What is true of this host: what templates see as server.NAME",
		RunE: func(_ *cobra.Command, args []string) error {
			all := gatherFacts(a.rootDir)
			if len(args) == 1 {
				value, ok := all[args[0]]
				if !ok {
					return fmt.Errorf("there is no fact %q%s", args[0], fleetnames.Suggestion(args[0], factNames()))
				}
				if done, err := a.structured(value); done || err != nil {
					return err
				}
				return printYAML(a.out, value)
			}
			if done, err := a.structured(all); done || err != nil {
				return err
			}
			return printYAML(a.out, all)
		},
	}
}
