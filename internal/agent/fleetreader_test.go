package agent

import (
	"slices"
	"testing"
)

// TestWatches: a condition that waits names what it read of the fleet, and nothing else.
func TestWatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		all      bool
		services []string
		want     []string
	}{
		{false, nil, nil},
		{false, []string{"db", "cache"}, []string{"service cache", "service db"}},
		{true, nil, []string{"a node"}},
		{true, []string{"db"}, []string{"a node", "service db"}},
	} {
		l := &fleetReader{all: c.all}
		for _, name := range c.services {
			l.own.add(name)
		}
		if got := l.Watches(); !slices.Equal(got, c.want) {
			t.Errorf("all %v, %q: %q, not %q", c.all, c.services, got, c.want)
		}
	}
}
