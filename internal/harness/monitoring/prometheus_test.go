package monitoring

import "testing"

// TestShortened: the times of all alerts of the module are shortened.
func TestShortened(t *testing.T) {
	if text := shortened(t, "../../.."); text == "" {
		t.Error("there are no alerts")
	}
}
