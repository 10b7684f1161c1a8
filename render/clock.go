package render

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Work is counted (limits.go), and the count gives the same answer on every node. A clock runs beside it, far above
// what the count allows: it ends what the count does not see, and lets a pull that is stopped end at once.
const (
	maxExpressionTime = 10 * time.Second
	maxCompileTime    = 5 * time.Minute
)

var (
	errExpressionTime = fmt.Errorf("the expression takes longer than %s", maxExpressionTime)
	errCompileTime    = fmt.Errorf("the templates and expressions of this host take longer than %s", maxCompileTime)
)

// within is a context that ends after a time, with an error that says so. The parent may be nil.
func within(parent context.Context, limit time.Duration, late error) (context.Context, context.CancelFunc) {
	if parent == nil {
		parent = context.Background()
	}
	return context.WithTimeoutCause(parent, limit, late)
}

// stopwatch ends the evaluation of an expression after a time. It stands still while a macro of it runs a command,
// which has a time of its own. A nil stopwatch does nothing.
type stopwatch struct {
	timer *time.Timer
	left  time.Duration
	since time.Time // when it last began to run
}

// timed is a context that ends when a stopwatch is through, with errExpressionTime. The parent may be nil.
func timed(parent context.Context, limit time.Duration) (context.Context, *stopwatch, context.CancelFunc) {
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithCancelCause(parent)
	w := &stopwatch{time.AfterFunc(limit, func() { cancel(errExpressionTime) }), limit, time.Now()}
	return ctx, w, func() { w.timer.Stop(); cancel(nil) }
}

func (w *stopwatch) stop() {
	if w != nil && w.timer.Stop() {
		w.left -= time.Since(w.since)
	}
}

func (w *stopwatch) resume() {
	if w != nil {
		w.since = time.Now()
		w.timer.Reset(max(w.left, 0))
	}
}

// over is why the work has to end now, nil while it may go on. The context may be nil.
func over(ctx context.Context) error {
	if ctx == nil || ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// stopped reports work that whoever asked for it ended, and that says nothing of the repository.
func stopped(ctx context.Context) error {
	err := over(ctx)
	if errors.Is(err, errExpressionTime) || errors.Is(err, errCompileTime) {
		return nil
	}
	return err
}
