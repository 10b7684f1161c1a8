package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/state"
)

func rolloutWatchCommand(a *app) *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use: "watch", Args: noArgs,
		Short: "Look on while the fleet moves to its version",
		Long: "Watch shows the rollout as it goes on: how far each group is, who is at work at which step, who waits\n" +
			"for what, what halts it and what to type then. On a terminal it is a picture that is drawn over, and q\n" +
			"ends it; elsewhere each change is a line, and with -o json a document. It ends with the rollout.\n" +
			"\n" +
			"EXIT STATUS\n" +
			"  0   every node runs the version\n" +
			"  1   an error, or the rollout is halted\n" +
			"  3   not finished: the time was over, somebody stopped the watch, or another version took its place\n" +
			"  64  the command line is wrong",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if timeout < 0 {
				return usage(fmt.Errorf("--timeout %s: how long to watch is a time from 0 on", timeout))
			}
			return a.onFleet(cmd, a.withNode(func(ctx context.Context, node *agent.Agent, store *state.Store) error {
				if timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, timeout)
					defer cancel()
				}
				return rolloutCmd{a}.watch(ctx, node, store, cmd.InOrStdin())
			}))
		},
	}
	durationVar(c.Flags(), &timeout, "timeout", 0, "how long (default: any time); 1ms only looks")
	return c
}

// watch shows the rollout to the fleet's version until it ends.
func (a rolloutCmd) watch(ctx context.Context, node *agent.Agent, store *state.Store, keys io.Reader) error {
	// A look is finished also when the time just ran out: its picture is shown.
	first, o, err := a.readRollout(context.WithoutCancel(ctx), node, store)
	if err != nil {
		return err
	}
	w := watch{app: a.app, store: store, keys: keys, first: reading{picture: rolloutPicture{first}, revision: o.Revision}}
	w.read = func(ctx context.Context) (picture, int64, error) {
		o, err := readFleet(ctx, store)
		if err != nil {
			return nil, 0, err
		}
		if o.Current == nil {
			return nil, 0, o.NoVersion()
		}
		if o.Current.Rollout() != first.Version.Rollout() {
			return nil, 0, &exit{agent.ExitWaiting, fmt.Errorf("superseded: the fleet moved on to %s", o.Current)}
		}
		return rolloutPicture{first.rules.view(o)}, o.Revision, nil
	}
	finished := false
	w.over = func(p picture) (bool, error) {
		v := p.(rolloutPicture)
		finished = v.State == "finished"
		if v.State == state.Halted {
			return true, &exit{agent.ExitError, fmt.Errorf("the rollout of %s is halted", v.Version)}
		}
		return finished, nil
	}
	if err := w.run(ctx); err != nil || finished {
		return err
	}
	last := w.now.(rolloutPicture)
	return &exit{agent.ExitWaiting, errors.New("not finished: " + last.status.counts() + "; see pullet rollout status")}
}

// rolloutPicture is a rollout as rollout watch shows it.
type rolloutPicture struct{ *rolloutView }

// print shows how far the groups are, who is at work, and who waits for what.
func (v rolloutPicture) print(w io.Writer) {
	v.printHead(w, v.estimate())
	v.printBars(w)
	if nodes := v.States[upgrading]; len(nodes) > 0 {
		v.printHeading(w, "at work", upgrading, len(nodes))
		t := columns(w)
		for _, n := range nodes[:min(len(nodes), mostExceptions)] {
			fmt.Fprintf(t, "  %s\t%s\t%s\n", n.Node, age(w, n.Since),
				cmp.Or(n.Why, v.status.held[n.Node].Step, "begins"))
		}
		t.Flush()
		if more := len(nodes) - mostExceptions; more > 0 {
			fmt.Fprintf(w, "  and %d more: pullet nodes --state upgrading\n", more)
		}
	}
	v.printStates(w, false, failed, lost, parked, pending)
	v.status.printHalted(w)
}

// changes are the lines of a rollout where there is no terminal: of itself, its groups and its nodes.
func (v rolloutPicture) changes() []change {
	out := []change{{"", fmt.Sprintf("%s: %s: %s", v.Version, v.State, v.status.counts())}}
	for _, g := range v.Groups {
		line := fmt.Sprintf("group %s: %d of %d done, %s", g.Group, g.Done, g.Nodes, g.stateText())
		out = append(out, change{g.Group + "/", line})
	}
	return append(out, v.status.changes()...)
}

