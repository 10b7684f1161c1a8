package sink

import (
	"context"
	"net/http"
	"sync"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/internal/upload"
	"github.com/pullet/pullet/state"
)

// Couriers send events to all sinks of the fleet, while this process is the reactor.
type Couriers struct {
	Store *state.Store
	Fleet string
	Node  string // the reactor
	Log   *logrus.Entry
}

// Run sends the events of the log to sinks, as the reactor that became that at a revision: to each beside the others,
// so that one that fails holds up none. With follow it goes on until ctx ends, or another process is the reactor; else
// until what there is was tried. Records of other sinks are removed: they would go on with what happened long ago, if
// they came back.
func (c *Couriers) Run(ctx context.Context, since int64, sinks []*Sink, follow bool) error {
	return c.run(ctx, since, sinks, follow, func() (*http.Client, error) { return upload.Client("") })
}

// run does what Run does. Each sink has a client of its own, which connect returns.
func (c *Couriers) run(
	ctx context.Context, since int64, sinks []*Sink, follow bool, connect func() (*http.Client, error),
) error {
	known, err := c.Store.Sinks.All(ctx)
	if err != nil {
		return err
	}
	log, err := c.Store.Sinks.Stretch(ctx, 0, 1)
	if err != nil {
		return err
	}
	if err := c.forget(ctx, since, known, sinks); err != nil {
		return err
	}
	var all sync.WaitGroup
	defer all.Wait()
	for _, s := range sinks {
		client, err := connect()
		if err != nil {
			return err
		}
		one := &courier{
			Couriers: c, Sink: s, client: client, since: since, log: c.Log.WithField("sink", s.Name), within: onceTime,
		}
		if follow {
			one.within = sendTime
		}
		one.begin(known, log.Last)
		all.Go(func() {
			defer client.CloseIdleConnections()
			one.run(ctx, follow)
		})
	}
	return nil
}

func (c *Couriers) forget(ctx context.Context, since int64, known map[string]state.Sink, sinks []*Sink) error {
	gone := map[string]bool{}
	for name := range known {
		gone[name] = true
	}
	for _, s := range sinks {
		delete(gone, s.Name)
	}
	for name := range gone {
		if _, err := c.Store.Sinks.Forget(ctx, since, name); err != nil {
			return err
		}
	}
	return nil
}
