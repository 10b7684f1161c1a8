// Package chance draws the faults of a test from its seed. Tests only.
package chance

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Lane returns the source of random numbers of one lane of a test. Seeds that are close to each other have nothing in
// common.
func Lane(seed uint64, lane int) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Append(nil, seed, lane))))
}

// Between returns a duration that is at least from and less than to.
func Between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// Sleep pauses for a duration that is at least from and less than to.
func Sleep(r *rand.Rand, from, to time.Duration) { time.Sleep(Between(r, from, to)) }

// Seed returns the seed in PULLET_TEST_SEED, or a new one if that is not set.
func Seed(t testing.TB) uint64 {
	t.Helper()
	text := os.Getenv("PULLET_TEST_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("PULLET_TEST_SEED: %v", err)
	}
	return seed
}
