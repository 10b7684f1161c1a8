package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/pullet/pullet/state"
)

// selfTest is what looks like a pull and only reads.
type selfTest struct{ *pull }

// SelfTest reads what earlier programs left on this host and what the fleet has of it, and compiles the version that
// runs here. It tells what it read, one by one. Nothing of the host or the fleet is changed. An error is why this
// program cannot work here: a *state.UnreachableError where the fleet's record is away.
func (a *Agent) SelfTest(ctx context.Context, read func(what string)) error {
	if err := errors.Join(a.config.CheckFiles(), a.config.CheckMachine()); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	read("configuration " + a.config.file)
	p := selfTest{a.pull(ctx, Options{})}
	if err := p.local.open(p.config.Node.Name); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	runs, err := state.Runs(p.config.Paths.State)
	if err != nil {
		return fmt.Errorf("reports: %w", err)
	}
	read(fmt.Sprintf("state directory %s, with %d reports", p.config.Paths.State, len(runs)))
	if err := p.local.openJournal(); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	read("journal")
	if p.config.NoStore() {
		return nil
	}
	if err := p.readRecord(ctx); err != nil {
		return err
	}
	read("record of the fleet")
	for _, v := range p.versionsHere() {
		if _, err := p.compiler.compile(ctx, v); err != nil {
			return fmt.Errorf("version %s does not compile: %w", v, err)
		}
		read("version " + v.String())
	}
	return nil
}

// readRecord reads the fleet's record as a pull does that changes nothing.
func (p selfTest) readRecord(ctx context.Context) error {
	store, err := p.agent.connection.read(ctx)
	if err == nil {
		p.opened(store)
		_, err = p.compiler.view(ctx)
	}
	var current *state.Version
	if err == nil {
		current, _, err = store.Versions.Current(ctx)
	}
	if err != nil {
		return fmt.Errorf("record of the fleet: %w", err)
	}
	p.reads(current)
	return nil
}

// versionsHere are the versions that are on this host: what runs, and what it is being brought to.
func (p selfTest) versionsHere() (out []*state.Version) {
	if p.local.Running != nil {
		out = append(out, p.local.Running)
	}
	if v := p.current; v != nil && v.ID == p.local.Upgrading && !v.Same(p.local.Running) {
		out = append(out, v)
	}
	return out
}
