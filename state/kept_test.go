package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// saved saves reports that are filled up to about a size each.
func saved(t *testing.T, dir string, limits ReportLimits, size int, runs ...string) {
	t.Helper()
	for _, run := range runs {
		_, err := SaveReport(dir, run, map[string]string{"run": run, "fill": strings.Repeat("x", size)}, limits)
		must(t, err)
	}
}

// runsOf are the runs whose reports are kept, the oldest first.
func runsOf(t *testing.T, dir string) []string {
	t.Helper()
	all, err := Reports(dir)
	must(t, err)
	var out []string
	for _, f := range all {
		out = append(out, f.Run)
	}
	return out
}

func TestReportsRotate(t *testing.T) {
	t.Parallel()
	all := []string{"a", "b", "c", "d", "e"}
	for _, c := range []struct {
		name   string
		limits ReportLimits
		size   int
		want   []string
	}{
		{"by number", ReportLimits{3, 1 << 20}, 10, []string{"c", "d", "e"}},
		{"by size", ReportLimits{50, 2500}, 1000, []string{"d", "e"}},
		{"within the limits", ReportLimits{5, 1 << 20}, 10, all},
		{"each one is too large", ReportLimits{50, 100}, 1000, []string{"e"}},
		{"one", ReportLimits{1, 1 << 20}, 10, []string{"e"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			saved(t, dir, c.limits, c.size, all...)
			if got := runsOf(t, dir); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
			if files, err := os.ReadDir(filepath.Join(dir, "reports")); err != nil || len(files) != len(c.want) {
				t.Errorf("%d files, %v", len(files), err)
			}
		})
	}
}

// TestReportsAndTheClock: the run whose clock went back a day is the newest one nevertheless, and stays.
func TestReportsAndTheClock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runs := []string{"20260102T100000Z-aaaaaa", "20260102T100500Z-bbbbbb", "20260101T100501Z-cccccc", "20260101T101000Z-dddddd"}
	saved(t, dir, ReportLimits{2, 1 << 20}, 10, runs...)
	if got := runsOf(t, dir); !slices.Equal(got, runs[2:]) {
		t.Errorf("%v, want %v", got, runs[2:])
	}
}

func TestLoadReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	limits := ReportLimits{50, 1 << 20}
	for i, run := range []string{"x", "y", "y"} {
		_, err := SaveReport(dir, run, map[string]int{"n": i + 1}, limits)
		must(t, err)
	}
	// Neither a file that is being written nor one of somebody else is a report.
	must(t, os.WriteFile(filepath.Join(dir, "reports", ".00000009-z.json123"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "reports", "notes.json"), nil, 0o600))
	for id, want := range map[string]int{"x": 1, "y": 3, "1": 1, "2": 2, "3": 3} {
		var got map[string]int
		if err := LoadReport(dir, id, &got); err != nil || got["n"] != want {
			t.Errorf("%s: %v %v, want %d", id, got, err, want)
		}
	}
	if runs, err := Runs(dir); err != nil || !slices.Equal(runs, []string{"y", "x"}) {
		t.Errorf("%q %v", runs, err)
	}
	var got any
	if err := LoadReport(dir, "../node", &got); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `no report of a run "../node" on this node: 3 are kept in `) {
		t.Errorf("%v", err)
	}
	if all, err := Reports(t.TempDir()); err != nil || len(all) != 0 {
		t.Errorf("a new node: %v %v", all, err)
	}
}

// TestReportsToSend: the mark of a report that is to be sent goes with it.
func TestReportsToSend(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	limits := ReportLimits{2, 1 << 20}
	for i := range 3 {
		f, err := SaveReport(dir, fmt.Sprint("r", i), i, limits)
		must(t, err, f.Send())
	}
	all, err := Reports(dir)
	must(t, err)
	if len(all) != 2 || !all[0].ToSend || !all[1].ToSend {
		t.Fatalf("%+v", all)
	}
	must(t, all[0].Sent(), all[0].Sent())
	files, err := os.ReadDir(filepath.Join(dir, "reports"))
	must(t, err)
	if all, err = Reports(dir); err != nil || all[0].ToSend || !all[1].ToSend || len(files) != 3 {
		t.Errorf("%+v %v, %d files", all, err, len(files))
	}
}

// TestReportsThatStay: where an old report cannot be removed, no further one is kept, and the error names the file.
func TestReportsThatStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	limits := ReportLimits{1, 1 << 20}
	saved(t, dir, limits, 10, "a")
	all, err := Reports(dir)
	must(t, err, os.Remove(all[0].base+".json"), os.MkdirAll(filepath.Join(all[0].base+".json", "x"), 0o700))
	if _, err := SaveReport(dir, "b", 1, limits); err == nil || !strings.Contains(err.Error(), all[0].base+".json") {
		t.Errorf("%v", err)
	}
	if got := runsOf(t, dir); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%v", got)
	}
}
