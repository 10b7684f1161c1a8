package gitremote

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

// Client talks to git servers. Its methods may be called from several
// goroutines.
type Client struct {
	// Scratch is a directory for what is being fetched, best on the file system
	// of the stores. It is made when it is missing; default: where the system
	// has temporary files.
	Scratch string
	Limits  Limits
}

// How often a failure that may pass is tried, and the pause before the second
// try; it doubles. A repository on this machine is read again at once.
const (
	tries      = 3
	tryPause   = 200 * time.Millisecond
	localPause = 10 * time.Millisecond
)

// List asks a remote for its references: one request.
func (c Client) List(ctx context.Context, r Remote) (Listing, error) {
	ctx, cancel := deadline(ctx, listTime)
	defer cancel()
	return try(ctx, r, func() (Listing, error) { return c.list(ctx, r) })
}

func (c Client) list(ctx context.Context, r Remote) (l Listing, err error) {
	if r.Local() {
		return c.listLocal(ctx, r)
	}
	s, err := r.open(ctx)
	if err != nil {
		return l, err
	}
	l, err = advertised(ctx, s)
	return l, errors.Join(err, s.Close())
}

// Fetch gets objects and all that they need. What it returns without an error
// is a pack whose objects were all read, with its index, both durable.
func (c Client) Fetch(ctx context.Context, r Remote, q Request) (Fetched, error) {
	ctx, cancel := deadline(ctx, c.Limits.Whole().Time)
	defer cancel()
	return try(ctx, r, func() (Fetched, error) { return c.fetch(ctx, r, q) })
}

func (c Client) fetch(ctx context.Context, r Remote, q Request) (f Fetched, err error) {
	in, err := newIncoming(c.Scratch)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, in.remove()) }()
	if r.Local() {
		err = c.receiveLocal(ctx, r, q, in)
	} else {
		f.Shallow, err = c.receive(ctx, r, q, in)
	}
	if err != nil || in.objects == 0 {
		return f, err
	}
	if err := c.makeIndex(ctx, in); err != nil {
		return f, err
	}
	return f, in.place(q.Place)
}

// try runs an operation again after a failure that may pass: a connection that
// broke, a server that is busy, a repository on this machine whose objects git
// moves from one place to another while they are read.
func try[T any](ctx context.Context, r Remote, op func() (T, error)) (result T, err error) {
	pause := tryPause
	if r.Local() {
		pause = localPause
	}
	for i := range tries {
		result, err = op()
		if err == nil || ctx.Err() != nil || i == tries-1 || !passing(r, err) {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause << i):
		}
	}
	return result, cause(ctx, err)
}

func passing(r Remote, err error) bool {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.Code == 429 || status.Code >= 502 && status.Code <= 504
	}
	if _, ok := errors.AsType[*LocalError](err); ok {
		return true
	}
	opening, ok := errors.AsType[*net.OpError](err)
	broken := ok && opening.Op != "dial" && !opening.Timeout()
	return broken || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) && !r.Local()
}
