package process

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// noted is a test that notes its errors.
type noted struct {
	testing.TB
	errors []string
}

func (n *noted) Errorf(format string, args ...any) {
	n.errors = append(n.errors, fmt.Sprintf(format, args...))
}

// TestProcessEnds: the unexpected end of a process that must live is an error with the end of its log. The end of a
// process that was killed, or that may end, is not.
func TestProcessEnds(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]*Process{
		"by itself": {Args: []string{"sh", "-c", "echo because; exit 3"}, MustLive: true},
		"killed":    {Args: []string{"sleep", "60"}, MustLive: true},
		"may end":   {Args: []string{"false"}},
	} {
		p.Name, p.Log = name, filepath.Join(t.TempDir(), "log")
		test := &noted{TB: t}
		if p.Start(test); name == "killed" {
			if !p.IsRunning() {
				t.Error("it does not run")
			}
			p.Kill(false)
		}
		<-p.Done()
		got := strings.Join(test.errors, "\n")
		want := map[string]string{"by itself": "by itself ended by itself: exit status 3\nbecause\n"}[name]
		if got != want || p.IsRunning() {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if failed, killed := p.Failed(); !failed || killed != (name == "killed") {
			t.Errorf("%s: failed %v, killed %v", name, failed, killed)
		}
	}
}

// TestProcessOutlivesThreads: a process continues after the end of the thread that called Start.
func TestProcessOutlivesThreads(t *testing.T) {
	t.Parallel()
	p := &Process{Name: "sleep", Args: []string{"sleep", "60"}, Log: filepath.Join(t.TempDir(), "log"), MustLive: true}
	started := make(chan bool)
	go func() {
		defer close(started)
		runtime.LockOSThread() // without an unlock the thread ends with the goroutine
		p.Start(t)
	}()
	<-started
	select {
	case <-p.Done():
		t.Error("it ended with the thread")
	case <-time.After(200 * time.Millisecond):
	}
	p.Kill(false)
}
