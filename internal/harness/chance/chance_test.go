package chance

import (
	"testing"
	"time"
)

// TestLanes: a lane draws the same each time, and lanes and seeds draw differently.
func TestLanes(t *testing.T) {
	drawn := map[uint64]bool{}
	for seed := range uint64(3) {
		for lane := range 3 {
			first := Lane(seed, lane).Uint64()
			if again := Lane(seed, lane).Uint64(); again != first {
				t.Errorf("lane %d of seed %d draws %d, then %d", lane, seed, first, again)
			}
			if drawn[first] {
				t.Errorf("lane %d of seed %d draws what another lane draws", lane, seed)
			}
			drawn[first] = true
		}
	}
}

// TestBetween: durations are within their bounds.
func TestBetween(t *testing.T) {
	r := Lane(1, 0)
	for range 100 {
		if d := Between(r, time.Second, 2*time.Second); d < time.Second || d >= 2*time.Second {
			t.Errorf("%s", d)
		}
	}
}

// TestSeed: the environment names the seed.
func TestSeed(t *testing.T) {
	t.Setenv("PULLET_TEST_SEED", "7")
	if got := Seed(t); got != 7 {
		t.Errorf("%d", got)
	}
}
