package main

import (
	"context"

	"github.com/pullet/pullet/state"
)

// eventsIn are the names of events that happened lately.
func eventsIn(ctx context.Context, store *state.Store, _ *state.Overview) (words []string, err error) {
	pages, err := store.EventLog.Newest(ctx, 0, pagesAtOnce)
	for _, p := range pages {
		for _, e := range p.Events {
			words = append(words, e.Name)
		}
	}
	return words, err
}

// eventIDsIn are the ids of events that happened lately.
func eventIDsIn(ctx context.Context, store *state.Store, _ *state.Overview) (words []string, err error) {
	pages, err := store.EventLog.Newest(ctx, 0, pagesAtOnce)
	for _, p := range pages {
		for _, e := range p.Events {
			words = append(words, e.ID)
		}
	}
	return words, err
}

// runsIn are the runs of reactions that are on record.
func runsIn(ctx context.Context, store *state.Store, _ *state.Overview) (words []string, err error) {
	runs, err := store.Reactions.List(ctx)
	for _, r := range runs {
		words = append(words, r.ID)
	}
	return words, err
}

// reactionsIn are the reactions of which something is on record.
func reactionsIn(ctx context.Context, store *state.Store, _ *state.Overview) ([]string, error) {
	return knownReactions(ctx, store)
}

// pausedIn are the reactions that are paused.
func pausedIn(ctx context.Context, store *state.Store, _ *state.Overview) (words []string, err error) {
	paused, err := store.Reactions.Paused(ctx)
	for name := range paused {
		words = append(words, name)
	}
	return words, err
}
