package agent

import (
	"context"
	"sync"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// fleetReader is one look at the fleet's record, for one attempt of a condition: apply.FleetReader on etcd.
type fleetReader struct {
	gates  *gates // of the run: it ends when etcd does not answer
	pull   *asked // the services that the whole pull reads
	chance func(time.Duration) time.Duration
	own    asked // those that were read of this view
	all    bool  // nodes or their facts were read
	view   render.View
	loaded bool
}

// fleetReaders are the looks at the fleet of one run. While its record is away, what the node saw last stands.
func (p *pull) fleetReaders(g *gates) func() apply.FleetReader {
	if g == nil {
		return nil
	}
	return func() apply.FleetReader {
		return &fleetReader{gates: g, pull: &p.compiler.asked, chance: p.outside.Chance}
	}
}

func (l *fleetReader) View(ctx context.Context) (render.View, error) {
	if l.loaded {
		return l.view, nil
	}
	v, err := fleetView(ctx, l.gates.store)
	switch {
	case err != nil && ctx.Err() != nil: // no time is left: it says nothing of etcd
		return v, &apply.PendingError{Reason: "no time was left to look at the fleet"}
	case err != nil:
		return v, l.gates.pending(err)
	}
	v.Asked = func(name string) { l.pull.add(name); l.own.add(name) }
	v.AskedAll = func() { l.all = true }
	l.view, l.loaded = v, true
	return v, nil
}

// Watches names what Changed waits for.
func (l *fleetReader) Watches() (what []string) {
	if l.all {
		what = append(what, "a node")
	}
	for _, name := range l.own.sorted() {
		what = append(what, "service "+name)
	}
	return what
}

// Changed waits for a service that was read, or for a node where nodes were; then a while, so that a large fleet does
// not look all at once.
func (l *fleetReader) Changed(ctx context.Context) {
	l.await(ctx)
	select {
	case <-ctx.Done():
	case <-time.After(l.chance(spread(len(l.view.Nodes)))):
	}
}

func (l *fleetReader) await(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watches sync.WaitGroup
	if names := l.own.sorted(); len(names) > 0 {
		watches.Go(func() { wakes(cancel, l.gates.store.Services.Await(ctx, names, l.view.Revision)) })
	}
	if l.all {
		watches.Go(func() { wakes(cancel, l.gates.store.Bells.AwaitNodes(ctx, l.view.Revision)) })
	}
	<-ctx.Done()
	watches.Wait()
}

// wakes ends a wait when a watch saw what it waits for. One that failed leaves it to the next look.
func wakes(cancel context.CancelFunc, failed error) {
	if failed == nil {
		cancel()
	}
}
