package patience

import (
	"os"
	"runtime"
	"sync"
	"time"
)

const (
	mostStretch = 5                       // more hides hangs
	fresh       = 5 * time.Second         // how long a measurement counts
	workRounds  = 2_500_000               // length of the computation
	idleWork    = 5 * time.Millisecond    // duration of the computation on an idle machine
	idlePauses  = 5500 * time.Microsecond // duration of five pauses of a millisecond there
	idleSyncs   = 10 * time.Millisecond   // duration of two writes that reach an idle disk
)

// Stretch returns d times the current slowness of the machine, which is 1 on an idle machine and at most 5. In virtual
// time it returns d.
func Stretch(d time.Duration) time.Duration {
	if inVirtualTime() {
		return d
	}
	return time.Duration(float64(d) * machine.factor(slowness))
}

// machine is measured once for all tests of a process.
var machine speed

// speed keeps the last measured slowness.
type speed struct {
	mu   sync.Mutex
	at   time.Time
	last float64
}

// factor returns the slowness, and measures it again if the last measurement is not fresh.
func (s *speed) factor(measure func() float64) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == 0 || time.Since(s.at) >= fresh {
		s.last = min(max(measure(), 1), mostStretch)
		s.at = time.Now()
	}
	return s.last
}

// slowness returns how many times longer than on an idle machine a computation, a few pauses or writes to the disk
// take, whichever number is largest. An etcd waits for its disk at each write.
func slowness() float64 {
	computed := timed(func() {
		x := uint64(1)
		for range workRounds {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		runtime.KeepAlive(x)
	})
	paused := timed(func() {
		for range 5 {
			<-time.After(time.Millisecond)
		}
	})
	written := timed(func() { syncs(2) })
	return max(
		float64(computed)/float64(idleWork),
		float64(paused)/float64(idlePauses),
		float64(written)/float64(idleSyncs),
	)
}

// syncs writes to a file in the directory of temporary files, and waits each time until it is on the disk. Where that
// is impossible, it returns early: the tests that write there say so.
func syncs(times int) {
	f, err := os.CreateTemp("", "patience")
	if err != nil {
		return
	}
	defer func() { _, _ = f.Close(), os.Remove(f.Name()) }()
	for range times {
		if _, err := f.Write(make([]byte, 4096)); err != nil || f.Sync() != nil {
			return
		}
	}
}

func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// inVirtualTime reports whether the test runs in a bubble of testing/synctest, whose clock starts in the year 2000.
func inVirtualTime() bool { return time.Now().Year() < 2020 }
