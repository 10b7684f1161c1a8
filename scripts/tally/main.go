// Tally reads what `go test -json` prints and reports it for a person: a line for each package, the whole output of
// each test that failed, why tests were skipped, which tests are over their budget, and, last, how many passed, failed
// and were skipped. It exits with 1 if a test or a build failed, or if no test ran.
//
//	go test -json ./... | go run ./scripts/tally [-budget 2s -script-budget 5s]
//
// With budgets it runs each test that took longer again, alone, because tests that run side by side slow each other
// down. A test that is over its budget alone too is a failure. On a busy machine times say nothing, so there it prints
// the tests and fails none.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	var b budgets
	flag.DurationVar(&b.test, "budget", 0, "most time that a test may take; 0 checks no test")
	flag.DurationVar(&b.script, "script-budget", 0, "most time that a script may take")
	sum := flag.String("sum", "", "file with the counts of earlier runs, to which this one's are added")
	again := flag.String("failed", "", "file to which the end of what each failed test printed is added")
	flag.Parse()
	t := newTally(os.Stdout)
	if err := t.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
	t.slowest()
	t.skips()
	slow := b.check(t, alone, contention)
	passed := t.summary(slow)
	if err := errors.Join(t.addTo(*sum), t.addFailed(*again)); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
	if !passed {
		os.Exit(1)
	}
}

// event is a line of `go test -json`; `go doc test2json` describes it.
type event struct {
	Action, Package, ImportPath, Test, Output string
	FailedBuild                               string
	Elapsed                                   float64 // seconds
}

// result is a test that ended.
type result struct {
	pkg, name string
	took      time.Duration
}

// isScript reports whether a test is a script of the command line or of the lab, which has the larger budget.
func (r result) isScript() bool {
	return strings.HasPrefix(r.name, "TestScripts/") || strings.HasPrefix(r.name, "TestLab/")
}

// tally is what ended so far.
type tally struct {
	out                     io.Writer
	passed, failed, skipped int
	broken                  bool                   // a build or a whole package failed
	output                  map[[2]string][]string // of tests that have not ended, by package and test
	builds                  map[string][]string    // what the compiler printed, by import path
	why                     map[string]int         // skipped tests by reason
	ended                   []result               // tests that passed and have no subtests
	failures                []string               // in short
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, output: map[[2]string][]string{}, builds: map[string][]string{}, why: map[string]int{}}
}

// read takes the events of a whole `go test -json`. A line that is not JSON is printed as it is: go prints errors of
// the command line so.
func (t *tally) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				t.take(e)
			} else {
				_, _ = t.out.Write(line)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *tally) take(e event) {
	key := [2]string{e.Package, e.Test}
	switch {
	case e.Action == "build-output":
		t.builds[e.ImportPath] = append(t.builds[e.ImportPath], e.Output)
	case e.Action == "output":
		t.output[key] = append(t.output[key], e.Output)
	case e.Test == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
		t.endPackage(e)
	case e.Action == "pass":
		t.passed++
		t.ended = append(t.ended, result{e.Package, e.Test, time.Duration(e.Elapsed * float64(time.Second))})
		delete(t.output, key)
	case e.Action == "skip":
		t.skipped++
		t.why[reason(t.output[key])]++
		delete(t.output, key)
	case e.Action == "fail":
		t.failed++
		t.fails(fmt.Sprintf("FAIL %s %s (%.1fs)\n", e.Package, e.Test, e.Elapsed), t.output[key])
		delete(t.output, key)
	}
}

// endPackage prints the line of a package, and why it failed where that is not a test's output: a build, a panic, a
// timeout.
func (t *tally) endPackage(e event) {
	key := [2]string{e.Package, ""}
	switch e.Action {
	case "pass":
		fmt.Fprintf(t.out, "ok   %s %.1fs\n", e.Package, e.Elapsed)
	case "fail":
		t.broken = true
		t.fails(fmt.Sprintf("FAIL %s %.1fs\n", e.Package, e.Elapsed), t.builds[e.FailedBuild])
		t.unended(e.Package)
		fmt.Fprint(t.out, indented(t.output[key]))
	}
	delete(t.output, key)
}

