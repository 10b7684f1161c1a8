// Command pullet keeps hosts at what git says. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/puller"
)

func main() {
	// What a step makes has the mode that it says, or the usual one: not what the service manager left in the process.
	syscall.Umask(0o022)
	hideMemory()
	ctx, endNow := stopSignals()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, endNow))
}

// stopSignals is how to end: the first signal ends the context, and a pull finishes its running step; the second one
// ends the commands of that step; the third one ends the process.
func stopSignals() (ctx context.Context, endNow <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	got, now := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(got, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-got
		cancel()
		<-got
		signal.Stop(got)
		close(now)
	}()
	return ctx, now
}

// exitUsage is the code of a command line that cannot be understood.
const exitUsage = 64

// exit is an error with the code that the process ends with. A nil err says nothing.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string { return fmt.Sprint(e.err) }
func (e *exit) Unwrap() error { return e.err }

// run executes one command line and returns its exit code. Once ctx and endNow have ended, it ends also what a step has
// begun.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, endNow <-chan struct{}) int {
	out, errs := newStream(stdout), newStream(stderr)
	stdout, stderr = out, errs
	a := &app{out: out, err: errs, streams: []*stream{out, errs}, endNow: endNow}
	root := a.root()
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		completions{a}.complete(root)
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	_, _, unknown := root.Find(args)
	var ended *exit
	switch {
	case err == nil:
		return agent.ExitOK
	case errors.As(err, &ended) && ended.err == nil:
		return ended.code
	case errors.As(err, &ended):
		tell(stderr, logrus.ErrorLevel, "pullet: %v", ended.err)
		return ended.code
	case isUnverified(err):
		tell(stderr, logrus.ErrorLevel, "pullet: %v", err)
		return agent.ExitRefused
	case unknown != nil:
		tell(stderr, logrus.ErrorLevel, "pullet: %v", err)
		return exitUsage
	}
	tell(stderr, logrus.ErrorLevel, "pullet: %v", err)
	return agent.ExitError
}

// app is what every command shares: its outputs and the global flags.
type app struct {
	out, err  io.Writer
	streams   []*stream // out and err
	color     string
	times     string
	config    string // "": the default; see configFile
	rootDir   string
	output    string
	logFormat string
	verbose   int
	endNow    <-chan struct{}
}

// root is the command line: the list below is the order of the help.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "pullet",
		Short:         "Keep hosts at what git says: pull, render, apply, one after another",
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := flagsFromEnvironment(cmd); err != nil {
				return err
			}
			var err error
			if a.rootDir, err = filepath.Abs(a.rootDir); err != nil { // commands of steps run elsewhere
				return err
			}
			if err := checkRoot(a.rootDir); err != nil {
				return usage(err)
			}
			if err := a.checkOutput(cmd.Name()); err != nil {
				return err
			}
			return setLook(a)
		},
	}
	root.Version = build().String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "show the version of pullet") // else cobra takes what follows it for its value
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exit{exitUsage, flagError(err)} })
	f := root.PersistentFlags()
	f.StringVar(
		&a.config, "config", "", "the node's configuration (default: "+string(agent.DefaultConfig)+" below --root)",
	)
	f.StringVar(
		&a.rootDir, "root", "/", "the directory that is / for steps, and for the default paths of pullet itself",
	)
	f.StringVarP(&a.output, "output", "o", "table", "how to print: table, wide, json or yaml")
	f.StringVar(&a.color, "color", "auto", "colours: auto (on a terminal), always or never")
	f.StringVar(
		&a.times, "times", "", "times: relative (3m ago) or absolute (default: relative, and absolute with -o wide)",
	)
	f.StringVar(&a.logFormat, "log-format", "text", "how to log: text or json")
	f.CountVarP(&a.verbose, "verbose", "v", "log more, and what commands print; twice for everything")
	root.AddGroup(
		&cobra.Group{ID: "node", Title: "On a node:"},
		&cobra.Group{ID: "fleet", Title: "Over the fleet:"},
		&cobra.Group{ID: "repo", Title: "On a laptop or in CI:"},
	)
	for _, c := range []*cobra.Command{
		pullCommand(a), agentCommand(a), planCommand(a), forgetCommand(a), factsCommand(a), joinCommand(a), etcdCommand(a),
		datastoreCommand(a),
		statusCommand(a), nodesCommand(a), failuresCommand(a), locksCommand(a), servicesCommand(a), rolloutCommand(a),
		eventsCommand(a), eventCommand(a), reactionsCommand(a),
		runCommand(a), enableCommand(a), disableCommand(a), fleetCommand(a), extensionCommand(a),
		verifyCommand(a), pendingCommand(a), waitCommand(a), setStatusCommand(a), decommissionCommand(a),
		historyCommand(a), logsCommand(a), journalCommand(a), doctorCommand(a), selftestCommand(a), fallbackCommand(a),
		initCommand(a), validateCommand(a), renderCommand(a), secretsCommand(a), explainCommand(a), schemaCommand(a),
		graphCommand(a),
		evalCommand(a), demoCommand(a), versionCommand(a),
	} {
		root.AddCommand(c)
	}
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" { // cobra's own runs nothing, and takes any argument
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			c.Args = noArgs
		}
	}
	most := proseWidth(a.out)
	root.SetUsageTemplate(
		strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", most)),
	)
	show := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		c.Long = paragraphs(c.Long, most)
		show(c, args)
	})
	return root
}

