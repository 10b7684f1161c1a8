package main

import (
	"testing"

	"github.com/pullet/pullet/state"
)

// TestSkippedWithoutAVersion: a record of a skipped commit beside no version, which only a hostile host writes, says
// nothing.
func TestSkippedWithoutAVersion(t *testing.T) {
	for _, kind := range []string{state.SkipBad, state.SkipHeld, state.SkipCanaries, "other"} {
		if got := skippedOf(&state.Overview{Skipped: &state.Skipped{Kind: kind}}); got != nil {
			t.Errorf("%s: %+v", kind, got)
		}
	}
}
