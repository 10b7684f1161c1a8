package main

import (
	"testing"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// FuzzEventNames: what a trigger may name is what the fleet's record takes.
func FuzzEventNames(f *testing.F) {
	for _, seed := range []string{"a", "a/b", "pullet/step/failed", "A_1.b: c-d/_", "", "/", "a/", "a//b", " a", "-a", "a*", "ä", "a\nb", "a\n", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if err := state.CheckEventName(name); (err == nil) != safetext.EventName(name) {
			t.Errorf("%q: %v", name, err)
		}
	})
}