// flagsFromEnvironment gives every flag that was not set its PULLET_* twin.
func flagsFromEnvironment(cmd *cobra.Command) error {
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := "PULLET_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, set := os.LookupEnv(name)
		if !set || f.Changed || f.Name == "help" {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return &exit{exitUsage, err}
	}
	return nil
}

// checkRoot refuses a root that is not there, before a command does anything: a slip would look like an empty host.
func checkRoot(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--root %s: there is no such directory: make it first, or leave --root out", dir)
	case err != nil:
		return fmt.Errorf("--root: %w", err)
	case !info.IsDir():
		return fmt.Errorf("--root %s: it is not a directory", dir)
	}
	return nil
}

// checkOutput refuses a form of output that a command does not have, before it does anything.
func (a *app) checkOutput(command string) error {
	if forms := outputForms(command); !slices.Contains(forms, a.output) {
		return &exit{exitUsage, fmt.Errorf("--output %q: use %s", a.output, oneOf(forms))}
	}
	return nil
}

// setLook decides how the outputs show things.
func setLook(a *app) error {
	if all := colorForms(); !slices.Contains(all, a.color) {
		return usage(fmt.Errorf("--color %q: use %s", a.color, oneOf(all)))
	}
	if all := timesForms(); a.times != "" && !slices.Contains(all, a.times) {
		return usage(fmt.Errorf("--times %q: use %s", a.times, oneOf(all)))
	}
	wide := a.output == "wide"
	for _, s := range a.streams {
		s.inks, s.wide = s.takesInks(a.color), wide
		s.absolute = a.times == "absolute" || a.times == "" && wide
	}
	return nil
}

func colorForms() []string { return []string{"auto", "always", "never"} }
func timesForms() []string { return []string{"relative", "absolute"} }

// outputForms are the forms in which a command prints.
func outputForms(command string) []string {
	switch command {
	case "validate":
		return []string{"table", "json", "github"}
	case "graph":
		return []string{"table", "dot", "mermaid", "json", "yaml"}
	case "services":
		return []string{"table", "wide", "json", "yaml", "hosts", "hiera"}
	}
	return []string{"table", "wide", "json", "yaml"}
}

// oneOf lists words of which one is to be used.
func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// noArgs and upToOne are cobra's argument checks with our exit code.
func noArgs(cmd *cobra.Command, args []string) error {
	if cmd.HasSubCommands() {
		return usage(cobra.NoArgs(cmd, args))
	}
	return arguments(cobra.NoArgs)(cmd, args)
}

func upToOne(cmd *cobra.Command, args []string) error {
	return arguments(cobra.MaximumNArgs(1))(cmd, args)
}

// arguments is a check of cobra's that says what to write instead.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil {
			return nil
		}
		given := "nothing was given"
		if len(args) > 0 {
			given = fmt.Sprintf("%q is not what it takes", strings.Join(args, " "))
		}
		return usage(fmt.Errorf("%s: write %s %s", given, cmd.Parent().CommandPath(), cmd.Use))
	}
}

func usage(err error) error {
	if err == nil {
		return nil
	}
	return &exit{exitUsage, err}
}

// logger is the one logger, on stderr.
func (a *app) logger() *logrus.Entry {
	l, inks := logrus.New(), lookOf(a.err).inks
	l.SetOutput(ownWriter{a.err})
	l.SetLevel([]logrus.Level{logrus.WarnLevel, logrus.InfoLevel, logrus.DebugLevel}[min(a.verbose, 2)])
	if toJournal(a.err) && a.logFormat != "json" {
		l.SetFormatter(harmless{journalFormat{}})
	} else if a.logFormat == "json" {
		l.SetFormatter(harmless{&logrus.JSONFormatter{}})
	} else {
		l.SetFormatter(harmless{&logrus.TextFormatter{DisableColors: !inks, ForceColors: inks, FullTimestamp: true}})
	}
	return logrus.NewEntry(l)
}

// configFile returns the file of the node's configuration.
func configFile(a *app) (string, error) {
	if a.config != "" {
		return a.config, nil
	}
	return agent.DefaultConfig.Below(a.rootDir)
}

// readConfig reads the node's configuration.
func (a *app) readConfig() (agent.Config, error) {
	file, err := configFile(a)
	if err != nil {
		return agent.Config{}, err
	}
	return agent.ReadConfig(file, a.rootDir)
}

// isUnverified reports a commit that is not signed as this host demands.
func isUnverified(err error) bool {
	_, ok := errors.AsType[*puller.UnverifiedError](err)
	return ok
}
