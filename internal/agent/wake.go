package agent

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pullet/pullet/state"
)

// atOnce is how many agents of a fleet start within a second when all are woken.
const atOnce = 500

// fleetWatch wakes the loop when the fleet's version is another than the one that the node worked on, and when
// something changed about a service that it reads.
type fleetWatch struct {
	agent   *Agent
	woken   chan struct{}
	changed chan struct{} // a service
	cancel  context.CancelFunc
	atWork  sync.WaitGroup
	worked  string
	seen    int64    // the revision up to which the last pull looked
	names   []string // the services that it read
	viewed  int64    // the revision at which it read them
	eager   int      // pulls for services since the last one that was due
}

// rest ends what goes on between two pulls.
func (f *fleetWatch) rest() {
	if f.cancel != nil {
		f.cancel()
	}
	f.atWork.Wait()
}

// follow watches the store that is open now. A store that went away is followed again after the pull that reopened it;
// until then the timer is what wakes the loop.
func (f *fleetWatch) follow(ctx context.Context, out *Outcome) {
	store := f.agent.connection.store()
	if out.Version != nil {
		f.worked = out.Version.ID
	}
	f.worked = cmp.Or(out.doubted, f.worked)
	f.seen = max(f.seen, out.seen)
	f.remember(out)
	for _, bell := range []chan struct{}{f.woken, f.changed} { // what rang before the pull is what it worked on
		select {
		case <-bell:
		default:
		}
	}
	if store == nil {
		return
	}
	ctx, f.cancel = context.WithCancel(ctx)
	worked, seen, names, viewed := f.worked, f.seen, f.names, f.viewed
	spread := f.agent.outside.Chance(spread(f.agent.size.nodes))
	f.atWork.Go(func() {
		ring(ctx, f.woken, spread, store.Bells.AwaitWork(ctx, f.agent.config.Node.Name, worked, seen))
	})
	if len(names) > 0 {
		patience := f.patience()
		f.atWork.Go(func() {
			ring(ctx, f.changed, patience+spread, store.Services.Await(ctx, names, viewed))
		})
	}
	if t := f.agent.triggers; t != nil {
		f.atWork.Go(func() { t.between(ctx, f.agent.config.Agent.Interval.Std(), f.agent.raise) })
	}
	for _, c := range f.agent.checks {
		f.atWork.Go(func() { c.again(ctx, store, f.agent) })
	}
}

// remember keeps what services the pull read. One that did not come to its end may have left some out.
func (f *fleetWatch) remember(out *Outcome) {
	if out.viewed == 0 { // it did not come so far
		return
	}
	names := out.asked
	if out.Report == nil || out.Report.Pending() {
		names = slices.Concat(names, f.names)
		slices.Sort(names)
		names = slices.Compact(names)
	}
	f.names, f.viewed = names, out.viewed
}

// patience is how long a changed service is left alone: nothing at first, and longer with each change until the next
// pull is due, so that a service which comes and goes does not keep all of its readers at work.
func (f *fleetWatch) patience() time.Duration {
	if f.eager == 0 {
		return 0
	}
	return backoff(time.Second, f.eager)
}

// fleetSize is how many nodes there are.
type fleetSize struct {
	nodes   int // as they were counted last
	counted time.Time
}

// count counts the nodes, now and then: the agents spread over a time that grows with them when all are woken.
func (f *fleetSize) count(ctx context.Context, store *state.Store) (err error) {
	if f.nodes != 0 && time.Since(f.counted) < time.Hour {
		return nil
	}
	f.nodes, err = store.Presences.Count(ctx)
	f.counted = time.Now()
	return err
}

// spread is the time in which the agents of a fleet of so many nodes come when all are woken.
func spread(nodes int) time.Duration {
	return max(1, time.Duration(nodes)*time.Second/atOnce)
}

// ring rings once when a wait ended well, after a pause.
func ring(ctx context.Context, bell chan struct{}, pause time.Duration, failed error) {
	if failed != nil {
		return
	}
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return
	}
	select {
	case bell <- struct{}{}:
	default:
	}
}
