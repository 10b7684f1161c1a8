package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/state"
)

// pastVersion is a version of the fleet with how it ended.
type pastVersion struct {
	state.Version
	Ended  string       `json:"ended"` // current, finished, superseded, halted, undone
	Detail string       `json:"detail,omitempty"`
	Ending state.Ending `json:"ending"`

	Settled []state.Settlement `json:"settled,omitempty"` // what operators said last of its targeted steps
}

func rolloutHistoryCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "history", Args: noArgs,
		Short: "The fleet's last versions: by whom, when, why, how they ended",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onFleet(cmd, func(ctx context.Context, store *state.Store) error {
				past, err := history(ctx, store)
				if err != nil {
					return err
				}
				return a.list(past, "VERSION\tSET\tBY\tENDED\tWHY\tCOMMIT", func(w io.Writer) {
					for _, v := range past {
						ended := v.Ended
						if v.Detail != "" {
							ended += " " + v.Detail
						}
						for _, t := range v.Settled {
							ended += "; " + settledText(w, t)
						}
						fmt.Fprintf(
							w,
							"%s\t%s\t%s\t%s\t%s\t%s\n",
							withCommit(&v.Version),
							age(w, v.At),
							v.By,
							ended,
							orDash(v.Reason),
							orDash(strings.Join(v.Described(), "; ")),
						)
					}
				})
			})
		},
	}
}

// history are the fleet's versions, the newest first.
func history(ctx context.Context, store *state.Store) ([]pastVersion, error) {
	versions, err := store.Versions.History(ctx)
	if err != nil {
		return nil, err
	}
	ends, err := store.Versions.Endings(ctx, versions)
	if err != nil {
		return nil, err
	}
	settled, err := store.Steps.Settlements(ctx)
	if err != nil {
		return nil, err
	}
	out := []pastVersion{}
	for i, v := range versions {
		p := pastVersion{Version: v, Ended: "superseded", Ending: ends[i]}
		for _, t := range settled {
			if t.Rollout == v.Rollout() {
				p.Settled = append(p.Settled, t)
			}
		}
		switch e := ends[i]; {
		case e.Undone != "":
			p.Ended, p.Detail = "undone", e.Undone
		case e.Halted != "":
			p.Ended, p.Detail = state.Halted, e.Halted
		case i == len(versions)-1:
			p.Ended = "current"
		case e.Groups > 0 && e.Closed == e.Groups:
			p.Ended = "finished"
		}
		out = append(out, p)
	}
	slices.Reverse(out)
	return out, nil
}

// settledText is what an operator said of a step, who did and when.
func settledText(w io.Writer, t state.Settlement) string {
	what := "to run again"
	if t.Done {
		what = "done"
	}
	return t.Step + " settled (" + what + ") by " + t.By + " " + when(w, t.At)
}
