package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/event"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// tried is an event that is not told, and what would come of it.
type tried struct {
	state.Event
	Reactions []event.Trial `json:"reactions"` // that answer its name
}

// try says what would come of an event, by the reactions of the fleet's version.
func (a emitCmd) try(cmd *cobra.Command, e state.Event) error {
	return a.onFleet(cmd, a.withNode(func(ctx context.Context, node *agent.Agent, store *state.Store) error {
		rules, err := node.Answers(ctx, store)
		if err != nil {
			return err
		}
		in, err := store.Events.Inbox(ctx)
		if err != nil {
			return err
		}
		fleet, err := store.Events.Time(ctx)
		if err != nil {
			return err
		}
		desk := event.Desk{
			In: in, Reactions: rules.Reactions, Find: rules.Find, Version: rules.Version, Node: e.By, Now: fleet.Now,
			Ahead: time.Since(fleet.Now), NewID: event.NewID,
		}
		out := tried{Event: e, Reactions: desk.Try(ctx, e)}
		if err := rules.Unseen(); err != nil {
			return err
		}
		if out.Reactions == nil {
			out.Reactions = []event.Trial{}
		}
		return a.printTried(out)
	}))
}

func (a emitCmd) printTried(t tried) error {
	if len(t.Reactions) == 0 && (a.output == "table" || a.output == "wide") {
		_, err := fmt.Fprintf(a.out, "no reaction of the fleet's version answers %s\n", t.Name)
		return err
	}
	most := 5
	if a.output == "wide" {
		most = 1 << 20
	}
	return a.list(t, "REACTION\tSTARTS ON\tWHY", func(w io.Writer) {
		for _, r := range t.Reactions {
			on, why := "-", orDash(r.Why)
			if r.Starts && len(r.Hosts) > 0 {
				on = safetext.Some(r.Hosts, most)
			}
			if !r.Next.IsZero() {
				why += "; looked at again " + clock(r.Next)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", r.Reaction, on, why)
		}
	})
}
