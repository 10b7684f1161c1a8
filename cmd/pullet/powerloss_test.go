package main

import (
	"math/rand/v2"
	"testing"

	"github.com/pullet/pullet/internal/harness/powerloss"
	"github.com/pullet/pullet/internal/tier"
)

// TestPowerLoss: a pull survives a power loss at any moment. After it every managed file is whole, and the next pull
// brings the host to the same end.
func TestPowerLoss(t *testing.T) {
	tier.Long(t, "cuts the power of three file systems")
	seed := tier.Seed(t)
	for _, kind := range powerloss.FileSystems() {
		t.Run(kind, func(t *testing.T) {
			powerloss.Run(t, kind, "pullet", rand.New(rand.NewPCG(seed, 0)), 12)
		})
	}
}
