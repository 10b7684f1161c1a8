package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pullet/pullet/scripts/overlay"
)

// bench builds and tests mutants, one at a time.
type bench struct {
	dir    string                   // for programs and the tests' files
	limits map[string]time.Duration // by package: how long the tests of a mutant may take
	tests  atomic.Int64             // that ran
	touch  *touched                 // made for the first mutant that survives the tests of its package
}

// errNotCompiled is a mutant that is no program.
var errNotCompiled = errors.New("does not compile")

// byPackage says which test of its package fails on a mutant: "" where none does.
func (b *bench) byPackage(ctx context.Context, m *mutant) (string, error) {
	pkg := filepath.Dir(m.file)
	limit, err := b.limit(ctx, pkg)
	if err != nil {
		return "", err
	}
	program, err := b.build(ctx, pkg, m)
	if err != nil {
		return "", err
	}
	return b.test(ctx, program, pkg, "", limit)
}

// byScript says which script of the command line fails on a mutant: "" where none does.
func (b *bench) byScript(ctx context.Context, m *mutant) (string, error) {
	if b.touch == nil {
		var err error
		if b.touch, err = b.scripts(ctx); err != nil {
			return "", err
		}
	}
	which := b.touch.by(m)
	if which == "" {
		return "", nil
	}
	program, err := b.build(ctx, commandLine, m)
	if err != nil {
		return "", err
	}
	return b.test(ctx, program, commandLine, which, b.touch.limit)
}

// limit is three times what the tests of a package take without a fault, and half a minute. They have to pass.
func (b *bench) limit(ctx context.Context, pkg string) (time.Duration, error) {
	if limit := b.limits[pkg]; limit > 0 {
		return limit, nil
	}
	program, err := b.build(ctx, pkg, nil)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	by, err := b.test(ctx, program, pkg, "", 10*time.Minute)
	if err == nil && by != "" {
		err = fmt.Errorf("the tests of %s fail without a mutant: %s", pkg, by)
	}
	b.limits[pkg] = 3*time.Since(began) + 30*time.Second
	return b.limits[pkg], err
}

// build makes the test program of a package, with a fault or as it is.
func (b *bench) build(ctx context.Context, pkg string, m *mutant, flags ...string) (string, error) {
	program := filepath.Join(b.dir, "test")
	args := append([]string{"test", "-c", "-o", program}, flags...)
	if m != nil {
		text, err := os.ReadFile(m.file)
		if err != nil {
			return "", err
		}
		list, err := overlay.Write(b.dir, overlay.Change(m.file, string(text), m.text))
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", list)
	}
	out, err := exec.CommandContext(ctx, "go", append(args, "./"+pkg)...).CombinedOutput()
	if err != nil && m != nil && ctx.Err() == nil {
		return "", errNotCompiled
	}
	if err != nil {
		return "", fmt.Errorf("go test -c ./%s: %w\n%s", pkg, err, out)
	}
	return program, nil
}

var failure = regexp.MustCompile(`--- FAIL: (\S+)`)

// test runs a test program, or the tests of it that a pattern chooses, and names the first that fails.
func (b *bench) test(ctx context.Context, program, pkg, which string, limit time.Duration, env ...string) (string, error) {
	temp := filepath.Join(b.dir, strconv.FormatInt(b.tests.Add(1), 36)) // short, as paths of sockets have to be
	if err := os.Mkdir(temp, 0o700); err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-test.short", "-test.failfast", "-test.run", which)
	cmd.Dir, cmd.Env = pkg, append(os.Environ(), append(env, "TMPDIR="+temp)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	switch found := failure.FindAllSubmatch(out, -1); {
	case err == nil:
		return "", nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("no end within %v", limit.Round(time.Second)), nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case len(found) > 0:
		return string(found[len(found)-1][1]), nil // of a test and its parts the parts stand behind it
	}
	return "a panic", nil
}
