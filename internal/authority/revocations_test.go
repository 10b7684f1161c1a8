package authority

import (
	"slices"
	"testing"
	"time"
)

// TestRevoked: a list says again what it was made of, and what is none is an error.
func TestRevoked(t *testing.T) {
	a, err := Create("prod", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{nil, {"1", "ab", "ffffffffffffffffffffffffffffffff"}} {
		list, err := a.Revocations(want, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Revoked(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v: want %v", got, err, want)
		}
		if _, err := Revoked(list[:len(list)-1]); err == nil {
			t.Error("a list that was cut off is read")
		}
	}
}
