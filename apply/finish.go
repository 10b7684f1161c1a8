package apply

import (
	"context"
	"errors"
	"time"
)

// Finish says how a step that runs ends when a signal stops the pull: a package's script that is cut off leaves half a
// package.
type Finish struct {
	Within time.Duration   // how long the step may go on; 0: its commands are ended at once
	Now    <-chan struct{} // closed: its commands are ended at once after all; may be nil
}

// Finishing is the context of what is finished on the host when ctx is canceled, with its values and its deadline. It
// ends Finish.Within after ctx, with Finish.Now, and as soon as a command waits for pullet itself to end.
func (h *Host) Finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	on, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if end, ok := ctx.Deadline(); ok {
		on, cancel = context.WithDeadline(on, end)
	}
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return // on has the same
		}
		h.finished(on)
		cancel()
	})
	return on, func() {
		stop()
		cancel()
	}
}

// awaitsPoll is how often commands are looked at while they are finished: nothing tells when one comes to wait for
// pullet.
const awaitsPoll = 500 * time.Millisecond

// finished waits until what is finished has to end.
func (h *Host) finished(on context.Context) {
	over, look := time.NewTimer(h.Finish.Within), time.NewTicker(awaitsPoll)
	defer over.Stop()
	defer look.Stop()
	for !h.awaitsEnd() {
		select {
		case <-over.C:
			return
		case <-h.Finish.Now:
			return
		case <-on.Done():
			return
		case <-look.C:
		}
	}
}

// finishing is the time of what the step does to the host. Steps that only wait are not finished.
func (s *running) finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.step.spec.Passive {
		return context.WithCancel(ctx)
	}
	said := context.AfterFunc(s.run, func() {
		if s.x.options.Log != nil && errors.Is(s.run.Err(), context.Canceled) {
			s.x.options.Log.Warnf(
				"stopping: step %s ends first, within %s",
				s.step.ID(),
				s.x.options.Host.Finish.Within,
			)
		}
	})
	on, cancel := s.x.options.Host.Finishing(ctx)
	return on, func() {
		said()
		cancel()
	}
}

// cut reports that the step did not come to its end because a signal stopped the run.
func (s *running) cut(ctx context.Context) bool {
	return s.interrupted || errors.Is(ctx.Err(), context.Canceled)
}
