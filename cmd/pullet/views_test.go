package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pullet/pullet/internal/safetext"
)

// shown is one command line over a stored fleet, and the code that prints its result.
type shown struct {
	says    string // what the reader is to see in the golden file
	command string // without "pullet"; the flags --color, --times and -o are read
	columns int    // of the terminal; 0: there is none
	print   func(a *app) error
}

// TestViews holds the printed views of stored fleets against testdata/views. -update writes these files.
// The clock stands still, at midnight in UTC.
func TestViews(t *testing.T) {
	for family, views := range map[string]func() []shown{
		"status": statusViews, "nodes": nodesViews, "failures": failuresViews, "services": servicesViews,
		"locks": locksViews, "events": eventsViews, "reactions": reactionsViews,
	} {
		t.Run(family, func(t *testing.T) {
			var got bytes.Buffer
			synctest.Test(t, func(*testing.T) {
				for _, v := range views() {
					v.write(&got)
				}
			})
			path := filepath.Join("testdata", "views", family+".txt")
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if line := firstDifference(got.String(), string(want)); line != "" {
				t.Errorf("%s differs (go test ./cmd/pullet -run TestViews -update writes it):\n%s", path, line)
			}
		})
	}
}

// write writes the command line and its output as a terminal session shows them.
func (v shown) write(to *bytes.Buffer) {
	if v.says != "" {
		fmt.Fprintf(to, "# %s\n", v.says)
	}
	fmt.Fprintf(to, "$ pullet %s", v.command)
	if v.columns > 0 {
		fmt.Fprintf(to, "    # %d columns", v.columns)
	}
	out, errs := &page{look: look{most: v.columns}}, &page{}
	a := &app{out: out, err: errs, output: "table"}
	words := strings.Fields(v.command)
	for i, word := range words {
		switch word {
		case "-o":
			a.output = words[i+1]
		case "--times":
			out.look.absolute = words[i+1] == "absolute"
		}
	}
	if a.output == "wide" {
		out.look = look{absolute: true}
	}
	err := v.print(a)
	fmt.Fprintln(to)
	for _, l := range out.lines {
		fmt.Fprintln(to, strings.TrimRight(safetext.Text(l.text), " "))
	}
	for _, l := range errs.lines {
		fmt.Fprintf(to, "stderr: %s\n", l.text)
	}
	if ended, ok := errors.AsType[*exit](err); ok {
		fmt.Fprintf(to, "exit code %d\n", ended.code)
	} else if err != nil {
		fmt.Fprintf(to, "error: %v\n", err)
	}
	fmt.Fprintln(to)
}

// firstDifference returns the first line that differs between two texts, as both have it.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if one, other := cellOf(g, i), cellOf(w, i); one != other || (i < len(g)) != (i < len(w)) {
			return fmt.Sprintf("line %d\ngot:  %s\nwant: %s", i+1, cmp.Or(one, "(none)"), cmp.Or(other, "(none)"))
		}
	}
	return ""
}

// TestViewsFit holds the views for a terminal to its width, and shows that others are wider.
func TestViewsFit(t *testing.T) {
	checked, wider := 0, 0
	synctest.Test(t, func(t *testing.T) {
		for _, v := range statusViews() {
			var out bytes.Buffer
			v.write(&out)
			_, text, _ := strings.Cut(out.String(), "\n$ ")
			_, text, _ = strings.Cut(text, "\n")
			for line := range strings.Lines(text) {
				n := columnsOf(strings.TrimSuffix(line, "\n"))
				if v.columns == 0 && n > 80 {
					wider++
				} else if checked++; v.columns > 0 && n > v.columns {
					t.Errorf("%s: %d of %d columns: %s", v.command, n, v.columns, line)
				}
			}
		}
	})
	if checked == 0 || wider == 0 {
		t.Errorf("%d lines fit and %d are longer: there should be both", checked, wider)
	}
}
