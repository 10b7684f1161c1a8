package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

func statusCommand(a *app) *cobra.Command {
	var live bool
	c := &cobra.Command{
		Use: "status", GroupID: "fleet", Args: noArgs,
		Short: "Who runs what, who waits for whom and what clears it",
		Long: "Status shows the fleet in one screen: its version and what holds it, how many nodes are in which\n" +
			"state, and who stands still and why. Of a large fleet it shows the exceptions, and the waiting nodes\n" +
			"by what they wait for; pullet nodes lists all.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onFleet(cmd, func(ctx context.Context, store *state.Store) error {
				if live {
					w := watch{app: a, store: store, keys: cmd.InOrStdin()}
					w.read = func(ctx context.Context) (picture, int64, error) { return readStatus(ctx, store) }
					return w.run(ctx)
				}
				v, _, err := readStatus(ctx, store)
				if err != nil {
					return err
				}
				return v.show(a)
			})
		},
	}
	c.Flags().BoolVar(&live, "watch", false, "show it again whenever something changes, until it is stopped")
	return c
}

// show prints the fleet in the form that was asked for.
func (v *fleetStatus) show(a *app) error {
	if done, err := a.structured(v); done || err != nil {
		return err
	}
	return onPage(a.out, v.print)
}

// readFleet reads the fleet's record, with who of it is at work.
func readFleet(ctx context.Context, store *state.Store) (*state.Overview, error) {
	o, err := store.Views.Fleet(ctx, false)
	if err != nil {
		return nil, err
	}
	return o, store.Views.Idles(ctx, o)
}

// readStatus reads the fleet's record with its switches, and the revision at which it was so.
func readStatus(ctx context.Context, store *state.Store) (*fleetStatus, int64, error) {
	o, err := readFleet(ctx, store)
	if err != nil {
		return nil, 0, err
	}
	v := viewOf(o)
	if o.Reacts {
		reactions, err := readReactions(ctx, store, time.Now().Add(-failedLately))
		if err != nil {
			return nil, 0, err
		}
		v.Reactions = reactions.counts()
	}
	v.Bad = texts(store.BadRecords())
	return v, o.Revision, nil
}

// changes are its lines where there is no terminal: one for each node and each halt.
func (v *fleetStatus) changes() []change {
	var out []change
	for _, n := range v.Nodes {
		line := fmt.Sprintf("%-7s %-7s %-9s %s", n.Node, v.versionName(n.Version), n.State, n.Why)
		out = append(out, change{n.Node, line})
	}
	for _, h := range v.Halted {
		out = append(out, change{h.Group + "!", "halted: " + h.Why()})
	}
	return out
}

// The sizes up to which one screen has room for all.
const (
	smallFleet     = 50 // nodes that are listed one by one
	mostExceptions = 20
	mostWaits      = 15
)

// print shows the fleet in one screen: the version, what holds it, the counts, the nodes or the exceptions, and what
// stands still.
func (v *fleetStatus) print(w io.Writer) {
	v.printVersion(w)
	nodes := count(len(v.Nodes), "node")
	if counts := v.counts(); counts != "" {
		_ = inked(w, append([]span{{noInk, nodes + ": "}}, counted(counts)...)...) // as with every line for people
	} else {
		fmt.Fprintln(w, nodes)
	}
	if len(v.Decommissioned) > 0 {
		fmt.Fprintf(w, "decommissioned, and still listed under nodes/: %s; remove them there, or start them again\n",
			safetext.Some(v.Decommissioned, 10))
	}
	if len(v.Ahead) > 0 {
		fmt.Fprintf(
			w,
			"clocks: %s seen in the future: their clocks are ahead, or this one is behind; pullet doctor\n",
			safetext.Some(v.Ahead, 5),
		)
	}
	if v.Pullets != nil {
		fmt.Fprintf(w, "pullet: %s; pullet fleet minimum\n", programsLine(v.Pullets))
	}
	if v.Reactions != nil {
		fmt.Fprintf(w, "reactions: %s (pullet reactions)\n", v.Reactions)
	}
	fmt.Fprintln(w)
	shown := v.Nodes
	if len(v.Nodes) > smallFleet {
		shown = v.exceptions()
	}
	more := 0
	if len(v.Nodes) > smallFleet && len(shown) > mostExceptions {
		shown, more = shown[:mostExceptions], len(shown)-mostExceptions
	}
	if len(shown) > 0 || len(v.Nodes) <= smallFleet {
		v.printNodes(w, shown)
	}
	if more > 0 {
		fmt.Fprintf(w, "and %d more: pullet nodes --state failed,lost,missing,upgrading\n", more)
	}
	if len(v.Nodes) > smallFleet && len(v.Waits) > 0 {
		fmt.Fprintln(w)
		v.printWaits(w)
	}
	v.printHalted(w)
	v.printSettled(w)
	v.printBad(w)
}

// printBad names the records that cannot be read.
func (v *fleetStatus) printBad(w io.Writer) {
	for i, bad := range v.Bad {
		if i == mostExceptions {
			fmt.Fprintf(w, "and %d records more that cannot be read: pullet doctor\n", len(v.Bad)-i)
			return
		}
		fmt.Fprintln(w, bad)
	}
}

