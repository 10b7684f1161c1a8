// Package metrics is what monitoring sees of a host: how its pulls go, for what it waits, which version it runs.
//
// It knows no agent. An agent hands on a plain Pull behind each pull, and a Record keeps what counts from one process
// to the next, so that a timer's pulls and an agent show the same. A View is all that is shown at one moment: over
// HTTP, in OpenMetrics or Prometheus' own text, or in a file for the textfile collector of node exporter.
package metrics
