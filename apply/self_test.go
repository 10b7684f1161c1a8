package apply

import (
	"strings"
	"testing"
)

// TestStops: the command lines that tell systemd to stop a unit, in the forms that people and package scripts use.
func TestStops(t *testing.T) {
	for line, want := range map[string]bool{
		"systemctl restart pullet-agent":                       true,
		"/usr/bin/systemctl --quiet stop pullet-agent.service": true,
		"systemctl try-restart nginx pullet-agent":             true,
		"systemctl restart nginx":                              false,
		"systemctl status pullet-agent":                        false,
		"systemctl reload pullet-agent":                        false,
		"sh -c systemctl restart pullet-agent":                 false, // its child is the one that waits
		"":                                                     false,
	} {
		if got := stops([]byte(strings.ReplaceAll(line, " ", "\x00")+"\x00"), "pullet-agent.service"); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}
