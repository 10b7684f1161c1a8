package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/ownfile"
	"github.com/pullet/pullet/internal/program"
	"github.com/pullet/pullet/state"
)

// ReplacedError says that another program took the place of this one and proved itself: go on as that one.
type ReplacedError struct{ Program *program.Installed }

func (e *ReplacedError) Error() string { return "pullet was replaced" }

// leastTakeover is how long a new program has for its first pull at least, where the configuration does not say it.
const leastTakeover = 15 * time.Minute

// takeoverLimits are how long a new program has on a host that pulls once in a time: three of these for its first pull.
func takeoverLimits(l Loop, cadence time.Duration, failures int) program.Limits {
	within := l.Takeover.Std()
	if within == 0 {
		within = max(leastTakeover, 3*max(l.Interval.Std(), cadence))
		if failures > 0 { // the next pull may come late
			within = max(within, 2*maxBackoff)
		}
	}
	return program.Limits{Within: within, AtMost: within + l.Deadline.Std() + 3*l.Wait.Std() + time.Hour}
}

// takeover lets the program that is installed take the place of the one of this process.
type takeover struct {
	*self
	*program.Installed
	host *apply.Host
}

func (a *Agent) takeover() takeover { return takeover{a.self, a.Program, a.host("")} }

// ownProgram is what a pull has to do with the program that makes it.
type ownProgram struct{ *pull }

// fate says what became of the program in a run for a version; nil: that is not asked. What somebody replaced on a host
// that is at its version is no matter of the run: see replaced.
func (p ownProgram) fate(v *state.Version) func(context.Context) apply.ProgramFate {
	if p.agent.Program == nil {
		return nil
	}
	before, err := p.agent.Program.Replaced()
	if before && p.local.upToDate(v) || err != nil {
		return nil
	}
	return func(ctx context.Context) apply.ProgramFate {
		fate, err := p.agent.takeover().fate(ctx, v.ID, p.Retry)
		if err != nil {
			p.out.warn(fmt.Errorf("cannot tell whether pullet was replaced: %w", err))
		}
		return fate
	}
}

// fate is what becomes of the installed program in a run for a version of the fleet. One that was refused in a run for
// the same version is not tried again unless that is asked for, or its steps brought it once more and it never began.
func (t takeover) fate(ctx context.Context, version string, retry bool) (apply.ProgramFate, error) {
	replaced, err := t.Replaced()
	if err != nil {
		return apply.ProgramFate{}, err
	}
	refused, err := t.Refused()
	if err != nil {
		return apply.ProgramFate{}, err
	}
	if refused != nil && !replaced && (retry || version != "" && refused.Version == version) {
		if !retry {
			return apply.ProgramFate{Refused: errors.New(refused.Why + "; to try that one again: pullet pull --retry")}, nil
		}
		if err := t.Again(); err != nil {
			return apply.ProgramFate{}, err
		}
		return t.proves(ctx, version), nil
	}
	if !replaced {
		return apply.ProgramFate{}, nil
	}
	known, err := t.Known(refused)
	if err != nil {
		return apply.ProgramFate{}, err
	}
	if known && refused.Lost && !retry {
		return t.refuse(program.Refused{Version: version, Why: refused.Why, Lost: true}), nil
	}
	return t.proves(ctx, version), nil
}

// proveTime is how long a program may take to prove itself.
const proveTime = 2 * time.Minute

// laterError says that the new program could not prove itself now.
type laterError struct{ why string }

func (e *laterError) Error() string {
	return "pullet was replaced, and the new one cannot take over now: " + e.why
}

