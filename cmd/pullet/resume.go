package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/cmd/pullet/fleetnames"
	"github.com/pullet/pullet/state"
)

// resuming is what rollout resume is to lift.
type resuming struct {
	role         string // only the halt of this role or group
	pause, halts bool   // only the pause, only halts
	store, force bool   // only the doubt in the fleet's record; also while nodes hold slots
}

func resumeCommand(a *app) *cobra.Command {
	var r resuming
	c := &cobra.Command{
		Use: "resume", Args: noArgs,
		Short: "Go on after a pause, or after a halt by a host's fault",
		Long: "Resume lifts the pause and every halt of the fleet's version: those that a failure caused, and that\n" +
			"of rollout fail. It prints what it lifted and what remains. --pause, --halts and --role lift a part\n" +
			"only. It is recorded. The node that failed tries again by itself also without it; the others go on\n" +
			"with it.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.check(); err != nil {
				return err
			}
			return a.steers(cmd, func(ctx context.Context, store *state.Store) error {
				if r.store {
					return steerCmd{a}.acceptStore(ctx, store, r.force)
				}
				return steerCmd{a}.resume(ctx, store, r)
			})
		},
	}
	c.Flags().StringVar(&r.role, "role", "", "only the halt of this role or group")
	c.Flags().BoolVar(&r.pause, "pause", false, "only the pause; halts stay")
	c.Flags().BoolVar(&r.halts, "halts", false, "only halts, of all roles; a pause stays")
	c.Flags().
		BoolVar(&r.store, "store", false, "accept the fleet's record after it was restored from a backup or replaced: "+
			"waits until hosts at work had 45s to report")
	c.Flags().BoolVar(&r.force, "force", false, "with --store: also while nodes hold slots; they keep them")
	return c
}

// check refuses flags that exclude each other.
func (r resuming) check() error {
	n := 0
	for _, set := range []bool{r.role != "", r.pause, r.halts, r.store} {
		if set {
			n++
		}
	}
	switch {
	case n > 1:
		return usage(errors.New("use one of --role, --pause, --halts and --store"))
	case r.force && !r.store:
		return usage(errors.New("--force goes with --store"))
	}
	return nil
}

