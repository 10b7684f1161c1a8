package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/pullet/pullet/state"
)

// unreadEvents are events that wait for the reactor.
type unreadEvents struct {
	Events int       `json:"events"`
	Since  time.Time `json:"since"` // when the oldest happened
}

// readUnread reads what waits for the reactor; nil: nothing does.
func readUnread(ctx context.Context, store *state.Store) (*unreadEvents, error) {
	waiting, err := store.EventLog.Waiting(ctx)
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	return &unreadEvents{Events: len(waiting), Since: waiting[0].Time}, nil
}

// line says who is to read them, and where to look when nobody does.
func (u *unreadEvents) line(w io.Writer, reactor string) string {
	text := fmt.Sprintf("not read: %s, the oldest happened %s; ", count(u.Events, "event"), when(w, u.Since))
	if reactor == "" {
		return text + "no host is the reactor: run pullet agent, or pullet pull, on one that has the fleet's version" +
			" (pullet nodes)"
	}
	return text + "if this lasts, see the log of the reactor, " + reactor
}