// unended prints the tests of a package that did not end, and their output: the one that panicked, ran out of time or
// ended the process is among them. Tests that only waited for their turn are left out.
func (t *tally) unended(pkg string) {
	for key, lines := range t.output {
		if key[0] != pkg || key[1] == "" {
			continue
		}
		if !strings.HasPrefix(lines[len(lines)-1], "=== PAUSE") {
			t.fails(fmt.Sprintf("FAIL %s %s did not end\n", pkg, key[1]), lines)
		}
		delete(t.output, key)
	}
}

// said is how many lines of what a failed test printed are repeated at the end.
const said = 12

// fails prints a failure whole, and keeps it for the end, where it is not lost among what other tests print: the lines
// that say where a test failed, and the last ones.
func (t *tally) fails(headline string, lines []string) {
	fmt.Fprint(t.out, headline, indented(lines))
	var first, last []string
	for i, line := range lines {
		switch {
		case i >= len(lines)-said:
			last = append(last, line)
		case len(first) < said && strings.Contains(line, "_test.go:"):
			first = append(first, line)
		}
	}
	t.failures = append(t.failures, headline+indented(append(first, last...)))
}

// addFailed adds the failures to a file, which need not exist. An empty name is no file.
func (t *tally) addFailed(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(t.failures, ""))
	return errors.Join(err, f.Close())
}

// indented puts four spaces before each line.
func indented(lines []string) string {
	text := strings.TrimSuffix(strings.Join(lines, ""), "\n")
	if text == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(text, "\n", "\n    ") + "\n"
}

// reason returns what a skipped test says, without its place: t.Skip prints "    file_test.go:17: needs root".
func reason(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if _, said, found := strings.Cut(strings.TrimSpace(line), "_test.go:"); found {
			if _, said, found = strings.Cut(said, ": "); found {
				return said
			}
		}
	}
	return "no reason given"
}

// slowest prints the ten tests that took longest.
func (t *tally) slowest() {
	slow := slowest(t.ended)
	for _, r := range slow[:min(10, len(slow))] {
		fmt.Fprintf(t.out, "slow %7.1fs: %s %s\n", r.took.Seconds(), r.pkg, r.name)
	}
}

// skips prints why tests were skipped, the most frequent reason first.
func (t *tally) skips() {
	whys := make([]string, 0, len(t.why))
	for why := range t.why {
		whys = append(whys, why)
	}
	slices.SortFunc(whys, func(a, b string) int {
		if t.why[a] != t.why[b] {
			return t.why[b] - t.why[a]
		}
		return strings.Compare(a, b)
	})
	for _, why := range whys {
		fmt.Fprintf(t.out, "skipped %3d: %s\n", t.why[why], why)
	}
}

// summary prints the counts and reports whether everything passed. Tests that are over their budget count as failed.
func (t *tally) summary(slow int) bool {
	if t.broken && t.failed == 0 {
		t.failed++ // a package that did not build, or whose process ended
	}
	t.failed, t.passed = t.failed+slow, max(0, t.passed-slow)
	fmt.Fprintf(t.out, counts, t.passed, t.failed, t.skipped)
	return t.failed == 0 && t.passed > 0
}

const counts = "%d passed, %d failed, %d skipped\n"

// addTo adds the counts to those in a file, which need not exist: one of several runs at a time. An empty name is no
// file.
func (t *tally) addTo(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // what is written is seen without it
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var passed, failed, skipped int
	if _, err := fmt.Fscanf(f, counts, &passed, &failed, &skipped); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", file, err)
	}
	line := fmt.Appendf(nil, counts, t.passed+passed, t.failed+failed, t.skipped+skipped) // counts grow: so does the line
	_, err = f.WriteAt(line, 0)
	return err
}

// alone runs one test again, and returns how long it took. Both are with -short, as the tests of the first tier are.
func alone(r result) (time.Duration, error) {
	parts := strings.Split(r.name, "/")
	for i, part := range parts {
		parts[i] = "^" + quote(part) + "$"
	}
	cmd := exec.Command("go", "test", "-json", "-short", "-vet=off", "-count=1", "-run", strings.Join(parts, "/"), r.pkg)
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", r.pkg, r.name, err)
	}
	again := newTally(io.Discard)
	if err := again.read(strings.NewReader(string(out))); err != nil {
		return 0, err
	}
	for _, e := range again.ended {
		if e.name == r.name {
			return e.took, nil
		}
	}
	return 0, fmt.Errorf("%s %s did not run alone", r.pkg, r.name)
}
