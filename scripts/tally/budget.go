package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// budgets are how long a test and a script of the first tier may take. 0 is no limit.
type budgets struct{ test, script time.Duration }

func (b budgets) of(r result) time.Duration {
	if r.isScript() {
		return b.script
	}
	return b.test
}

// slowest returns the tests without subtests, the slowest first.
func slowest(ended []result) []result {
	parents := map[[2]string]bool{}
	for _, r := range ended {
		for name := r.name; strings.Contains(name, "/"); {
			name = name[:strings.LastIndex(name, "/")]
			parents[[2]string{r.pkg, name}] = true
		}
	}
	leaves := slices.DeleteFunc(slices.Clone(ended), func(r result) bool { return parents[[2]string{r.pkg, r.name}] })
	slices.SortStableFunc(leaves, func(a, b result) int { return cmp.Compare(b.took, a.took) })
	return leaves
}

// over returns the tests that took longer than their budget, the slowest first.
func (b budgets) over(ended []result) []result {
	return slices.DeleteFunc(slowest(ended), func(r result) bool { return b.of(r) == 0 || r.took <= b.of(r) })
}

// check runs each test over its budget again, alone, and returns how many are over it then too. A test that fails
// alone counts. It stops when the machine is too busy for times to say anything.
func (b budgets) check(t *tally, again func(result) (time.Duration, error), busy func() float64) int {
	slow := 0
	for _, r := range b.over(t.ended) {
		if by := busy(); by > tooBusy {
			fmt.Fprintf(t.out, "budget: not checked, other programs make this machine %.1f times slower\n", by)
			return slow
		}
		took, err := again(r)
		switch {
		case err != nil:
			fmt.Fprintf(t.out, "budget: %v\n", err)
			slow++
		case took > b.of(r) && busy() <= tooBusy:
			fmt.Fprintf(t.out, "budget: %s %s takes %.1fs alone, budget %v: make it cheaper, or leave it to scripts/test all\n",
				r.pkg, r.name, took.Seconds(), b.of(r))
			slow++
		}
	}
	return slow
}

// tooBusy is the contention above which times say nothing.
const tooBusy = 1.3

// contention returns how much longer work takes on this machine than the time that a processor gives to it: 1 where
// nothing else runs.
func contention() float64 {
	began, used := time.Now(), processorTime()
	for n := 0; time.Since(began) < 200*time.Millisecond; n++ {
		_ = n * n
	}
	return float64(time.Since(began)) / float64(max(processorTime()-used, time.Millisecond))
}

// processorTime returns how long this process has run on a processor.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // only for a bad argument
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// quote makes a name of a test a pattern of -run, in which a slash would begin the next part.
func quote(name string) string { return regexp.QuoteMeta(name) }
