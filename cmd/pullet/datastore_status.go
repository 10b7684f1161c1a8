package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

func datastoreStatusCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "status", Args: noArgs,
		Short: "Show which hosts carry the datastore, and how they are",
		Long: "Status asks each member of the fleet's datastore how it is. Below it says what the repository wants, what\n" +
			"the leading member waits for before it changes the members, and what it did last. It exits 1 where too few\n" +
			"members answer: then it shows those that do.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := a.onFleet(cmd, func(ctx context.Context, store *state.Store) error {
				return datastoreCmd{a}.status(ctx, store)
			})
			return datastoreCmd{a}.statusWithout(cmd.Context(), err)
		},
	}
}

// datastoreStatus is what the command shows.
type datastoreStatus struct {
	Members []datastore.Member `json:"members"`
	Bears   string             `json:"bears"`
	Unlike  string             `json:"unlike,omitempty"`  // which members' records differ, where nobody knows who is wrong
	Wanted  *wantedMembers     `json:"wanted,omitempty"`  // nothing: the repository says nothing
	Waits   string             `json:"waits,omitempty"`   // for what the next change waits
	Rotates string             `json:"rotates,omitempty"` // how far the authority is exchanged
	Steps   []state.MemberStep `json:"steps,omitempty"`   // the last ones, the newest last
}

// wantedMembers are what the repository wants.
type wantedMembers struct {
	Count   int              `json:"count"`
	Timeout float64          `json:"timeout"` // how long a member is away until another host takes its place
	Hosts   []state.Eligible `json:"hosts"`   // that may carry the datastore
}

func wantedOf(w *state.Wanted) *wantedMembers {
	if w == nil {
		return nil
	}
	return &wantedMembers{w.Count, w.ReplaceAfter.Seconds(), w.Hosts}
}

// shownSteps is how many of the last steps are printed.
const shownSteps = 5

func (a datastoreCmd) status(ctx context.Context, store *state.Store) error {
	members, err := datastore.Members(ctx, store.Client)
	if err != nil {
		return err
	}
	d, err := store.Datastores.All(ctx)
	if err != nil {
		return err
	}
	out := datastoreStatus{
		Members: members, Bears: datastore.Bears(members), Unlike: datastore.Unlike(d), Wanted: wantedOf(d.Wanted),
		Waits: d.Steps.Waits, Rotates: datastore.Exchanging(d, members), Steps: d.Steps.Steps,
	}
	if done, err := a.structured(out); done || err != nil {
		return err
	}
	return onPage(a.out, func(w io.Writer) {
		out.printMembers(w)
		if out.Rotates != "" {
			fmt.Fprintln(w, "rotation: "+out.Rotates)
		}
		out.printWanted(w)
	})
}

// statusWithout shows the members that answer where they are too few for the record; err is why that cannot be read.
func (a datastoreCmd) statusWithout(ctx context.Context, err error) error {
	away, unreachable := errors.AsType[*state.UnreachableError](err)
	if !unreachable || away.Denied() {
		return err
	}
	c, failed := a.readConfig()
	if failed != nil {
		return err
	}
	client, failed := agent.Connect(c)
	if failed != nil || client == nil {
		return err
	}
	defer client.Close() // nothing was written
	members, failed := datastore.Members(ctx, client)
	if failed != nil {
		return err
	}
	out := datastoreStatus{Members: members, Bears: datastore.Bears(members)}
	if done, failed := a.structured(out); done || failed != nil {
		return cmp.Or(failed, err)
	}
	return cmp.Or(onPage(a.out, out.printMembers), err)
}

func (s datastoreStatus) printMembers(w io.Writer) {
	fmt.Fprintln(w, s.Bears)
	if s.Unlike != "" {
		fmt.Fprintln(w, s.Unlike)
	}
	t := columns(w)
	fmt.Fprintln(t, "NODE\tROLE\tSTATE\tSIZE\tLACKS\tENDPOINT")
	for _, m := range s.Members {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\n",
			cmp.Or(safetext.Line(m.Node, 64), "-"), m.Role, memberState(m), bytesText(m.Size), m.Lag, orDash(m.Endpoint))
	}
	t.Flush()
}

// bytesText is a size in the larger of two units that fits.
func bytesText(n int64) string {
	if n < 10<<20 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// memberState says in a word or two how a member is.
func memberState(m datastore.Member) string {
	switch {
	case !m.Answers && m.Node == "":
		return "comes"
	case !m.Answers:
		return "away"
	case len(m.Errors) > 0:
		return safetext.Line(m.Errors[0], 60)
	}
	return "ok"
}

func (s datastoreStatus) printWanted(w io.Writer) {
	if s.Wanted == nil {
		fmt.Fprintln(w,
			"wanted: the repository says nothing (config: {dataStore: {type: etcd, count: 3}} in pullet.yaml)")
		return
	}
	var may []string
	for _, h := range s.Wanted.Hosts {
		may = append(may, h.Node)
	}
	fmt.Fprintf(w, "wanted: %d of %s; one that is away for %s is replaced\n",
		s.Wanted.Count, safetext.Some(may, 6), time.Duration(s.Wanted.Timeout*float64(time.Second)))
	if s.Waits != "" {
		fmt.Fprintln(w, "waits: "+s.Waits)
	}
	printSteps(w, s.Steps[max(0, len(s.Steps)-shownSteps):])
}

func printSteps(out io.Writer, steps []state.MemberStep) {
	for _, s := range steps {
		fmt.Fprintf(out, "%s  %s %s: %s (by %s)\n", age(out, s.At), s.Kind, s.Node, s.Why, s.By)
	}
}
