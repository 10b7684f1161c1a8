package actiontest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Started makes a pipe named started in the root, and gives the process id that a command writes there.
func (s *Scene) Started() <-chan int {
	s.T.Helper()
	path := s.Path("started")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		s.T.Fatal(err)
	}
	out := make(chan int, 1)
	go func() {
		data, err := os.ReadFile(path) // opens when the writer does
		pid := 0
		if _, bad := fmt.Sscan(string(data), &pid); err != nil || bad != nil {
			s.T.Errorf("the command did not say who it is: %v %v", err, bad)
		}
		out <- pid
	}()
	return out
}

// WaitGone waits until no process of a group runs, and fails the test when one does after a while. Zombies do not run:
// whoever inherits them may leave them.
func WaitGone(t *testing.T, group int) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		if left = running(t, group); len(left) == 0 {
			return
		}
	}
	t.Errorf("processes of the group are left: %q", left)
}

func running(t *testing.T, group int) []string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it ended in between
		}
		var status string
		var parent, pgrp int
		_, after, _ := strings.Cut(string(data), ") ")
		if _, err := fmt.Sscan(after, &status, &parent, &pgrp); err == nil && pgrp == group && status != "Z" {
			out = append(out, string(data))
		}
	}
	return out
}
