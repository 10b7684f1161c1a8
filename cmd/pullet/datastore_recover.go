package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/internal/safetext"
)

// confirming is how somebody confirms what cannot be undone.
type confirming struct {
	name     string // that was given on the command line; "": it is typed
	in       io.Reader
	terminal bool // in is one
}

func datastoreRecoverCommand(a *app) *cobra.Command {
	var name string
	var force bool
	c := &cobra.Command{
		Use: "recover", Args: noArgs,
		Short: "Go on with this host alone, when too few members are left",
		Long: "Recover shows the members that this host knows, and which of them has most of the record. Then it makes\n" +
			"this host the only member, when its name is typed: what this host does not have is lost. It does so\n" +
			"only while too few members answer for the datastore to go on, and pullet-etcd is stopped here. No host\n" +
			"changes until an operator accepts the record: pullet rollout resume --store.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			typed := confirming{name, cmd.InOrStdin(), term.IsTerminal(int(os.Stdin.Fd()))}
			return datastoreCmd{a}.recover(cmd.Context(), typed, force)
		},
	}
	c.Flags().StringVar(&name, "confirm", "", "the name of this host, which is asked for on a terminal otherwise")
	c.Flags().BoolVar(&force, "force", false, "also where another member that answers has more of the record")
	return c
}

func (a datastoreCmd) recover(ctx context.Context, typed confirming, force bool) error {
	c, err := a.keeping()
	if err != nil {
		return err
	}
	r := datastore.Recovering{Config: c.Datastore, Fleet: c.Fleet, Node: c.Node.Name, Force: force}
	s, err := r.Survey(ctx)
	if err != nil {
		return err
	}
	if err := printSurvey(a.out, s); err != nil {
		return err
	}
	if err := r.Check(s); err != nil {
		return fmt.Errorf("not recovered: %w", err)
	}
	a.printLoss(s)
	if err := typed.check(a.out, c.Node.Name); err != nil {
		return err
	}
	aside, err := r.Recover(ctx, time.Now())
	if err != nil {
		return fmt.Errorf("not recovered: %w", err)
	}
	fmt.Fprintf(a.out, "%s carries the datastore of the fleet %s alone; what it had before is in %s\n",
		c.Node.Name, c.Fleet, aside)
	fmt.Fprintln(a.out, "serve it: systemctl start pullet-etcd; then accept it: pullet rollout resume --store")
	return nil
}

func printSurvey(out io.Writer, s datastore.Survey) error {
	t := columns(out)
	fmt.Fprintln(t, "NODE\tSTATE\tTERM\tENTRY\tLAST WRITE")
	for _, m := range s.Members {
		term, entry := "-", "-"
		if m.Here || m.Answers {
			term, entry = fmt.Sprint(m.Term), fmt.Sprint(m.Index)
		}
		written := "-"
		if !m.Written.IsZero() {
			written = when(out, m.Written)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n",
			cmp.Or(safetext.Line(m.Node, 64), "-"), survivorState(m, s.Runs), term, entry, written)
	}
	return t.Flush()
}

// survivorState says in a word or two how a member is.
func survivorState(m datastore.Survivor, runs bool) string {
	switch {
	case m.Here && runs:
		return "this host, runs"
	case m.Here:
		return "this host"
	case m.Elsewhere:
		return "goes on"
	case m.Answers:
		return "answers"
	}
	return "away"
}

// printLoss says what is lost when this host goes on alone.
func (a datastoreCmd) printLoss(s datastore.Survey) {
	best := s.Best()
	if best.Here {
		fmt.Fprintln(a.out, "no member that answers has more of the record than this host")
	} else {
		fmt.Fprintf(a.out, "%s has more of the record than this host: it is lost, too\n", best.Node)
	}
	fmt.Fprintf(a.out, "lost is what other members wrote behind what this host has, such as who is in the middle of an "+
		"upgrade; nobody can tell how much: %s\n", cmp.Or(safetext.Some(s.Away(), 6), "nobody")+" away")
}

// check asks for a name, unless it was given.
func (c confirming) check(out io.Writer, name string) error {
	typed := c.name
	if typed == "" && !c.terminal {
		return usage(fmt.Errorf("not recovered: confirm it with the name of this host: --confirm %s", name))
	}
	if typed == "" {
		fmt.Fprintf(out, "type the name of this host to go on with its record alone: ")
		line, err := bufio.NewReader(c.in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		typed = strings.TrimSpace(line)
	}
	if typed != name {
		return fmt.Errorf("not recovered: %q is not the name of this host, which is %s", safetext.Line(typed, 64), name)
	}
	return nil
}
