package main

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestOffered: what a shell would not take as one plain word is not offered.
func TestOffered(t *testing.T) {
	words := []string{"web2", "web1", "web1", "v1.0.0", "1+2", "a/b_c", "", "-rf", "--config", "$(reboot)", "`id`", "a b", "a;b", "a&b", "a|b", "a>b", "a'b", `a"b`,
		`a\b`, "a*b", "a?b", "[ab]", "{a,b}", "~", "!!", "#x", "a:b", "a=b", "a\tb", "a\nb", "a\x1b[2J", "ä", "%s", "@x", "^x", ","}
	if got, want := offered(words, ""), []string{"1+2", "a/b_c", "v1.0.0", "web1", "web2"}; !slices.Equal(got, want) {
		t.Errorf("offered %q, want %q", got, want)
	}
	if got := offered(words, "we"); !slices.Equal(got, []string{"web1", "web2"}) {
		t.Errorf("we: offered %q", got)
	}
}

// TestCompletionEnds: a record that hangs, whatever it does with its context, keeps no shell.
func TestCompletionEnds(t *testing.T) {
	hangs := make(chan struct{})
	defer close(hangs)
	c := &cobra.Command{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	c.SetContext(ctx)
	words, directive := completes(func(context.Context, []string, string) ([]string, error) {
		<-hangs
		return []string{"web1"}, nil
	})(c, nil, "")
	if len(words) != 0 || directive != cobra.ShellCompDirectiveNoFileComp {
		t.Errorf("%q, %v", words, directive)
	}
}

// completedRoot returns the command tree with its completions.
func completedRoot() *cobra.Command {
	a := &app{out: io.Discard, err: io.Discard}
	root := a.root()
	completions{a}.complete(root)
	return root
}

// TestCompletionTables: the commands and flags of the tables are there.
func TestCompletionTables(t *testing.T) {
	root := completedRoot()
	for _, path := range [][]string{{"explain"}, {"schema"}, {"facts"}, {"history"}, {"logs"}, {"verify"}, {"wait"}, {"decommission"}, {"rollout", "start"}, {"rollout", "undo"}, {"rollout", "settle"}, {"services"}, {"set-status"}, {"extension", "remove"}, {"events"}, {"events", "show"}, {"reactions", "show"}, {"reactions", "pause"}, {"reactions", "resume"}} {
		if c, rest, err := root.Find(path); err != nil || len(rest) > 0 || c.ValidArgsFunction == nil {
			t.Errorf("%q completes no argument: %v", path, err)
		}
	}
	for flag, path := range map[string][]string{"host": {"enable"}, "role": {"rollout", "resume"}, "version": {"enable"}, "state": {"nodes"}, "job": {"forget"}, "node": {"eval"}, "target": {"run"}, "output": {"services"}} {
		c, _, err := root.Find(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := c.GetFlagCompletionFunc(flag); !ok {
			t.Errorf("%q --%s completes nothing", path, flag)
		}
	}
}

// TestFilesWhereMeant: a shell offers the files here only where a file or a directory is meant.
func TestFilesWhereMeant(t *testing.T) {
	files := map[string]bool{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		path := strings.TrimPrefix(c.CommandPath(), "pullet")
		files[path] = c.ValidArgsFunction == nil
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, named := c.GetFlagCompletionFunc(f.Name)
			files[path+" --"+f.Name] = !named && f.NoOptDefVal == ""
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(completedRoot())
	maps.DeleteFunc(files, func(_ string, offered bool) bool { return !offered })
	want := []string{" --config", " --root", " eval", " eval --event", " eval --facts", " event emit --data-file", " extension publish", " graph", " graph --facts", " init", " plan", " render", " render --facts", " render --host-vars",
		" rollout start --instructions", " run", " schema --write", " validate", " validate --facts", " validate --host-vars"}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Errorf("files are offered for %q,\nwant %q", got, want)
	}
}
