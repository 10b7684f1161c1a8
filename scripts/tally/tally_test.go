package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// lines of `go test -json`, shortened.
const events = `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":3}
{"Action":"pass","Package":"p","Test":"TestScripts/pull","Elapsed":3}
{"Action":"pass","Package":"p","Test":"TestScripts","Elapsed":9}
{"Action":"output","Package":"p","Test":"TestRoot","Output":"    a_test.go:7: needs root: mounts a disk\n"}
{"Action":"skip","Package":"p","Test":"TestRoot","Elapsed":0}
{"Action":"pass","Package":"p","Elapsed":12}
`

const failing = events + `{"Action":"output","Package":"q","Test":"TestB","Output":"    b_test.go:9: got 1, want 2\n"}
{"Action":"fail","Package":"q","Test":"TestB","Elapsed":0.1}
{"Action":"output","Package":"q","Output":"FAIL\n"}
{"Action":"fail","Package":"q","Elapsed":0.2}
`

func read(t *testing.T, text string) (*tally, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	tt := newTally(&out)
	if err := tt.read(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return tt, &out
}

// TestTally: what failed is printed whole, what passed in one line, and why something was skipped is said.
func TestTally(t *testing.T) {
	for _, c := range []struct {
		name, text string
		passes     bool
		want       []string
	}{
		{"all pass", events, true, []string{"ok   p 12.0s\n", "skipped   1: needs root: mounts a disk\n", "3 passed, 0 failed, 1 skipped\n"}},
		{"one fails", failing, false, []string{"FAIL q TestB (0.1s)\n        b_test.go:9: got 1, want 2\n", "3 passed, 1 failed, 1 skipped\n"}},
		{"nothing ran", "", false, []string{"0 passed, 0 failed, 0 skipped\n"}},
		{"a build fails", `{"ImportPath":"q","Action":"build-output","Output":"q.go:1:1: undefined: x\n"}
{"Action":"fail","Package":"q","Elapsed":0,"FailedBuild":"q"}
`, false, []string{"q.go:1:1: undefined: x", "0 passed, 1 failed, 0 skipped\n"}},
		{"a process ends in a test", events + `{"Action":"output","Package":"q","Test":"TestC","Output":"fatal error\n"}
{"Action":"fail","Package":"q","Elapsed":0.2}
`, false, []string{"FAIL q TestC did not end\n    fatal error\n", "3 passed, 1 failed, 1 skipped\n"}},
		{"a process ends in a test and prints nothing", events + `{"Action":"output","Package":"q","Test":"TestC","Output":"=== RUN   TestC\n"}
{"Action":"output","Package":"q","Test":"TestD","Output":"=== RUN   TestD\n"}
{"Action":"output","Package":"q","Test":"TestD","Output":"=== PAUSE TestD\n"}
{"Action":"fail","Package":"q","Elapsed":0.2}
`, false, []string{"FAIL q 0.2s\nFAIL q TestC did not end\n    === RUN   TestC\n", "3 passed, 1 failed, 1 skipped\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tt, out := read(t, c.text)
			tt.skips()
			if passes := tt.summary(0); passes != c.passes {
				t.Errorf("passes %v, want %v", passes, c.passes)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is missing in:\n%s", want, out)
				}
			}
		})
	}
}

// TestFailures: what failed is repeated in short at the end: where, and what was printed last.
func TestFailures(t *testing.T) {
	lines := []string{"    c_test.go:3: early\n"}
	for range 40 {
		lines = append(lines, "noise\n")
	}
	tt, _ := read(t, failing)
	tt.fails("FAIL q TestC (1.0s)\n", append(lines, "the end\n"))
	file := filepath.Join(t.TempDir(), "failures")
	for range 2 {
		if err := tt.addFailed(file); err != nil {
			t.Fatal(err)
		}
	}
	once := "FAIL q TestB (0.1s)\n        b_test.go:9: got 1, want 2\nFAIL q 0.2s\n" +
		"FAIL q TestC (1.0s)\n        c_test.go:3: early\n" +
		strings.Repeat("    noise\n", said-1) + "    the end\n"
	if got, err := os.ReadFile(file); err != nil || string(got) != once+once {
		t.Errorf("got %s, %v, want twice:\n%s", got, err, once)
	}
}

// TestBudget: only a test that is slow alone too is over its budget, scripts have a larger one, and a busy machine
// says nothing.
func TestBudget(t *testing.T) {
	b := budgets{test: 2 * time.Second, script: 5 * time.Second}
	for _, c := range []struct {
		name  string
		took  time.Duration
		err   error
		busy  float64
		again string
		want  int
	}{
		{"slow beside others", time.Second, nil, 1, "TestA", 0},
		{"slow alone", 3 * time.Second, nil, 1, "TestA", 1},
		{"fails alone", 0, errors.New("exit 1"), 1, "TestA", 1},
		{"busy machine", 3 * time.Second, nil, 4, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			tt, _ := read(t, events)
			var again []string
			run := func(r result) (time.Duration, error) {
				again = append(again, r.name)
				return c.took, c.err
			}
			if got := b.check(tt, run, func() float64 { return c.busy }); got != c.want || strings.Join(again, " ") != c.again {
				t.Errorf("%d over their budget, want %d; ran again: %v", got, c.want, again)
			}
		})
	}
}
