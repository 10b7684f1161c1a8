package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
)

func demoCommand(a *app) *cobra.Command {
	var keep, fast bool
	c := &cobra.Command{
		Use: "demo", GroupID: "repo", Args: noArgs,
		Short: "A fleet on this machine: a rollout, a bad commit, and the fix",
		Long: "Demo runs five agents, each below a directory of its own, with one etcd and one git repository, all\n" +
			"in a temporary directory. It needs no root, no network and no git. You see a release roll out role\n" +
			"by role, a bad one halt at the canary, and the fix.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), keep, fast) },
	}
	c.Flags().BoolVar(&keep, "keep", false, "leave the fleet's directory for looking around")
	c.Flags().BoolVar(&fast, "fast", false, "without pauses for reading, for scripts")
	return c
}

// demoTimeout is far more than the demo takes: what waits longer will not come.
const demoTimeout = 2 * time.Minute

// demo plays the acts one after another.
func (a *app) demo(ctx context.Context, keep, fast bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "pullet-demo-")
	if err != nil {
		return err
	}
	if !keep {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	fleet, err := newDemoFleet(ctx, dir, fast)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fleet.stop()) }()
	s := &stage{fleet: fleet, screen: newScreen(a.out), fast: fast}
	if err := s.play(ctx); err != nil {
		return err
	}
	if keep {
		fmt.Fprintf(a.out, "\nThe fleet's directory stays. Look around:\n"+
			"  pullet status --config %s\n  pullet plan --config %s --root %s\n  rm -r %s\n",
			fleet.nodes[0].config, fleet.nodes[0].config, fleet.nodes[0].root, dir)
	}
	return nil
}

// stage is the play: acts on a fleet, seen on a screen.
type stage struct {
	fleet  *demoFleet
	screen *screen
	fast   bool
}

// pause is time to read.
func (s *stage) pause(ctx context.Context, d time.Duration) {
	if s.fast {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// play is the demo in one function.
func (s *stage) play(ctx context.Context) error {
	s.screen.say(
		"Five hosts, one git repository, one etcd, no controller. Each host is a real\nagent with its own root below %s",
		s.fleet.dir,
	)
	s.screen.say("git push: release v1.0.0. The canary goes first, then db, then web, one at a time.")
	if err := s.fleet.release("v1.0.0", nil); err != nil {
		return err
	}
	s.fleet.start(ctx)
	if err := s.until(ctx, s.everybodyRuns("v1.0.0")); err != nil {
		return err
	}
	s.pause(ctx, time.Second)

	s.screen.say("git push: release v1.1.0, a new site and a nameserver. Each host sees it at its next pull.")
	if err := s.fleet.release("v1.1.0", goodChange); err != nil {
		return err
	}
	if err := s.until(ctx, s.everybodyRuns("v1.1.0")); err != nil {
		return err
	}
	s.pause(ctx, time.Second)

	s.screen.say("git push: release v1.2.0, with a mistake: a site that listens on port 99999.")
	if err := s.fleet.release("v1.2.0", badChange); err != nil {
		return err
	}
	if err := s.until(ctx, halted); err != nil {
		return err
	}
	s.pause(ctx, 2*time.Second)
	if err := s.untouched(ctx, "v1.1.0"); err != nil {
		return err
	}
	s.screen.say("The canary's test refused the file: the canary keeps the old one, and the\n" +
		"rollout halted. The other four hosts run v1.1.0, untouched. The fix is a commit.")
	s.pause(ctx, 2*time.Second)

	s.screen.say("git push: release v1.2.1, port 8080.")
	if err := s.fleet.release("v1.2.1", fixedChange); err != nil {
		return err
	}
	if err := s.until(ctx, s.everybodyRuns("v1.2.1")); err != nil {
		return err
	}
	s.screen.say("Five hosts run v1.2.1. Your own fleet: see README.md, \"A first real fleet\".")
	return nil
}

// until shows the fleet until a condition holds.
func (s *stage) until(ctx context.Context, done func(*fleetStatus) bool) error {
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for {
		o, err := s.fleet.store.Views.Fleet(ctx, false)
		if err != nil {
			return s.fleet.explain(err)
		}
		v := viewOf(o)
		s.screen.show(demoPicture{v})
		if done(v) {
			s.screen.detach()
			return nil
		}
		select {
		case <-ctx.Done():
			return s.fleet.explain(ctx.Err())
		case <-every.C:
		}
	}
}

// demoPicture is the fleet of the demo: its nodes, and what is halted.
type demoPicture struct{ *fleetStatus }

func (p demoPicture) print(w io.Writer) {
	t := columns(w)
	fmt.Fprintln(t, "  NODE\tROLE\tRUNS\tSTATE\tWHY")
	for _, n := range p.Nodes {
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", n.Node, orDash(n.Role), p.versionName(n.Version), n.State, n.Why)
	}
	t.Flush()
	for _, h := range p.Halted {
		_ = inked(w, span{red, "  HALTED  "}, span{noInk, h.Why()}) // as with every line for people
	}
}

// everybodyRuns is the end of a rollout.
func (s *stage) everybodyRuns(release string) func(*fleetStatus) bool {
	return func(v *fleetStatus) bool {
		if len(v.Nodes) != len(s.fleet.nodes) {
			return false
		}
		for _, n := range v.Nodes {
			if n.Release != release || n.State != upToDate {
				return false
			}
		}
		return true
	}
}

func halted(v *fleetStatus) bool { return len(v.Halted) > 0 }

// untouched makes sure that nobody but the canary moved.
func (s *stage) untouched(ctx context.Context, release string) error {
	o, err := s.fleet.store.Views.Fleet(ctx, false)
	if err != nil {
		return err
	}
	for _, n := range viewOf(o).Nodes {
		if n.Release != release {
			return fmt.Errorf("%s runs %s: the halt did not hold", n.Node, n.Release)
		}
	}
	return nil
}