// The signs of a bar, one for each state of nodes, in the order in which they stand in it.
const (
	doneSign, workSign, waitSign, failedSign, lostSign = '#', '>', '.', '!', '?'
	barSigns                                           = "# done  > at work  . waiting  ! failed  ? lost"
	barHeading                                         = "PROGRESS"
)

// printBars shows the groups by stage, with a bar of the states of their nodes.
func (v rolloutPicture) printBars(w io.Writer) {
	long := 24
	if most := lookOf(w).most; most > 0 && most < 72 {
		long = 10
	}
	t := columns(w)
	fmt.Fprintf(t, "STAGE\tGROUP\tAT A TIME\t%s\tDONE\tSTATE\n", barHeading)
	for _, g := range v.Groups {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d of %d\t%s\n", number(g.Stage), g.Group, number(g.Limit),
			g.bar(v.behind(g), long), g.Done, g.Nodes, g.stateText())
	}
	t.Flush()
	fmt.Fprintln(w, barSigns)
}

// behind counts the nodes of a group that do not run the version, by the signs of their states.
func (v rolloutPicture) behind(g rolloutGroup) map[rune]int {
	signs := map[string]rune{upgrading: workSign, failed: failedSign, lost: lostSign}
	out := map[rune]int{}
	for _, name := range g.behind {
		sign, known := signs[v.stateOf[name]]
		if !known {
			sign = waitSign
		}
		out[sign]++
	}
	return out
}

// bar is a group as so many signs. A state that any node has is seen, however many others there are.
func (g rolloutGroup) bar(behind map[rune]int, long int) string {
	var b strings.Builder
	parts := []rune{doneSign, workSign, failedSign, lostSign, waitSign}
	behind[doneSign] = g.Done
	for _, sign := range parts {
		if n := behind[sign]; n > 0 {
			b.WriteString(strings.Repeat(string(sign), max(1, n*long/max(g.Nodes, 1))))
		}
	}
	text := b.String()
	most := string(slices.MaxFunc(parts, func(x, y rune) int { return behind[x] - behind[y] }))
	switch off := long - len(text); { // what was rounded is made good where there is most
	case off > 0 && text != "":
		text = strings.Replace(text, most, strings.Repeat(most, off+1), 1)
	case off < 0:
		text = strings.Replace(text, most, "", -off)
	}
	return text
}

// barMarks are the colours of a bar that begins so far behind the beginning of its line.
func barMarks(bar string, at int) (out []mark) {
	for i, sign := range bar {
		if last := len(out) - 1; last >= 0 && out[last].ink == signInk(sign) {
			out[last].to++
		} else {
			out = append(out, mark{at + i, at + i + 1, signInk(sign)})
		}
	}
	return out
}

// signInk is the colour of a sign of a bar.
func signInk(sign rune) ink {
	return wordInk(map[rune]string{
		doneSign: "done", workSign: upgrading, failedSign: failed, lostSign: lost, waitSign: waiting,
	}[sign])
}

// The least from which the pace of a rollout is told: so many nodes, and so many of a hundred.
const (
	paceNodes = 5
	paceShare = 10
)

// estimate is how long the rest of a rollout takes at the pace of the nodes that are through. It is "" where that
// would be a guess: of few nodes, of a rollout that does not go on, while nodes need somebody, or when nobody got
// through for much longer than it took before.
func (v rolloutPicture) estimate() string {
	left := len(v.status.Nodes) - len(v.Upgraded)
	stuck := len(v.States[failed]) + len(v.States[lost]) + len(v.States[parked]) + v.status.Counts[missing]
	closedGroup := slices.ContainsFunc(v.Groups, func(g rolloutGroup) bool { return g.State == closed })
	if v.State != "running" || left == 0 || stuck > 0 || closedGroup || len(v.status.Switches) > 0 {
		return ""
	}
	var through []time.Time
	for _, n := range v.Upgraded {
		if n.Since.After(v.Version.At) {
			through = append(through, n.Since)
		}
	}
	if len(through) < paceNodes || len(through)*100 < paceShare*len(v.status.Nodes) {
		return ""
	}
	slices.SortFunc(through, time.Time.Compare)
	first, last := through[0], through[len(through)-1]
	each := last.Sub(first) / time.Duration(len(through)-1)
	if each <= 0 || time.Since(last) > 5*each {
		return ""
	}
	rest := max(each*time.Duration(left)-time.Since(last), each)
	return fmt.Sprintf("; about %s more at the pace of the last %s", roughly(rest), count(len(through), "node"))
}

// roughly is a time as exact as an estimate is.
func roughly(d time.Duration) string { return ago(time.Now().Add(-d)) }
