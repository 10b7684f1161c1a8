package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/harness/victim"
	"github.com/pullet/pullet/internal/tier"
)

// binary builds pullet for tests that kill it or need it on other hosts. It returns bin/pullet in a new directory.
func binary(t *testing.T) string {
	t.Helper()
	tier.Long(t, "builds the program and kills real processes")
	path := filepath.Join(t.TempDir(), "bin", "pullet")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestKilledPull kills pulls with -9 at random moments, through two versions. After each kill the files are whole, no
// command with a recorded end runs again, status shows the state of the node, and the next pull continues to the end.
func TestKilledPull(t *testing.T) {
	v := victim.New(t, binary(t))
	random := rand.New(rand.NewPCG(tier.Seed(t), 0))
	kills := 0
	for version := 1; version <= 2; version++ {
		v.Release(version)
		for round := 0; ; round++ {
			before := v.Ended(version)
			life := time.Duration(random.IntN(250)+20) * time.Millisecond
			if round >= 20 {
				life = time.Minute
			}
			killed := v.Pull(life)
			for name, n := range before {
				if now := v.Starts(name); now != n {
					t.Errorf("command %s had an end on record and ran again: %d starts, then %d", name, n, now)
				}
			}
			v.CheckFiles()
			if !killed {
				break
			}
			kills++
			v.CheckStatus(upgrading, upToDate, pending)
		}
		v.CheckConverged(version)
	}
	t.Logf("%d kills", kills)
}

// TestManyKills is a harder TestKilledPull: all pulls are short, and each is a little longer than the last.
func TestManyKills(t *testing.T) {
	v := victim.New(t, binary(t))
	v.Release(1)
	for life := 40 * time.Millisecond; v.Pull(life); life += max(5*time.Millisecond, life/20) {
		v.CheckFiles()
	}
	v.CheckConverged(1)
}
