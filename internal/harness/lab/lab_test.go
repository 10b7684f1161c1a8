package lab

import (
	"strings"
	"testing"
)

// TestCountWhole: tests and examples count if they ran on a whole host and ended.
func TestCountWhole(t *testing.T) {
	out := `=== RUN   TestContract
=== ATTR  TestContract/pkg host whole
=== ATTR  TestContract/file host part
=== ATTR  TestService host whole
=== ATTR  TestContract/hangs host whole
--- PASS: TestContract (2.00s)
    --- PASS: TestContract/pkg (1.00s)
    --- PASS: TestContract/file (1.00s)
--- FAIL: TestService (0.10s)
`
	if n := CountWhole(t, out); n != 2 {
		t.Errorf("%d, want 2", n)
	}
}

// TestName: names of labs are short and differ.
func TestName(t *testing.T) {
	one, other := Name("script_one_with_a_very_long_name_indeed"), Name("other")
	if len(one) > 40 || strings.Contains(one, "_") || one == other {
		t.Errorf("%s, %s", one, other)
	}
}
