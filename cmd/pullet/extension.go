package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

func extensionCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "extension", GroupID: "fleet", Args: noArgs,
		Short: "Publish executables of own actions in the fleet's record",
		Long: "A manifest below extensions/ that says datastore: true has its executable in the fleet's record. These\n" +
			"commands put it there, list what is there, and take it out. docs/extensions.md is about manifests.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	e := extensionCmd{a}
	c.AddCommand(e.publishCommand(), e.listCommand(), e.removeCommand())
	return c
}

// extensionCmd is pullet extension.
type extensionCmd struct{ *app }

func (a extensionCmd) publishCommand() *cobra.Command {
	return &cobra.Command{
		Use: "publish FILE", Args: arguments(cobra.ExactArgs(1)),
		Short: "Put an executable into the fleet's record, and print its digest",
		Long: "Publish puts FILE into the fleet's record under its digest, 8 MiB at most, and prints the lines for the\n" +
			"manifest. It stays until pullet extension remove. Hosts fetch it when a job needs it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			content, err := readExecutable(args[0])
			if err != nil {
				return err
			}
			return a.steers(cmd, func(ctx context.Context, store *state.Store) error {
				return a.publish(ctx, store, filepath.Base(args[0]), content)
			})
		},
	}
}

// readExecutable reads a file, or so much of it that it is seen to be too large.
func readExecutable(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, state.MaxExtension+1))
}

func (a extensionCmd) publish(ctx context.Context, store *state.Store, name string, content []byte) error {
	e, err := store.Extensions.Publish(ctx, name, a.operator(), content)
	if err != nil {
		return err
	}
	if done, err := a.structured(e); done || err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "published %s, %d bytes; in its manifest below extensions/:\n"+
		"datastore: true\ndigest: sha256:%s\n", e.Name, e.Size, e.Digest)
	return err
}

func (a extensionCmd) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Args: noArgs,
		Short: "List the executables in the fleet's record",
		Long: "List shows what was published, by whom and when. An executable that is not complete cannot be fetched:\n" +
			"publish it again.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onFleet(cmd, func(ctx context.Context, store *state.Store) error {
				all, err := store.Extensions.List(ctx)
				if err != nil {
					return err
				}
				if len(all) == 0 && (a.output == "table" || a.output == "wide") {
					_, err := fmt.Fprintln(a.out, "the fleet's record has no executable: pullet extension publish FILE")
					return err
				}
				return a.list(all, "DIGEST\tNAME\tSIZE\tBY\tAT\tSTATE", func(w io.Writer) {
					for _, e := range all {
						fmt.Fprintf(w, "sha256:%s\t%s\t%d\t%s\t%s\t%s\n",
							e.Digest, orDash(e.Name), e.Size, orDash(e.By), age(w, e.At), completeness(e))
					}
				})
			})
		},
	}
}

// completeness says whether hosts can fetch an executable, and what helps where they cannot.
func completeness(e state.Extension) string {
	const again = "; publish it again, or remove it"
	switch {
	case e.Size == 0:
		return "not complete: there is no record of it" + again
	case len(e.Missing) > 0:
		var missing []string
		for _, i := range e.Missing {
			missing = append(missing, fmt.Sprint(i))
		}
		return "not complete: it lacks chunk " + safetext.Some(missing, 3) + again
	}
	return "complete"
}

func (a extensionCmd) removeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "remove DIGEST", Args: arguments(cobra.ExactArgs(1)),
		Short: "Take an executable out of the fleet's record",
		Long: "Remove takes out what was published under a digest, also what is not complete. Hosts that have a copy\n" +
			"go on with it; steps of others that need it fail.",
		RunE: func(cmd *cobra.Command, args []string) error {
			digest := strings.TrimPrefix(args[0], "sha256:")
			return a.steers(cmd, func(ctx context.Context, store *state.Store) error {
				removed, err := store.Extensions.Remove(ctx, digest)
				if err == nil && !removed {
					err = fmt.Errorf("the fleet's record has no extension sha256:%s: pullet extension list", digest)
				}
				if err == nil {
					_, err = fmt.Fprintf(a.out, "removed sha256:%s\n", digest)
				}
				return err
			})
		},
	}
}

// extensionsIn are the digests of the executables in the fleet's record.
func extensionsIn(ctx context.Context, store *state.Store, _ *state.Overview) (digests []string, err error) {
	all, err := store.Extensions.List(ctx)
	for _, e := range all {
		digests = append(digests, e.Digest)
	}
	return digests, err
}
