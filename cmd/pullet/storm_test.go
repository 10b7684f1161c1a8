package main

import (
	"testing"

	"github.com/pullet/pullet/internal/harness/chance"
	"github.com/pullet/pullet/internal/harness/storm"
)

// moduleRoot is the directory of the module as seen from this package.
const moduleRoot = "../.."

// TestStorm takes a fleet through a storm and judges the log of its steps. PULLET_TEST_SEED names the storm, and
// PULLET_STORM its duration: scripts/storm sets them.
func TestStorm(t *testing.T) {
	seed, duration := chance.Seed(t), storm.Duration(t)
	kind := storm.Draw(seed, duration)
	t.Logf("seed %d: %s. The same again: scripts/storm %s %d", seed, kind, duration, seed)
	if kind.Program = "pullet"; kind.Clocks {
		kind.Program = storm.BuildJumping(t, moduleRoot)
	}
	storm.Run(t, seed, kind)
}

// TestStormMutants: a storm finds a pullet that breaks a promise. It lasts until it does.
func TestStormMutants(t *testing.T) {
	duration := storm.Duration(t)
	for _, m := range storm.Mutants() {
		t.Run(m.Name, func(t *testing.T) { m.Catch(t, moduleRoot, chance.Seed(t), duration) })
	}
}
