package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/reference"
	"github.com/pullet/pullet/render"
)

func explainCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "explain [NAME]", GroupID: "repo", Args: upToOne,
		Short: "Explain an action, a field, a fact or a template function",
		Long: "Explain shows what NAME means: its type, default, values and, for an action, an example. Without\n" +
			"NAME it lists what there is. In a state repository it knows the repository's extensions, too.",
		Example: "  pullet explain file.managed\n  pullet explain file.managed.mode\n" +
			"  pullet explain job.steps.conditions.when.retry\n" +
			"  pullet explain pullet.rollout.rollingRules\n  pullet explain config.agent.splay\n  pullet explain server.os\n" +
			"  pullet explain toYaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			topics, err := allTopics(cmd.Context())
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if topics, err = reference.Find(topics, args[0]); err != nil {
					return err
				}
			}
			if done, err := a.structured(topics); done || err != nil {
				return err
			}
			if len(args) == 0 {
				listTopics(a.out, topics)
				return nil
			}
			for i, t := range topics {
				if i > 0 {
					fmt.Fprintln(a.out)
				}
				explain(a.out, t)
			}
			return nil
		},
	}
}

// allTopics are those of pullet, and the extensions of the repository in the current directory.
func allTopics(ctx context.Context) ([]reference.Topic, error) {
	topics, err := reference.Topics()
	for _, e := range extensionsHere(ctx) {
		topics = append(topics, reference.OfExtension(e))
	}
	return topics, err
}

// extensionsHere are those of the repository in the current directory, if it is one. What is wrong with them is for
// validate to say.
func extensionsHere(ctx context.Context) []*render.Extension {
	repo, _, err := openDir(ctx, nil)
	if err != nil {
		return nil
	}
	list, _ := repo.Extensions()
	return list
}

// topicNames are the topics at the level of what was typed.
func topicNames(ctx context.Context, _ []string, typed string) ([]string, error) {
	topics, err := allTopics(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	var walk func([]reference.Topic)
	walk = func(list []reference.Topic) {
		for _, t := range list {
			out = append(out, t.Name)
			if strings.HasPrefix(typed, t.Name+".") {
				walk(t.Fields)
			}
		}
	}
	walk(topics)
	return out, nil
}

// listTopics lists topics by their groups. Of functions that are not ours the names are enough.
func listTopics(w io.Writer, topics []reference.Topic) {
	group, names := "", []string(nil)
	t := columns(w)
	flush := func() {
		if len(names) > 0 {
			fmt.Fprintln(t, hang("  ", strings.Join(names, " "), proseWidth(w)))
		}
		names = nil
	}
	for _, topic := range topics {
		if topic.Group != group {
			flush()
			t.Flush()
			fmt.Fprintf(w, "%s%s\n", map[bool]string{false: "\n"}[group == ""], strings.ToUpper(topic.Group))
			group = topic.Group
		}
		if strings.Contains(group, "function of") {
			names = append(names, topic.Name)
			continue
		}
		fmt.Fprintf(t, "  %s\t%s\n", topic.Name, firstSentence(topic))
	}
	flush()
	t.Flush()
	fmt.Fprintln(w, "\nDetails: pullet explain NAME, or pullet explain NAME.FIELD")
}

// firstSentence is the beginning of what there is to say.
func firstSentence(t reference.Topic) string {
	if t.Summary != "" {
		return t.Summary
	}
	text, _, _ := strings.Cut(inOneLine(t.Text), ". ")
	return text
}

// inOneLine is a text as a cell of a table.
func inOneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// explain shows one topic.
func explain(w io.Writer, t reference.Topic) {
	fmt.Fprintf(w, "%s - %s\n", t.Name, t.Group)
	if t.Summary != "" {
		fmt.Fprintln(w, hang("  ", t.Summary, proseWidth(w)))
	}
	facts := [][2]string{{"type", t.Type}, {"default", t.Default}, {"values", strings.Join(t.Values, ", ")}}
	if t.Required {
		facts = append(facts, [2]string{"required", "yes"})
	}
	for _, f := range facts {
		if f[1] != "" {
			fmt.Fprintln(w, hang(fmt.Sprintf("  %-9s ", f[0]+":"), f[1], proseWidth(w)))
		}
	}
	if t.Text != "" {
		fmt.Fprintf(w, "\n%s\n", paragraphs(t.Text, proseWidth(w)))
	}
	if len(t.Fields) > 0 {
		fmt.Fprintln(w)
		listFields(w, t)
	}
	if t.Example != "" {
		fmt.Fprintf(w, "\nEXAMPLE\n  %s\n", strings.ReplaceAll(t.Example, "\n", "\n  "))
	}
}

// listFields is the table of what is in a topic.
func listFields(w io.Writer, t reference.Topic) {
	c := columns(w)
	defer c.Flush()
	if t.Group == "module" {
		fmt.Fprintln(c, "ACTION\tMEANING")
		for _, f := range t.Fields {
			fmt.Fprintf(c, "%s\t%s\n", f.Name, firstSentence(f))
		}
		return
	}
	title := "FIELD"
	if strings.HasPrefix(t.Group, "action") {
		title = "PARAMETER"
	}
	fmt.Fprintf(c, "%s\tTYPE\tDEFAULT\tMEANING\n", title)
	for _, f := range t.Fields {
		value := orDash(f.Default)
		if f.Required {
			value = "required"
		}
		fmt.Fprintf(
			c,
			"%s\t%s\t%s\t%s\n",
			strings.TrimPrefix(f.Name, t.Name+"."),
			orDash(f.Type),
			inOneLine(value),
			inOneLine(cmp.Or(f.Text, f.Summary)),
		)
	}
}
