package main

import (
	"testing"

	"github.com/pullet/pullet/internal/harness/monitoring"
	"github.com/pullet/pullet/internal/tier"
)

// TestMonitored: each fault of a fleet makes its alert fire, in a real Prometheus with the alerts of docs/monitoring,
// and every query of the dashboard is answered with data. It is not parallel: it takes the processors, and members of a
// datastore in other tests depend on time.
func TestMonitored(t *testing.T) {
	tier.Long(t, "a fleet and Prometheus for a minute")
	monitoring.Run(t, "pullet", moduleRoot)
}
