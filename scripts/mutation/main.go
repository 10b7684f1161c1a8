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
	"time"
)

// core are the packages whose tests are tried without arguments.
var core = []string{"lock", "apply", "state", "agent"}

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
	t := tally{bench: &bench{dir: dir, limits: map[string]time.Duration{}}, out: out, list: *list}
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
	if err := t.scripts(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d mutants killed (seed %d)\n", t.killed, t.tried, *seed)
	return nil
}

// tally counts what came of mutants.
type tally struct {
	bench         *bench
	out           io.Writer
	list          bool
	tried, killed int
	survived      []*mutant // the tests of their packages
}

// place tries mutants on the tests of their packages until enough compiled.
func (t *tally) place(ctx context.Context, all []*mutant, sample int) error {
	for tried := 0; len(all) > 0 && tried < sample; all = all[1:] {
		if t.list {
			fmt.Fprintln(t.out, all[0])
			tried++
			continue
		}
		by, err := t.bench.byPackage(ctx, all[0])
		if errors.Is(err, errNotCompiled) {
			continue
		}
		if err != nil {
			return err
		}
		tried++
		t.tried++
		if t.says("survives its package", all[0], by); by == "" {
			t.survived = append(t.survived, all[0])
		}
	}
	return nil
}

// scripts tries the survivors on the scripts of the command line.
func (t *tally) scripts(ctx context.Context) error {
	for _, m := range t.survived {
		by, err := t.bench.byScript(ctx, m)
		if err != nil {
			return err
		}
		t.says("ALIVE", m, by)
	}
	return nil
}

// says prints what came of a mutant: which test killed it, or a word for none.
func (t *tally) says(none string, m *mutant, by string) {
	if by == "" {
		fmt.Fprintf(t.out, "%s: %s\n", none, m)
		return
	}
	t.killed++
	fmt.Fprintf(t.out, "killed: %s\n    by %s\n", m, by)
}
