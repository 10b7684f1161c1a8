package agent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/pullet/pullet/state"
)

// connection is the fleet's record as an agent keeps it open between pulls, with the lease that is renewed. It may be
// used by several goroutines.
type connection struct {
	*self

	mu     sync.Mutex         // guards the following
	opened *state.Store       // nil: not open, or unreachable when it was tried last
	failed error              // why no store can be opened by this process any more
	leased context.CancelFunc // ends the renewal of the lease
	old    bool               // it was opened with credentials that were renewed since

	lease atomic.Pointer[state.Presence] // the last registration; nil: there was none
}

// open opens the fleet's record, or gives the one that is open.
func (c *connection) open(ctx context.Context) (*state.Store, error) {
	return c.openBy(ctx, c.outside.Record)
}

// read is open for who only reads: it makes no record on a host that has none.
func (c *connection) read(ctx context.Context) (*state.Store, error) {
	return c.openBy(ctx, state.OpenToRead)
}

func (c *connection) openBy(
	ctx context.Context,
	open func(context.Context, state.Config) (*state.Store, error),
) (*state.Store, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened != nil {
		return c.opened, nil
	}
	config := c.config.store()
	config.Node = c.config.Node.Name
	s, err := open(ctx, config)
	if broken, ok := errors.AsType[*state.BrokenError](err); ok {
		c.failed = broken
	}
	if err != nil {
		return nil, err
	}
	c.opened = s
	return s, nil
}

// stale has the next pull connect anew, with the credentials that are there now.
func (c *connection) stale() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.old = true
}

// refresh closes a connection with credentials that were renewed since, before a pull begins.
func (c *connection) refresh() error {
	if !c.isOld() {
		return nil
	}
	return c.drop()
}

func (c *connection) isOld() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.old
}

// store is the record that is open; nil where none is.
func (c *connection) store() *state.Store {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opened
}

// isOpen is store for who can go on only where one is open.
func (c *connection) isOpen() (*state.Store, error) {
	store := c.store()
	if store == nil {
		return nil, errNotOpen
	}
	return store, nil
}

var errNotOpen = errors.New("the fleet's record is not reached now")

// drop closes the record: the next pull opens it anew.
func (c *connection) drop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leased != nil {
		c.leased()
		c.leased = nil
	}
	if c.opened == nil {
		return nil
	}
	c.failed = c.opened.Broken()
	err := c.opened.Close()
	c.opened, c.old = nil, false
	return err
}

// broken is why this process can open no store any more; nil while it can.
func (c *connection) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened != nil {
		return c.opened.Broken()
	}
	return c.failed
}

// renews begins the renewal of a lease in the place of the last one: end ends it.
func (c *connection) renews(lease *state.Presence, end context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leased != nil {
		c.leased()
	}
	c.leased = end
	c.lease.Store(lease)
}

// alive is until when the lease of the last registration lives; zero where there was none. It waits for nobody who
// opens the record.
func (c *connection) alive(now time.Time) time.Time {
	lease := c.lease.Load()
	if lease == nil {
		return time.Time{}
	}
	return now.Add(lease.Left())
}

// giveUp ends the lease of an agent that is uprooted: the next start has another secret, and could not take the name
// before the lease ends by itself.
func (c *connection) giveUp(ctx context.Context) {
	if c.config.alone() { // a record of its own went with the directory
		return
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	if err := c.revoke(ctx); err != nil {
		c.logger.WithError(err).Warn("the name is not given up: it is free when the lease ends")
	}
}

// revoke ends the lease of the last registration. A pull that failed meanwhile may have closed the record.
func (c *connection) revoke(ctx context.Context) error {
	lease := c.lease.Load()
	if lease == nil { // only pulls change it, and none is at work
		return nil
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leased != nil {
		c.leased()
		c.leased = nil
	}
	if _, err = store.Client.Revoke(ctx, lease.Lease); errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return nil // it ended by itself
	}
	return store.Explain(err)
}
