package simulation

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often: a fleet's processes keep little and allocate much, and a third of the CPU time
// of a hundred fleets was the collector's. It takes 250 MB.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}