// prove has the installed program read what this host has: see SelfTest.
func (t takeover) prove(ctx context.Context) error {
	if err := ownfile.Check(t.Path); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, proveTime)
	defer cancel()
	args := []string{t.Path, "selftest", "--config", t.config.file, "--root", t.config.Root}
	out, err := t.host.Run(within, apply.Command{Args: args, Env: ownEnvironment(), Quiet: true})
	switch {
	case ctx.Err() != nil:
		return &laterError{"the pull was stopped"}
	case within.Err() != nil:
		return fmt.Errorf("%s selftest did not end within %s", t.Path, proveTime)
	case err != nil:
		return err
	case out.ExitCode == ExitWaiting:
		return &laterError{out.Failure()}
	case out.ExitCode != 0:
		return fmt.Errorf("%s selftest: %s", t.Path, out.Failure())
	}
	return nil
}

// ownEnvironment is that of this process, which the new program gets too: it may say how etcd is reached. What systemd
// told this process is not for its children.
func ownEnvironment() map[string]string {
	out := map[string]string{}
	for _, line := range os.Environ() {
		name, value, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(name, "NOTIFY_") && !strings.HasPrefix(name, "WATCHDOG_") {
			out[name] = value
		}
	}
	return out
}

// proves has the installed program prove itself, and puts the one of this process back where it does not.
func (t takeover) proves(ctx context.Context, version string) apply.ProgramFate {
	err := t.prove(ctx)
	if later, ok := errors.AsType[*laterError](err); ok {
		return apply.ProgramFate{Later: later}
	}
	if err != nil {
		why := fmt.Sprintf("the new pullet does not work here, and pullet %s was put back: %v", t.build, err)
		return t.refuse(program.Refused{Version: version, Why: why})
	}
	return apply.ProgramFate{HandOver: true}
}

// refuse puts the program of this process back.
func (t takeover) refuse(r program.Refused) apply.ProgramFate {
	if err := t.Refuse(r); err != nil {
		return apply.ProgramFate{Refused: fmt.Errorf("%s; that failed: %w", r.Why, err)}
	}
	return apply.ProgramFate{Refused: errors.New(r.Why)}
}

// replaced reports, between two pulls, that the installed program is another one and proved itself. One that does not
// is put back: somebody may have replaced it by hand.
func (a *Agent) replaced(ctx context.Context, out *Outcome) bool {
	if a.Program == nil {
		return false
	}
	if out.HandsOver() {
		return true
	}
	fate, err := a.takeover().fate(ctx, "", false)
	switch {
	case err != nil:
		a.logger.WithError(err).Warn("cannot tell whether pullet was replaced")
	case fate.Refused != nil:
		a.logger.Error(fate.Refused)
	case fate.Later != nil:
		a.logger.Info(fate.Later)
	}
	return fate.HandOver
}

// keepsFirst keeps the program of this process before the first pull on a host, which may replace it.
func (p ownProgram) keepsFirst() {
	if i := p.agent.Program; i != nil {
		p.kept(i.First(p.build, takeoverLimits(p.config.Agent, 0, 0)))
	}
}

// cameBack notes that the program of this process made a pull: it joined the fleet, reached a repository and knows what
// to do.
func (p ownProgram) cameBack(err error) {
	i := p.agent.Program
	knows := p.program != nil || p.out.Version == nil && len(p.out.Failures) == 0
	if i == nil || err != nil || p.store == nil || !knows || !p.out.reached() {
		return
	}
	limits := takeoverLimits(p.config.Agent, p.local.Cadence(p.outside.Host.Boot), p.local.Failures)
	p.kept(i.Confirm(p.build, limits))
}

// unproven reports that the program of this process may be put back: nobody is to rely on what it reads.
func (p ownProgram) unproven() bool {
	if p.agent.Program == nil {
		return false
	}
	is, err := p.agent.Program.Unproven()
	return is || err != nil // the pull says what is wrong
}

// kept warns once in a pull that the program of this process could not be put back.
func (p ownProgram) kept(err error) {
	said := func(warning error) bool { return errors.As(warning, new(*program.KeepError)) }
	if err != nil && !slices.ContainsFunc(p.out.Warnings, said) {
		p.out.warn(fmt.Errorf("a later pullet that does not work cannot be rolled back to this one: %w", err))
	}
}
