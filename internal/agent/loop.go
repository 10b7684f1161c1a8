package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// ErrReload says that the configuration changed: read it again, and start a new agent.
var ErrReload = errors.New("the configuration changed")

// Observer sees what the loop does. Phase, Rests, AtWork and Reload may be nil.
type Observer struct {
	Waiting func(*lock.Wait)        // each reason to wait
	Begin   func(apply.Begun)       // each step that begins to change the host
	Step    func(*apply.StepReport) // each step that ended
	Phase   func(PhaseName)         // each phase of a pull
	Pulled  func(*Outcome, error)   // each pull; that the fleet's record is away the loop says itself
	Rests   func(next time.Time)    // each pause, with the time of the next pull
	// AtWork learns again and again within which time it is called once more: an agent that calls it later hangs. It is
	// called by several goroutines, one at a time.
	AtWork func(atMost time.Duration)
	Reload <-chan os.Signal // asks for the configuration to be read again
}

// Loop pulls again and again until ctx ends, and then returns nil: on a timer with splay, when the fleet's version
// changes, and when a file changes that the node depends on. It returns ErrReload when the configuration changed or is
// to be read again, a *ReplacedError when another program is to go on, and an error when only another process can.
func (a *Agent) Loop(ctx context.Context, o Observer) error {
	a.pulse.tells = o.AtWork
	a.pulse.work(slowHost)
	ctx, cancel := context.WithCancel(ctx) // ends what the loop started, also when it returns to be started anew
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel()
	beside.Go(func() { answerer{a}.answerEvents(ctx) })
	files, err := a.watchFiles(ctx)
	if err != nil {
		return err
	}
	deaf, err := a.listen()
	if err != nil {
		return err
	}
	defer deaf()
	fleet := &fleetWatch{agent: a, woken: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
	defer fleet.rest()
	wait := min(a.config.Agent.Wait.Std(), max(a.config.Agent.Interval.Std(), time.Minute))
	for woken := false; ; {
		began := time.Now()
		fleet.rest()
		out, err := a.Pull(ctx, o.options(wait))
		if ctx.Err() != nil {
			return nil
		}
		o.Pulled(out, a.away.told(err, began))
		if err := a.uprooted(); err != nil {
			a.connection.giveUp(ctx)
			return err
		}
		a.afterFailure(err)
		if a.replaced(ctx, out) {
			return &ReplacedError{a.Program}
		}
		if err == nil && out.Rebooting() && !a.awaitBoot(ctx) {
			return nil
		}
		fleet.follow(ctx, out)
		pause := a.pause(out) - time.Since(began)
		if search := a.searches.after(ctx, out, woken); search > 0 {
			pause = min(pause, search)
		}
		woken = false
		pause = max(0, pause)
		a.pulse.work(pause)
		if o.Rests != nil {
			o.Rests(time.Now().Add(pause))
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
			a.pulse.work(slowHost) // until the next pull begins
			fleet.eager = 0
		case <-fleet.woken:
			woken = true
		case <-fleet.changed:
			fleet.eager++
		case changed := <-files:
			if changed == configuration && a.connection.broken() == nil && a.reloads() {
				return ErrReload
			}
		case <-o.Reload:
			if a.connection.broken() == nil && a.reloads() {
				return ErrReload
			}
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
		if err := a.connection.broken(); err != nil {
			return fmt.Errorf("this agent has to be started anew: %w", err)
		}
	}
}

// options are those of a pull in the loop.
func (o Observer) options(wait time.Duration) Options {
	return Options{Wait: wait, Waiting: o.Waiting, Begins: o.Begin, Watch: o.Step, Phase: o.Phase, loop: true}
}

// reloads reports that an agent can be started with the configuration as it is now. While it cannot, this one goes on
// with its own: a slip of an editor does not leave the host alone.
func (a *Agent) reloads() bool {
	c, err := ReadConfig(a.config.file, a.config.Root)
	var next *Agent
	if err == nil {
		next, err = New(c, a.build, a.logger)
	}
	if err == nil {
		err = errors.Join(next.CanListen(a.config.Agent.Listen), next.Close())
	}
	if err != nil {
		a.logger.WithError(err).Error("the configuration cannot be used: the agent keeps the one it has")
		return false
	}
	a.logger.Info("the configuration is read again")
	return true
}

// bootTime is how long a boot that was asked for may take to end this agent.
const bootTime = 10 * time.Minute

// awaitBoot waits for the boot to end this agent; true means that it did not come, and the next pull asks again.
func (a *Agent) awaitBoot(ctx context.Context) bool {
	a.pulse.work(bootTime)
	select {
	case <-ctx.Done():
		return false
	case <-time.After(bootTime):
		a.logger.Warn("the host did not boot, although it was asked to")
		return true
	}
}

// afterFailure reopens the store before the next pull when this one could not be made: its connection may be what is
// broken.
func (a *Agent) afterFailure(err error) {
	if err == nil {
		return
	}
	if err := a.connection.drop(); err != nil {
		a.logger.WithError(err).Warn("closing the store")
	}
}

// maxBackoff is the longest pause of a node whose upgrade fails again and again.
const maxBackoff = time.Hour

// pause is how long it is from one pull's start to the next: the interval and some splay, doubled with each upgrade to
// the version that failed in a row. A pull that only waited is followed by the next at the interval, however often the
// upgrade failed before: its turn may come meanwhile. A pull that waited for longer is followed at once.
func (a *Agent) pause(out *Outcome) time.Duration {
	pause := a.config.Agent.Interval.Std()
	if out.upgradeFailed() {
		local, err := state.LoadLocal(a.config.Paths.State)
		if err != nil {
			a.logger.WithError(err).Warn("the node's record")
		}
		pause = backoff(pause, local.Failures)
	}
	if splay := a.config.Agent.Splay.Std(); splay > 0 {
		pause += a.outside.Chance(splay)
	}
	return pause
}

// backoff doubles an interval with each failure after the first, up to maxBackoff.
func backoff(interval time.Duration, failures int) time.Duration {
	for range failures - 1 {
		if interval >= maxBackoff {
			break
		}
		interval = min(2*interval, maxBackoff)
	}
	return interval
}
