package storm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pullet/pullet/internal/harness/judge"
)

// notes appends to the log of a storm, and counts its faults. The lanes of a storm share it.
type notes struct {
	t    testing.TB
	path string // of the log

	mu     sync.Mutex
	counts map[string]int
}

// newNotes returns the notes of a storm whose log is in this directory.
func newNotes(t testing.TB, dir string) *notes {
	return &notes{t: t, path: filepath.Join(dir, "log"), counts: map[string]int{}}
}

// say appends a line to the log.
func (n *notes) say(format string, args ...any) {
	f, err := os.OpenFile(n.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err == nil {
		_, err = fmt.Fprintf(f, format+"\n", args...)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		n.t.Error(err)
	}
}

// did counts a fault and logs it for people.
func (n *notes) did(fault, format string, args ...any) {
	n.number(fault)
	n.say("fault %s: %s", fault, fmt.Sprintf(format, args...))
}

// number counts an event and returns how often it was counted.
func (n *notes) number(what string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[what]++
	return n.counts[what]
}

// gone logs that these processes do nothing from here on: they are stopped, and the caller kills them.
func (n *notes) gone(pids []int) {
	if len(pids) > 0 {
		n.say("gone %s", strings.Trim(fmt.Sprint(pids), "[]"))
	}
}

// read returns the log up to its last whole line: a step may be writing.
func (n *notes) read() *judge.Log {
	n.t.Helper()
	text, err := os.ReadFile(n.path)
	if err != nil {
		n.t.Fatal(err)
	}
	l, err := judge.Read(string(text[:strings.LastIndexByte(string(text), '\n')+1]))
	if err != nil {
		n.t.Fatal(err)
	}
	return l
}

// summary returns counts by name in one line.
func summary(counts map[string]int) string {
	var out []string
	for what, n := range counts {
		out = append(out, fmt.Sprintf("%s %d", what, n))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// crashes returns the lines of the logs of all hosts in a directory with which the Go runtime ends or warns pullet. No
// fault of a storm may cause one.
func crashes(t testing.TB, dir string) (out string) {
	logs, err := filepath.Glob(filepath.Join(dir, "*", hostLog))
	if err != nil {
		t.Error(err)
	}
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(string(text)) {
			for _, crash := range []string{"panic: ", "fatal error: ", "WARNING: DATA RACE"} {
				if strings.HasPrefix(line, crash) {
					out += fmt.Sprintf("%s: %s", log, line)
				}
			}
		}
	}
	return out
}

// write writes a file and makes its directory. Faults call it outside of the goroutine of the test.
func write(t testing.TB, path, text string) {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}