// texts are what errors say.
func texts[E error](errs []E) []string {
	out := []string{}
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

// printVersion says at which version the fleet is, and what holds it there.
func (v *fleetStatus) printVersion(w io.Writer) {
	if v.Current == nil {
		fmt.Fprintln(w, v.none)
	} else {
		held := ""
		if v.Held {
			held = ", held there" + until(v.Current.Until) + reasonSuffix(v.Current.Reason) + " (pullet rollout follow)"
		}
		fmt.Fprintf(w, "version %s, set by %s %s%s\n", withCommit(v.Current), v.Current.By, when(w, v.Current.At), held)
		for _, line := range v.Current.Described() {
			fmt.Fprintln(w, "  "+line)
		}
	}
	v.Skipped.print(w)
	if p, ok := v.Switches["pause"]; ok {
		fmt.Fprintf(
			w,
			"paused by %s %s%s%s; to go on: pullet rollout resume\n",
			p.By,
			when(w, p.At),
			until(p.Until),
			reasonSuffix(p.Reason),
		)
	}
	if d, ok := v.Switches[state.StoreScope]; ok {
		fmt.Fprintf(
			w,
			"not accepted: %s (says %s, %s); when nobody is in the middle of an upgrade: pullet rollout resume --store\n",
			d.Reason,
			d.By,
			when(w, d.At),
		)
	}
	if v.Members != "" {
		fmt.Fprintf(w, "the datastore waits: %s; pullet datastore status\n", v.Members)
	}
	for _, e := range v.Ending {
		fmt.Fprintf(w, "the certificate of %s ends %s: a pull there renews it; once it ended: pullet fleet invite %s\n",
			e.Name, e.Until.Local().Format("2006-01-02"), e.Name)
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(v.Switches)) {
		s := v.Switches[name]
		if name == state.PauseScope || name == state.StoreScope {
			continue
		}
		names = append(names, name)
		if len(names) <= mostWaits {
			kind, of, _ := strings.Cut(name, " ")
			fmt.Fprintf(w, "%s %s\n", scopeName(state.Scope{Kind: kind, Name: of}), switchText(s))
		}
	}
	if len(names) > mostWaits {
		fmt.Fprintf(w, "and %d switches more: pullet status -o json\n", len(names)-mostWaits)
	}
}

// counts are how many nodes are in which state.
func (v *fleetStatus) counts() string {
	var counts []string
	for _, s := range []string{upToDate, upgrading, waiting, pending, failed, lost, missing} {
		if n := v.Counts[s]; n > 0 {
			text := fmt.Sprintf("%d %s", n, s)
			if s == waiting && v.Parked > 0 {
				text += fmt.Sprintf(" (%d parked)", v.Parked)
			}
			counts = append(counts, text)
		}
	}
	return strings.Join(counts, ", ")
}

// exceptions are the nodes at which something is wrong or goes on.
func (v *fleetStatus) exceptions() []nodeStatus {
	var out []nodeStatus
	for _, s := range []string{failed, lost, missing, upgrading} {
		for _, n := range v.Nodes {
			if n.State == s {
				out = append(out, n)
			}
		}
	}
	return out
}

// cells are the columns of a node that every table of nodes begins with.
func (v *fleetStatus) cells(w io.Writer, n nodeStatus) string {
	return strings.Join([]string{n.Node, orDash(n.Role), v.versionName(n.Version), n.State, age(w, n.Since)}, "\t")
}

func (v *fleetStatus) printNodes(w io.Writer, nodes []nodeStatus) {
	t := columns(w)
	fmt.Fprintln(t, "NODE\tROLE\tRUNS\tSTATE\tSINCE\tWHY")
	for _, n := range nodes {
		fmt.Fprintf(t, "%s\t%s\n", v.cells(w, n), v.why(w, n))
	}
	t.Flush()
}

// printWaits says who waits for whom, and what clears it.
func (v *fleetStatus) printWaits(w io.Writer) {
	for i, g := range v.Waits {
		if i == mostWaits {
			fmt.Fprintf(w, "and %d waits more: pullet nodes --state waiting\n", len(v.Waits)-i)
			return
		}
		fmt.Fprintln(w, g.line(w))
	}
}

func (v *fleetStatus) printHalted(w io.Writer) {
	for _, h := range v.Halted {
		fmt.Fprintf(w, "\n%s\n  no other node goes on; %s\n", said(h, v.Current), h.Clear())
		if v.Held && h.Unknown == "" {
			fmt.Fprintln(w, "  the fleet is held at this version: it takes the commit after pullet rollout follow")
		}
	}
}

// said is what is halted and why.
func said(h state.GroupGate, v *state.Version) string {
	if h.By != "" {
		return fmt.Sprintf("%s of %s is %s", h.Scope(), v, h.Gate.Why())
	}
	return fmt.Sprintf("%s is halted at %s: %s", h.Scope(), v, h.Gate.Why())
}

// why is why a node is as it is, and what clears it. A failure that halts a role is said once, below the nodes, and not
// with each that it is or that waits for it.
func (v *fleetStatus) why(w io.Writer, n nodeStatus) string {
	for _, h := range v.Halted {
		switch {
		case h.Reason == "":
		case n.Why == h.Reason:
			n.Why, n.Remedy = "see "+h.Scope()+" below", state.Remedy{}
		case strings.Contains(n.Why, ": "+h.Reason):
			n.Why, n.Remedy = strings.Replace(n.Why, ": "+h.Reason, "", 1), state.Remedy{}
		}
		if n.Remedy == state.Act(h.Clear()) {
			n.Remedy = state.Remedy{}
		}
	}
	return n.why(w, reasonRoom(w))
}

// withCommit is a version with its short id, where it has a name beside it.
func withCommit(v *state.Version) string {
	if v.Release == "" {
		return state.Short(v.ID)
	}
	return v.Release + " (" + state.Short(v.ID) + ")"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
