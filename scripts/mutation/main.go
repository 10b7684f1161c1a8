// Command mutation puts faults into packages, one at a time, and says which test finds each: scripts/mutants.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// core are the packages whose tests are tried without arguments.
var core = []string{"lock", "apply", "state", "internal/agent"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("scripts/mutants", flag.ExitOnError)
	sample := flags.Int("n", 10, "how many mutants of each place")
	seed := flags.Int("seed", 1, "which mutants")
	list := flags.Bool("list", false, "print the mutants, and test none")
	fleets := flags.Bool("fleets", false, "try simulated fleets on what the tests of its package do not kill")
	pattern := flags.String(
		"scripts",
		"",
		"scripts of the command line that are tried on what is alive then: a pattern of go test -run",
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if args = flags.Args(); len(args) == 0 {
		args = core
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprint("m", os.Getpid()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t := tally{bench: newBench(dir, os.Stderr), out: out, list: *list}
	for _, arg := range args {
		p, err := parsePlace(arg)
		if err != nil {
			return err
		}
		all, err := p.ranked(*seed)
		if err != nil {
			return err
		}
		if err := t.place(ctx, all, *sample); err != nil {
			return err
		}
	}
	if *list {
		return nil
	}
	fmt.Fprintf(out, "%d of %d mutants killed by the tests of their packages (seed %d)\n", t.killed, t.tried, *seed)
	if *fleets {
		if err := t.also(ctx, suite{simulation, "^TestFleet$"}); err != nil {
			return err
		}
		fmt.Fprintf(out, "%d of %d mutants killed with simulated fleets (seed %d)\n", t.killed, t.tried, *seed)
	}
	if *pattern == "" {
		return nil
	}
	if err := t.also(ctx, scripts(*pattern)); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d mutants killed with the scripts %s (seed %d)\n", t.killed, t.tried, *pattern, *seed)
	return nil
}

// tally counts what came of mutants.
type tally struct {
	bench         *bench
	out           io.Writer
	list          bool
	tried, killed int
	survived      []*mutant // what was tried on them so far
}

// place tries mutants on the tests of their packages until enough compiled.
func (t *tally) place(ctx context.Context, all []*mutant, sample int) error {
	for tried := 0; len(all) > 0 && tried < sample; all = all[1:] {
		if t.list {
			fmt.Fprintln(t.out, all[0])
			tried++
			continue
		}
		v, err := t.bench.killer(ctx, suite{pkg: filepath.Dir(all[0].file)}, all[0])
		if errors.Is(err, errNotCompiled) {
			continue
		}
		if err != nil {
			return err
		}
		tried++
		t.tried++
		if t.says(all[0], v); !v.failed() {
			t.survived = append(t.survived, all[0])
		}
	}
	return nil
}

// also tries the survivors on another suite.
func (t *tally) also(ctx context.Context, s suite) error {
	var alive []*mutant
	for _, m := range t.survived {
		v, err := t.bench.killer(ctx, s, m)
		if err != nil {
			return err
		}
		if t.says(m, v); !v.failed() {
			alive = append(alive, m)
		}
	}
	t.survived = alive
	return nil
}

// says prints what came of a mutant.
func (t *tally) says(m *mutant, v verdict) {
	if !v.failed() {
		fmt.Fprintf(t.out, "ALIVE: %s\n", m)
		return
	}
	t.killed++
	fmt.Fprintf(t.out, "killed: %s\n    by %s\n", m, v)
}