// acceptStore accepts the fleet's record, once hosts at work had the time to report what it has forgotten.
func (a steerCmd) acceptStore(ctx context.Context, store *state.Store, force bool) error {
	err := state.AwaitReports(ctx, store, a.operator(), func(until time.Time) {
		fmt.Fprintf(
			a.err,
			"waiting until %s: hosts at work report first what the record has forgotten\n",
			until.Local().Format(time.TimeOnly),
		)
	})
	if err != nil {
		return err
	}
	o, err := store.Views.Fleet(ctx, false)
	if err != nil {
		return err
	}
	if _, doubted := o.Switches[state.StoreScope]; !doubted {
		return errors.New(
			"nothing to accept: etcd does not show that it was restored, and no host knows better than the fleet's record. A " +
				"host that was down " +
				"may report later: see pullet status after its next pull",
		)
	}
	if busy := inUpgrades(a.err, o); len(busy) > 0 && !force {
		return fmt.Errorf(
			"not accepted: in the middle of an upgrade: %s; look at these hosts: where no step runs any more, and no other "+
				"host can be in the middle "+
				"of an upgrade, accept the record with pullet rollout resume --store --force; they keep their slots",
			strings.Join(busy, ", "),
		)
	}
	if err := store.Doubts.Accept(ctx, a.operator()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(
		a.out,
		"the fleet's record is accepted as it is: nodes that waited for that go on at their next pull",
	)
	return err
}

// inUpgrades are those who hold slots and may change something now, each with where it is.
func inUpgrades(w io.Writer, o *state.Overview) []string {
	var out []string
	for _, group := range slices.Sorted(maps.Keys(o.Slots)) {
		for _, place := range slices.Sorted(maps.Keys(o.Slots[group])) {
			c := o.Slots[group][place]
			switch {
			case c.Unread != nil:
				out = append(out, "a claim that cannot be read (slot "+group+")")
			case !c.Idle:
				out = append(
					out,
					holderText(w, state.Holder{Node: c.Node, Step: c.Step, Since: c.Since, Alive: o.Alive[c.Node]}),
				)
			}
		}
	}
	return out
}

// stops are what keeps a fleet from going on: a pause and halts.
type stops struct {
	Pause *state.Switch     `json:"pause,omitempty"`
	Halts []state.GroupGate `json:"halts"`
}

// stopsOf are those of a fleet now.
func stopsOf(o *state.Overview) stops {
	out := stops{Halts: []state.GroupGate{}}
	if p, ok := o.Switches[state.PauseScope]; ok {
		out.Pause = &p
	}
	for _, group := range slices.Sorted(maps.Keys(o.Gates)) {
		if g := o.Gates[group]; g.State == state.Halted {
			out.Halts = append(out.Halts, state.GroupGate{Group: group, Gate: g})
		}
	}
	return out
}

func (s stops) none() bool { return s.Pause == nil && len(s.Halts) == 0 }

// resumed is what rollout resume lifted, and what remains.
type resumed struct {
	Lifted stops `json:"lifted"`
	Left   stops `json:"left"`
}

func (a steerCmd) resume(ctx context.Context, store *state.Store, r resuming) error {
	o, err := store.Views.Fleet(ctx, false)
	if err != nil {
		return err
	}
	if r.role != "" && !slices.Contains(fleetnames.Groups(o), r.role) {
		return fleetnames.Unknown("role", r.role, fleetnames.Groups(o), "pullet nodes")
	}
	if err := doubted(o); err != nil {
		return err
	}
	lifted, err := r.lift(ctx, store, o, a.operator())
	if err == nil {
		o, err = store.Views.Fleet(ctx, false)
	}
	if err != nil {
		lifted.printLifted(a.err, false)
		return err
	}
	left := stopsOf(o)
	if lifted.none() {
		return r.nothing(o, left)
	}
	if done, err := a.structured(resumed{lifted, left}); done || err != nil {
		return err
	}
	lifted.printLifted(a.out, false)
	left.printLeft(a.out)
	return nil
}

// lift lifts what is to be lifted, and returns it as it was.
func (r resuming) lift(ctx context.Context, store *state.Store, o *state.Overview, by string) (stops, error) {
	lifted := stops{Halts: []state.GroupGate{}}
	var err error
	if r.role == "" && !r.halts {
		if lifted.Pause, err = store.Switches.Unpause(ctx); err != nil {
			return lifted, err
		}
	}
	if r.pause {
		return lifted, nil
	}
	halts, err := store.Rollouts.Resume(ctx, by, r.groups(o)...)
	lifted.Halts = append(lifted.Halts, halts...)
	return lifted, err
}

// groups are the groups of the role; none for all.
func (r resuming) groups(o *state.Overview) []string {
	if r.role == "" {
		return nil
	}
	groups := []string{r.role}
	for group, roster := range o.Rosters {
		if slices.Contains(roster.Roles, r.role) && group != r.role {
			groups = append(groups, group)
		}
	}
	return groups
}

// nothing says that there was nothing to lift, and what else keeps the fleet from going on.
func (r resuming) nothing(o *state.Overview, left stops) error {
	what := "nothing is paused or halted"
	switch {
	case r.role != "":
		what = "role " + r.role + " is not halted"
	case r.pause:
		what = "the rollout is not paused"
	case r.halts:
		what = "nothing is halted"
	}
	for _, line := range left.lines() {
		what += "; " + line
	}
	return fmt.Errorf("%s%s: see pullet status", what, resumedBy(o))
}

// setText is when something was set, by whom, until when and why.
func setText(p *state.Switch) string {
	return ago(p.At) + " ago by " + p.By + until(p.Until) + reasonSuffix(p.Reason)
}

// haltedText is since when something is halted, by whom and why.
func haltedText(g state.GroupGate) string {
	since := " " + ago(g.At) + " ago"
	if g.At.IsZero() { // its record cannot be read
		since = ""
	}
	if g.By != "" {
		return "halted" + since + " by " + g.By + reasonSuffix(g.Reason)
	}
	return "halted" + since + reasonSuffix(g.Gate.Why())
}

// printLifted says what was lifted, who set it, and since when it was there. A step whose result is unknown halts again
// until it is settled.
func (s stops) printLifted(w io.Writer, settled bool) {
	if s.Pause != nil {
		fmt.Fprintf(w, "lifted: the pause, set %s\n", setText(s.Pause))
	}
	for _, g := range s.Halts {
		fmt.Fprintf(w, "lifted: %s, %s\n", g.Scope(), haltedText(g))
		if g.Unknown != "" && !settled {
			fmt.Fprintf(
				w,
				"  as long as the result of %s is unknown, the next pull there halts it again; %s\n",
				g.Unknown,
				g.Clear(),
			)
		}
	}
	if s.Pause != nil && len(s.Halts) > 0 {
		fmt.Fprintln(
			w,
			"  to lift only one of them: pullet rollout resume --pause, --halts or --role ROLE; to set them again: pullet "+
				"rollout pause, pullet rollout fail",
		)
	}
}

// printLeft says what still keeps nodes from going on.
func (s stops) printLeft(w io.Writer) {
	for _, line := range s.lines() {
		fmt.Fprintln(w, "  "+line)
	}
}

// lines are what keeps nodes from going on, each with the command that lifts it alone.
func (s stops) lines() []string {
	var out []string
	if s.Pause != nil {
		out = append(out, "the rollout was paused "+setText(s.Pause)+"; to lift that: pullet rollout resume --pause")
	}
	for _, g := range s.Halts {
		out = append(out, g.Scope()+" was "+haltedText(g)+"; to lift that: "+liftHalt(g))
	}
	return out
}

// liftHalt is the command that lifts one halt, or all where there is none for it alone.
func liftHalt(g state.GroupGate) string {
	if g.Group == state.AllGroups || strings.HasPrefix(g.Group, "step-") {
		return "pullet rollout resume --halts"
	}
	return "pullet rollout resume --role " + g.Group
}

// doubted refuses to let the fleet go on with a record that nobody accepted.
func doubted(o *state.Overview) error {
	d, ok := o.Switches[state.StoreScope]
	if !ok {
		return nil
	}
	return fmt.Errorf(
		"not resumed: %s (says %s, %s ago). Slots that were taken since the backup may be forgotten: when pullet status "+
			"shows that nobody is in "+
			"the middle of an upgrade, accept the record with pullet rollout resume --store",
		d.Reason,
		d.By,
		ago(d.At),
	)
}

// resumedBy says who was faster.
func resumedBy(o *state.Overview) string {
	for _, group := range slices.Sorted(maps.Keys(o.Gates)) {
		if g := o.Gates[group]; g.State != state.Halted && g.Resumed != "" {
			return "; " + g.Resumed + " resumed " + state.GroupGate{Group: group, Gate: g}.Scope()
		}
	}
	return ""
}
