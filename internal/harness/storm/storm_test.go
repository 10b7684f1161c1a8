package storm

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/scripts/overlay"
)

// root is the directory of the module.
const root = "../../.."

// TestStormPatches: the text that mutants and jumping clocks change is in the source.
func TestStormPatches(t *testing.T) {
	patches := clockPatches(t)
	for _, m := range Mutants() {
		patches = append(patches, m.change(root))
	}
	for _, p := range patches {
		if _, err := overlay.Write(t.TempDir(), p); err != nil {
			t.Error(err)
		}
	}
}

// TestStormCrashes: a line with which the Go runtime ends pullet is found on each host, and no other line is.
func TestStormCrashes(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "db1/pullet.log"), "level=error msg=\"panic: said a command\"\n")
	if got := crashes(t, dir); got != "" {
		t.Errorf("nothing crashed: %s", got)
	}
	for i, line := range []string{
		"panic: runtime error: index out of range", "fatal error: all goroutines are asleep", "WARNING: DATA RACE",
	} {
		name := fmt.Sprint("web", i)
		write(t, filepath.Join(dir, name, "pullet.log"), "one\n"+line+"\nmore\n")
		if got := crashes(t, dir); !strings.Contains(got, name+"/pullet.log: "+line+"\n") {
			t.Errorf("%q: %q", line, got)
		}
	}
}

// TestDraw: a seed draws the same storm each time, and seeds draw each size.
func TestDraw(t *testing.T) {
	members, clocks := map[int]bool{}, map[bool]bool{}
	for seed := range uint64(50) {
		k := Draw(seed, time.Minute)
		if again := Draw(seed, time.Minute); fmt.Sprint(k) != fmt.Sprint(again) {
			t.Errorf("seed %d draws %s, then %s", seed, k, again)
		}
		members[k.Members], clocks[k.Clocks] = true, true
		if k.Members == 1 && k.Secure {
			t.Errorf("seed %d: %s", seed, k)
		}
	}
	if len(members) != 2 || len(clocks) != 2 {
		t.Errorf("members %v, clocks %v", members, clocks)
	}
}

// TestNotes: the log is read up to its last whole line.
func TestNotes(t *testing.T) {
	n := newNotes(t, t.TempDir())
	n.did("cut", "web1 for %s", time.Second)
	n.gone([]int{1, 2})
	n.gone(nil)
	write(t, n.path, "away\nback\nbeg")
	if got := n.read().Schedule(); strings.Count(got, "\n") != 2 || summary(n.counts) != "cut 1" {
		t.Errorf("%s %v", got, n.counts)
	}
}
