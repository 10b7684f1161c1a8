package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pullet/pullet/internal/event"
	"github.com/pullet/pullet/internal/event/sink"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// sinksTime is how long the sinks of a version are sent to until it is asked whether the fleet still has that version.
const sinksTime = 5 * time.Second

// needsReactor reports that the version has something for the reactor to do.
func (a *answering) needsReactor(ctx context.Context) bool {
	_, reactions := a.reactions(ctx)
	known := a.at.Load()
	return known != nil && len(reactions)+len(known.sinks) > 0
}

// sendEvents sends the events of the log to the sinks of the fleet's version, as the reactor. While this host does not
// have that version it sends nothing: the version may have taken a sink out.
func (a answerer) sendEvents(ctx context.Context, store *state.Store, since int64, follow bool) {
	to := &sink.Couriers{
		Store: store, Fleet: a.config.Fleet, Node: a.config.Node.Name, Log: a.logger.WithField("reactor", true),
	}
	for {
		known, err := a.atFleetVersion(ctx, store)
		if err == nil {
			err = a.sendAs(ctx, known, to, since, follow)
		}
		if err != nil && ctx.Err() == nil {
			a.logger.WithError(store.Explain(err)).Debug("events are not sent")
		}
		if !follow || !state.Pause(ctx, time.Second) {
			return
		}
	}
}

// atFleetVersion is the version that this host works on, if it is that of the fleet.
func (a *Agent) atFleetVersion(ctx context.Context, store *state.Store) (*knownVersion, error) {
	known := a.answering.at.Load()
	current, _, err := store.Versions.Current(ctx)
	if err == nil && (known == nil || !known.version.Same(current)) {
		err = event.ErrBehind
	}
	return known, err
}

// sendAs sends to the sinks of a version while the fleet has it.
func (a *Agent) sendAs(ctx context.Context, known *knownVersion, to *sink.Couriers, since int64, follow bool) error {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() {
		defer cancel()
		for state.Pause(ctx, sinksTime) {
			now, err := a.atFleetVersion(ctx, to.Store)
			if errors.Is(err, event.ErrBehind) || err == nil && !now.version.Same(known.version) {
				return
			}
		}
	})
	err := to.Run(ctx, since, sinksOf(known), follow)
	if err == nil && follow && len(known.sinks) == 0 { // there is nothing to do until another version has some
		<-ctx.Done()
	}
	return err
}

// sinksOf are the sinks of a version as they are sent to.
func sinksOf(known *knownVersion) (out []*sink.Sink) {
	for i := range known.sinks {
		s := &known.sinks[i]
		out = append(out, &sink.Sink{
			Name: s.Name, Type: s.Kind(), URL: s.URL, URLFile: s.URLFile, Batch: s.Batch, TokenFile: s.TokenFile,
			SignatureFile: s.SignatureFile, Takes: s.Takes, Body: s.Body, CheckURL: render.CheckSinkURL, Secret: readOwnSecret,
		})
	}
	return out
}
