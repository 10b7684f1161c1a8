package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// manualDir is where scripts/package wants the man pages and completions. They are made by a test, because the
// generator would be 0.6 MB of the program.
var manualDir = flag.String("manual", "", "write the man pages and completions into this directory")

// TestManual: every command has a man page with what its help says, and the configuration has one.
func TestManual(t *testing.T) {
	dir := *manualDir
	if dir == "" {
		dir = t.TempDir()
	}
	writeManual(t, dir)
	pages, lists := 0, 0
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		if !c.IsAvailableCommand() && c.HasParent() {
			return
		}
		pages++
		page := readPage(t, filepath.Join(dir, "man1", strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"))
		if strings.Contains(c.Long, "\nEXIT STATUS\n") {
			lists++
			if !strings.Contains(page, "\n.SH EXIT STATUS\n") {
				t.Errorf("the page of %s does not have the exit status of its help", c.CommandPath())
			}
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(page, `\fB--`+f.Name+`\fP`) {
				t.Errorf("the page of %s does not have --%s", c.CommandPath(), f.Name)
			}
		})
		for _, sub := range c.Commands() {
			each(sub)
		}
	}
	each((&app{out: &bytes.Buffer{}, err: &bytes.Buffer{}}).root())
	if pages < 60 || lists < 8 {
		t.Errorf("%d pages, %d with an exit status", pages, lists)
	}
	if page := readPage(t, filepath.Join(dir, "man5/pullet.yaml.5")); !strings.Contains(page, "\n.SH Signed commits\n") {
		t.Errorf("pullet.yaml(5) is not docs/node.md: %.200q", page)
	}
	for shell, has := range map[string]string{"bash": "complete -o default", "zsh": "#compdef pullet", "fish": "complete -c pullet"} {
		if script := readPage(t, filepath.Join(dir, shell)); !strings.Contains(script, has) {
			t.Errorf("no completion for %s: %.200q", shell, script)
		}
	}
}

func readPage(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// writeManual writes what a package has beside the program, from the command tree and the page of the configuration.
// The date is that of SOURCE_DATE_EPOCH, or the first of all.
func writeManual(t *testing.T, dir string) {
	t.Helper()
	for _, sub := range []string{"man1", "man5"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	seconds, err := strconv.ParseInt("0"+os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	date := time.Unix(seconds, 0).UTC()
	root := (&app{out: &bytes.Buffer{}, err: &bytes.Buffer{}}).root()
	root.DisableAutoGenTag = true
	asMarkdown(root)
	header := &doc.GenManHeader{Section: "1", Date: &date, Source: "pullet", Manual: "pullet"}
	if err := doc.GenManTree(root, header, filepath.Join(dir, "man1")); err != nil {
		t.Fatal(err)
	}
	put := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	node, err := os.ReadFile("../../docs/node.md")
	if err != nil {
		t.Fatal(err)
	}
	put("man5/pullet.yaml.5", configurationPage(string(node), date))
	for shell, write := range map[string]func(io.Writer) error{
		"bash": func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":  root.GenZshCompletion,
		"fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		put(shell, out.Bytes())
	}
}

// configurationPage makes pullet.yaml(5) of docs/node.md. Its links are of no use in a terminal: their texts stay.
func configurationPage(text string, date time.Time) []byte {
	text = regexp.MustCompile(`\[([^\]]+)\]\([^)]+\)`).ReplaceAllString(text, "$1")
	_, text, _ = strings.Cut(text, "\n")
	text = regexp.MustCompile(`(?m)^\|.*\n\| ---.*\n(\|.*\n)+`).ReplaceAllStringFunc(text, listOfTable)
	return md2man.Render([]byte(`% "PULLET.YAML" "5" "` + date.Format("Jan 2006") + `" "pullet" "pullet"
# NAME
pullet.yaml \- the configuration of a host

# DESCRIPTION
` + text))
}

// listOfTable makes a list of terms of a table, which a terminal may be too narrow for. With more than two columns each
// cell has the name of its own before it.
func listOfTable(table string) string {
	cells := func(row string) []string { return strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|") }
	rows := slices.Collect(strings.Lines(table))
	heads := cells(rows[0])
	var list strings.Builder
	for _, row := range rows[2:] {
		c := cells(row)
		list.WriteString("**" + strings.Trim(c[0], " `") + "**\n")
		for i, cell := range c[1:] {
			cell = strings.TrimSpace(cell)
			if cell != "" && len(heads) > 2 {
				cell = strings.TrimSpace(heads[i+1]) + ": " + cell
			}
			if cell != "" {
				list.WriteString(": " + cell + "\n")
			}
		}
		list.WriteString("\n")
	}
	return list.String()
}

// asMarkdown makes Markdown of the help texts, which the generator takes them for.
func asMarkdown(c *cobra.Command) {
	c.Short = plainly(c.Short)
	c.Long = helpMarkdown(c.Long)
	for _, flags := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) { f.Usage = plainly(f.Usage) })
	}
	for _, sub := range c.Commands() {
		asMarkdown(sub)
	}
}

// plainly has characters that mean something in Markdown stand for themselves.
func plainly(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, "`", "\\`", "[", `\[`).Replace(text)
}

// helpMarkdown makes headings of lines in capitals, and blocks of indented lines: their columns stay.
func helpMarkdown(help string) string {
	var out strings.Builder
	inBlock := false
	for line := range strings.SplitSeq(help, "\n") {
		block := strings.HasPrefix(line, "  ") || inBlock && strings.HasPrefix(line, "\t")
		if block != inBlock {
			out.WriteString("\n")
		}
		inBlock = block
		switch {
		case block:
			out.WriteString("    " + line)
		case regexp.MustCompile(`^[A-Z][A-Z ]+$`).MatchString(line):
			out.WriteString("\n# " + line + "\n")
		default:
			out.WriteString(plainly(line))
		}
		out.WriteString("\n")
	}
	return out.String()
}
