// Package tier says which tests run when. scripts/test runs the first tier, with -short; scripts/test all runs what is
// longer; scripts/soak explores, with new seeds. Tests only.
package tier

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// Long leaves a test to scripts/test all. Why says in a few words what takes its time there.
func Long(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip("left to scripts/test all: " + why)
	}
}

// Program leaves a test to scripts/test all, which installs the program that it needs, from a Debian package. The first
// tier runs the same tests on each machine, whatever is installed there.
func Program(t testing.TB, name, debian string) {
	t.Helper()
	Long(t, "needs "+name)
	if _, err := exec.LookPath(name); err != nil {
		t.Fatalf("%v: apt-get install %s", err, debian)
	}
}

// Soak leaves a test to scripts/soak, which sets PULLET_SOAK. Why says in a few words what it explores.
func Soak(t testing.TB, why string) {
	t.Helper()
	if !Soaking() {
		t.Skip("left to scripts/soak: " + why)
	}
}

// Soaking reports whether scripts/soak runs the test: then it takes more samples.
func Soaking() bool { return os.Getenv("PULLET_SOAK") != "" }

// Root skips a test that is not run by root. Why says in a few words what it needs root for.
func Root(t testing.TB, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: " + why)
	}
}

// Seed returns the seed of a test that draws, and logs how to repeat it. It is 1, so that a test is the same each
// time, or PULLET_TEST_SEED, which scripts/soak draws.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(1)
	if text := os.Getenv("PULLET_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("PULLET_TEST_SEED: %v", err)
		}
	}
	t.Logf("the same again: PULLET_TEST_SEED=%d", seed)
	return seed
}
