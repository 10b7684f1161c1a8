package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pullet/pullet/scripts/overlay"
)

// bench builds and tests mutants, one at a time.
type bench struct {
	dir   string    // for programs and the tests' files
	notes io.Writer // says which tests are flaky
	tests atomic.Int64
	sound map[string]string        // by package: its test program without a fault
	limit map[string]time.Duration // by suite: how long it may take on a mutant
	flaky []string                 // tests that kill nothing
}

// errNotCompiled is a mutant that is no program.
var errNotCompiled = errors.New("does not compile")

func newBench(dir string, notes io.Writer) *bench {
	return &bench{dir: dir, notes: notes, sound: map[string]string{}, limit: map[string]time.Duration{}}
}

// killer is the test of a suite that fails on a mutant: the zero verdict where none does. A test counts when it fails
// on the mutant again, alone, and passes without the fault. Another one is flaky: it is named, and left out from then
// on.
func (b *bench) killer(ctx context.Context, s suite, m *mutant) (verdict, error) {
	limit, err := b.limitOf(ctx, s)
	if err != nil {
		return verdict{}, err
	}
	program := filepath.Join(b.dir, "mutant")
	if err := b.build(ctx, s.pkg, program, m); err != nil {
		return verdict{}, err
	}
	for {
		v, err := b.test(ctx, program, s, limit)
		if err != nil || !v.failed() {
			return v, err
		}
		if sure, err := b.confirms(ctx, program, s.only(v.test)); err != nil || sure {
			return v, err
		}
		if v.test == "" { // all of the suite passed on the mutant the second time
			return verdict{}, nil
		}
		fmt.Fprintf(b.notes, "%s: %s is flaky: it is left out\n", m, v.test)
		b.flaky = append(b.flaky, v.test)
	}
}

// confirms runs tests without the fault, where they have to pass, and again on the mutant, where they have to fail.
func (b *bench) confirms(ctx context.Context, mutant string, s suite) (bool, error) {
	took, v, err := b.soundly(ctx, s)
	if err != nil || v.failed() {
		return false, err
	}
	v, err = b.test(ctx, mutant, s, patience(took))
	return v.failed(), err
}

// patience is how long tests may take on a mutant that took some time without it.
func patience(took time.Duration) time.Duration { return 3*took + 30*time.Second }

// limitOf is the patience with a whole suite. It has to pass without a mutant.
func (b *bench) limitOf(ctx context.Context, s suite) (time.Duration, error) {
	key := s.pkg + " " + s.run
	if limit := b.limit[key]; limit > 0 {
		return limit, nil
	}
	took, v, err := b.soundly(ctx, s)
	if err != nil {
		return 0, err
	}
	if v.failed() {
		return 0, fmt.Errorf("the tests of %s fail without a mutant: %s", s.pkg, v)
	}
	b.limit[key] = patience(took)
	return b.limit[key], nil
}

// soundly runs tests of the program as it is.
func (b *bench) soundly(ctx context.Context, s suite) (time.Duration, verdict, error) {
	if b.sound[s.pkg] == "" {
		program := filepath.Join(b.dir, strings.ReplaceAll(s.pkg, "/", "-"))
		if err := b.build(ctx, s.pkg, program, nil); err != nil {
			return 0, verdict{}, err
		}
		b.sound[s.pkg] = program
	}
	began := time.Now()
	v, err := b.test(ctx, b.sound[s.pkg], s, 10*time.Minute)
	return time.Since(began), v, err
}

// build makes the test program of a package, with a fault or as it is.
func (b *bench) build(ctx context.Context, pkg, program string, m *mutant) error {
	args := []string{"test", "-c", "-o", program}
	if m != nil {
		text, err := os.ReadFile(m.file)
		if err != nil {
			return err
		}
		list, err := overlay.Write(b.dir, overlay.Change(m.file, string(text), m.text))
		if err != nil {
			return err
		}
		args = append(args, "-overlay", list)
	}
	out, err := exec.CommandContext(ctx, "go", append(args, "./"+pkg)...).CombinedOutput()
	if err != nil && m != nil && ctx.Err() == nil {
		return errNotCompiled
	}
	if err != nil {
		return fmt.Errorf("go test -c ./%s: %w\n%s", pkg, err, out)
	}
	return nil
}

// test runs a suite of a test program until a test fails.
func (b *bench) test(ctx context.Context, program string, s suite, limit time.Duration) (verdict, error) {
	temp := filepath.Join(b.dir, strconv.FormatInt(b.tests.Add(1), 36)) // short, as paths of sockets have to be
	if err := os.Mkdir(temp, 0o700); err != nil {
		return verdict{}, err
	}
	defer os.RemoveAll(temp)
	bounded, cancel := context.WithTimeout(
		ctx,
		limit+10*time.Second,
	) // the program ends itself before, and says which test it was in
	defer cancel()
	cmd := exec.CommandContext(
		bounded,
		program,
		"-test.short",
		"-test.failfast",
		"-test.timeout",
		limit.String(),
		"-test.run",
		s.run,
		"-test.skip",
		b.skipped(),
	)
	cmd.Dir, cmd.Env = s.pkg, append(os.Environ(), "TMPDIR="+temp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what a test that panicked left running
	}
	if err == nil || ctx.Err() != nil {
		return verdict{}, ctx.Err()
	}
	return verdictOf(string(out), limit), nil
}

// skipped is the pattern of the flaky tests.
func (b *bench) skipped() string {
	names := slices.Clone(b.flaky)
	for i, name := range names {
		names[i] = exactly(name)
	}
	return strings.Join(names, "|")
}
