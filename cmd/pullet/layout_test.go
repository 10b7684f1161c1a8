package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

func TestFold(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 10, ""},
		{"one two three", 20, "one two three"},
		{"one two three", 7, "one two\nthree"},
		{"one  \n two", 20, "one two"},
		{"averylongword is broken", 6, "averyl\nongwor\nd is\nbroken"},
		{"世界 世界", 5, "世界\n世界"},    // two columns each
		{"äöü äöü", 7, "äöü äöü"}, // columns, not bytes
	} {
		if got := strings.Join(fold(c.text, c.most), "\n"); got != c.want {
			t.Errorf("%q in %d columns is %q, not %q", c.text, c.most, got, c.want)
		}
	}
}

func TestParagraphs(t *testing.T) {
	for text, want := range map[string]string{
		"one two\nthree four five\n\nsix":              "one two three\nfour five\n\nsix",
		"LIST\n  0   all is well here\n  64  nothing":  "LIST\n  0   all is\n      well here\n  64  nothing",
		"  pullet status\n  pullet rollout status web": "  pullet status\n  pullet\n  rollout\n  status web",
	} {
		if got := paragraphs(text, 15); got != want {
			t.Errorf("%q is\n%s\nnot\n%s", text, got, want)
		}
	}
}

// TestTable: elsewhere a row is a line, on a terminal the last cell is folded beside the others or, where that leaves
// no room, below them.
func TestTable(t *testing.T) {
	rows := "NAME\tMEANING\nmode\tof the file that a step has in octal digits\n"
	for columns, want := range map[int]string{
		0:  "NAME  MEANING\nmode  of the file that a step has in octal digits\n",
		80: "NAME  MEANING\nmode  of the file that a step has in octal digits\n",
		40: "NAME  MEANING\nmode  of the file that a step has in\n      octal digits\n",
		30: "NAME  MEANING\nmode\n    of the file that a step\n    has in octal digits\n",
	} {
		if got := tabled(t, columns, rows); got != want {
			t.Errorf("in %d columns:\n%snot\n%s", columns, got, want)
		}
	}
}

// tabled is a table on a terminal with so many columns; 0: elsewhere.
func tabled(t *testing.T, most int, rows string) string {
	t.Helper()
	p := &page{look: look{most: most}}
	tab := columns(p)
	if _, err := io.WriteString(tab, rows); err != nil {
		t.Fatal(err)
	}
	if err := tab.Flush(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, l := range p.lines {
		out.WriteString(l.text + "\n")
	}
	return out.String()
}

// TestWideTable: a row whose cells alone are wider than the terminal is cut between two of them.
func TestWideTable(t *testing.T) {
	rows := "RUN\tSTARTED\tRESULT\tWHY\nr1\tyesterday\tok\tnone of all\nr2\t\tfailed\t-\n"
	for columns, want := range map[int]string{
		0:  "RUN  STARTED    RESULT  WHY\nr1   yesterday  ok      none of all\nr2              failed  -\n",
		22: "RUN  STARTED    RESULT\n    WHY\nr1   yesterday  ok\n    none of all\nr2              failed\n    -\n",
		18: "RUN  STARTED\n    RESULT  WHY\nr1   yesterday\n    ok\n    none of all\nr2\n    failed  -\n",
	} {
		if got := tabled(t, columns, rows); got != want {
			t.Errorf("in %d columns:\n%snot\n%s", columns, got, want)
		}
	}
}

// TestHelpFits: the help of every command fits a terminal of 80 columns.
func TestHelpFits(t *testing.T) {
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		var out bytes.Buffer
		if code := run(context.Background(), append(path, "--help"), &out, &out, nil); code != 0 {
			t.Fatalf("%s --help: exit %d\n%s", path, code, &out)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > usualWidth {
				t.Errorf("%s --help: a line has %d columns: %s", c.CommandPath(), n, line)
			}
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check((&app{out: io.Discard, err: io.Discard}).root())
}

// TestReadmeFits: README.md fits a terminal of 80 columns.
func TestReadmeFits(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(readme)) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > usualWidth {
			t.Errorf("README.md: a line has %d columns: %s", n, line)
		}
	}
}

// TestCommandsPage checks that docs/commands.md has each command that a user can type.
func TestCommandsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(string(page), "\n")
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
				continue
			}
			if !sub.HasSubCommands() && !slices.ContainsFunc(rows, func(row string) bool {
				cell, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
				whole := regexp.MustCompile("`" + regexp.QuoteMeta(sub.CommandPath()) + "[ `]").MatchString(cell)
				return whole || strings.HasPrefix(cell, "`"+c.CommandPath()+" ") && strings.Contains(cell, "`"+sub.Name()+"`")
			}) {
				t.Errorf("docs/commands.md has no row for %s", sub.CommandPath())
			}
			check(sub)
		}
	}
	check((&app{out: io.Discard, err: io.Discard}).root())
}
