package storm

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/harness/chance"
	"github.com/pullet/pullet/internal/harness/rules"
)

// Kind describes a storm: its size and its possible faults.
type Kind struct {
	Members  int           // of etcd
	Secure   bool          // etcd has TLS, users and roles
	Repos    int           // state repositories: 1 or 2
	Hosts    int           // number of hosts
	OnLost   string        // onLost of the rules: "hold" or "release"
	Duration time.Duration // of the faults
	Program  string        // pullet
	Clocks   bool          // clocks of hosts jump; Program is built for that

	shape func(*rules.Rules) // applied to the rules of each version, or nil
}

// Draw draws a storm from its seed. Its size depends on the number of processors.
func Draw(seed uint64, duration time.Duration) Kind {
	x := chance.Lane(seed, 0)
	onLost := []string{"hold", "release"}[x.IntN(2)]
	k := Kind{Members: 1, Repos: 1, Hosts: min(5+runtime.NumCPU(), 12), OnLost: onLost, Duration: duration}
	if x.IntN(2) == 0 {
		k.Members, k.Secure = 3, x.IntN(2) == 0
	}
	if x.IntN(3) == 0 {
		k.Repos = 2
	}
	k.Clocks = x.IntN(4) == 0
	return k
}

// String describes the storm in one line.
func (k Kind) String() string {
	return fmt.Sprintf("%d hosts, %d members of etcd, TLS and users: %v, repositories: %d, onLost: %s, "+
		"jumping clocks: %v, for %s",
		k.Hosts, k.Members, k.Secure, k.Repos, k.OnLost, k.Clocks, k.Duration)
}

// Duration returns the duration in PULLET_STORM. It skips the test if that is not set.
func Duration(t testing.TB) time.Duration {
	t.Helper()
	text := os.Getenv("PULLET_STORM")
	if text == "" {
		t.Skip("it takes minutes: scripts/storm")
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("PULLET_STORM: %v", err)
	}
	return duration
}
