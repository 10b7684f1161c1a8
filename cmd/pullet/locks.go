package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// heldLock is a gate with who waits at it.
type heldLock struct {
	state.Lock
	Waiting []string `json:"waiting"`
	state.Remedy
}

func locksCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "locks", GroupID: "fleet", Args: noArgs,
		Short: "Who holds which gate, at which step, and who waits for it",
		Long: "Locks lists the slots and the serialized steps that nodes hold, the barriers (sync) to which not all\n" +
			"have come, and the nodes that were chosen (target), for the fleet's version. A holder that does not\n" +
			"answer keeps its gate.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onFleet(cmd, func(ctx context.Context, store *state.Store) error {
				locks, err := readLocks(ctx, store)
				if err != nil {
					return err
				}
				return locksCmd{a}.print(locks)
			})
		},
	}
}

// locksCmd is pullet locks.
type locksCmd struct{ *app }

func (a locksCmd) print(locks []heldLock) error {
	if len(locks) == 0 && (a.output == "table" || a.output == "wide") {
		_, err := fmt.Fprintln(a.out, "nobody holds a gate")
		return err
	}
	most := 5
	if a.output == "wide" {
		most = len(locks) + 1<<20
	}
	return a.list(locks, "KIND\tNAME\tHOLDER\tSTEP\tSINCE\tWAITING", func(w io.Writer) {
		for _, l := range locks {
			fmt.Fprintf(
				w,
				"%s\t%s\t%s\t%s\t%s\t%s\n",
				l.Kind,
				l.Name,
				l.holder(most),
				orDash(l.Step),
				age(w, l.Since),
				l.waiters(most),
			)
		}
	})
}

// readLocks reads all gates, with who waits at each.
func readLocks(ctx context.Context, store *state.Store) ([]heldLock, error) {
	o, err := store.Views.Fleet(ctx, false)
	if err != nil {
		return nil, err
	}
	locks, err := store.Views.Locks(ctx, o)
	if err != nil {
		return nil, err
	}
	return locksOf(o, locks), nil
}

// locksOf returns gates with who waits at each, sorted.
func locksOf(o *state.Overview, locks []state.Lock) []heldLock {
	waits := viewOf(o).Waits
	out := []heldLock{}
	for _, l := range locks {
		h := heldLock{Lock: l, Waiting: []string{}}
		h.waits(waits)
		if len(h.Waiting) > 0 {
			slices.Sort(h.Waiting)
		} else if l.Node != "" && !l.Alive && !(l.Gone && len(l.Took) == 0) { // a place of which nothing stands is free
			h.Remedy = lock.RemedyFor(state.Holder{Node: l.Node, Since: o.Nodes[l.Node].LastSeen, Gone: l.Gone, Took: l.Took})
		}
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b heldLock) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Place, b.Place))
	})
	return out
}

// waits finds who waits for the gate, and what clears it: where they wait for more than that, what an operator can do.
func (l *heldLock) waits(groups []waitGroup) {
	for _, g := range groups {
		if !g.waitsFor(l.Lock) {
			continue
		}
		l.Waiting = append(l.Waiting, g.Nodes...)
		if l.Clear == "" || l.Itself() {
			l.Remedy = g.Remedy
		}
	}
}

// waitsFor reports nodes that wait at a gate. Those that wait for the result of a chosen node name it and its election;
// a slot may count in the group of who waits, too, and in the total of the fleet.
func (g waitGroup) waitsFor(l state.Lock) bool {
	switch {
	case l.Kind != "election" && gateName(g.Gate) == l.Kind+" "+l.Name:
		return true
	case l.Kind == "slot" && (g.Kind == state.WaitSlot || g.Kind == state.WaitTotal):
		return slices.ContainsFunc(g.left, func(h state.Holder) bool { return h.Node == l.Node })
	}
	return slices.ContainsFunc(g.Holders, func(h state.Holder) bool { return h.Node == l.Node && h.Election == l.Name })
}

// holder is who holds the gate and how that one is; of a barrier, who has not come.
func (l heldLock) holder(most int) string {
	switch {
	case l.Unread != "":
		return l.Unread
	case l.Kind == "barrier":
		if len(l.Missing) == 0 { // those who did not come were given up since
			return fmt.Sprintf("%d came; nobody is missing", l.In)
		}
		return fmt.Sprintf("%d came; not yet: %s", l.In, safetext.Some(l.Missing, most))
	case l.Alive:
		return l.Node + " (alive)"
	}
	return l.Node + " (not answering)"
}

// waiters are who waits and what clears it.
func (l heldLock) waiters(most int) string {
	if len(l.Waiting) == 0 && l.Clear == "" {
		return "-"
	}
	text := "nobody"
	if len(l.Waiting) > 0 {
		text = safetext.Some(l.Waiting, most)
	}
	if l.Clear != "" && !l.Itself() {
		text += "; " + l.Clear
	}
	return text
}

// clock is a time of day, or a date where that is another day.
func clock(t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case time.Since(t) < 12*time.Hour:
		return t.Local().Format(time.TimeOnly)
	}
	return t.Local().Format(time.DateTime)
}
