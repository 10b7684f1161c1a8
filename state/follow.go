package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// A process that finds the member in use looks so often whether it still is.
const (
	findPause   = 20 * time.Millisecond
	followPause = 50 * time.Millisecond
)

// openEmbedded starts the member that keeps its data in a directory, or finds the one that runs.
func openEmbedded(ctx context.Context, data string) (*embedded, error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("embedded etcd: %w", err)
	}
	e := &embedded{dir: data, lock: flock.New(filepath.Join(data, "lock"), flock.SetPermissions(0o600))}
	e.crash = newCrash(e)
	mine, err := e.find(ctx)
	if err != nil || !mine {
		return e, err
	}
	if err := e.start(ctx, data); err != nil {
		return nil, e.failed(ctx, err)
	}
	return e, nil
}

// failed is why the member did not start, or did not because there was no time.
func (e *embedded) failed(ctx context.Context, err error) error {
	if broken := e.crash.broken(); broken != nil {
		return broken
	}
	err = errors.Join(err, e.stop())
	if ctx.Err() != nil {
		return fmt.Errorf("embedded etcd in %s: %w", e.dir, err)
	}
	return &BrokenError{e.dir, err}
}

// find makes the member this process's, or reads where the running one listens. It may be starting still, or be about
// to end.
func (e *embedded) find(ctx context.Context) (mine bool, failed error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		mine, err := e.lock.TryLock()
		if err != nil {
			return false, fmt.Errorf("embedded etcd: %w", err)
		}
		if mine {
			return true, nil
		}
		if e.endpoint, err = e.listens(); err == nil {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf(
				"embedded etcd: another process holds %s but does not say where it listens: %w",
				filepath.Join(e.dir, "lock"),
				err,
			)
		case <-time.After(findPause):
		}
	}
}

// listens reads where the running member listens.
func (e *embedded) listens() (string, error) {
	text, err := os.ReadFile(filepath.Join(e.dir, "endpoint"))
	return strings.TrimSpace(string(text)), err
}

// answerTime is how long the first answer of a member may take: one that another process runs may be about to end, with
// requests under way.
func (e *embedded) answerTime() time.Duration {
	if e.server != nil {
		return dialTimeout
	}
	return operationTimeout
}

// follow keeps who found the member in use connected when the process that runs it ends: this one runs it then, or
// finds who does. A pull may have found that of a status, which is over at once.
func (e *embedded) follow(moved func(endpoint string)) {
	ctx, rest := context.WithCancel(context.Background())
	e.rest = rest
	e.follows.Go(func() {
		for at := e.endpoint; ; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(followPause):
			}
			mine, err := e.lock.TryLock()
			if err == nil && mine {
				e.takeOver(ctx, moved)
				return
			}
			if now, err := e.listens(); err == nil && now != at {
				at = now
				moved(at)
			}
		}
	})
}

// takeOver runs the member in this process. One that does not start is as good as broken.
func (e *embedded) takeOver(ctx context.Context, moved func(endpoint string)) {
	if err := e.start(ctx, e.dir); err != nil {
		if ctx.Err() == nil {
			e.crash.fail(err)
		}
		return
	}
	moved(e.endpoint)
}

// patient makes a client wait for the next process that runs the member, for no longer than that takes.
func (e *embedded) patient() []grpc.DialOption {
	often := backoff.Config{BaseDelay: followPause, Multiplier: 1.5, MaxDelay: 4 * followPause}
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(e.crash.guard),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: often, MinConnectTimeout: time.Second}),
	}
}
