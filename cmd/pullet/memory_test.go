package main

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestHideMemory: no core of the process is dumped.
func TestHideMemory(t *testing.T) {
	before, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	hideMemory()
	after, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil || after != 0 {
		t.Errorf("dumpable: %d, %v", after, err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(before), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
}
