package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Breach is a promise that a log shows to be broken.
type Breach struct {
	Promise string // its short name, such as "limit"
	Text    string // for people
	lines   []int  // that show it
}

// Verdict is the result of judging a log.
type Verdict struct {
	Breaches []Breach
	Seen     map[string]int // number of judged things by kind
	log      *Log
}

// judge compares a log with the promises of docs/faults.md. It uses no clock: it uses the order of the lines, which of
// them are between others, and the revisions of etcd, of which the fence of a claim is one. If a log does not show
// which of two things came first, the judge assumes nothing.
type judge struct {
	*Log
	breaches []Breach
	seen     map[string]int // how often there was something to judge
}

// Judge compares a log with the promises.
func Judge(l *Log) Verdict {
	j := &judge{Log: l, seen: map[string]int{}}
	for _, h := range l.holds {
		j.checkTurns(h)
		if h.back { // it is not an admission
			continue
		}
		j.checkLimits(h)
		j.checkOrder(h)
		j.checkStops(h)
	}
	for _, s := range l.stints {
		j.checkVersion(s)
		j.checkOneHost(s)
		j.checkSerial(s)
		j.checkBarrier(s)
	}
	j.checkElections()
	j.checkResults()
	j.checkAbandoned()
	j.checkCommands()
	j.checkWithoutEtcd()
	j.seen["restores"] = len(j.marks["restored"])
	return Verdict{j.breaches, j.seen, l}
}

// breach adds a broken promise with the lines that show it.
func (j *judge) breach(promise string, lines []int, format string, args ...any) {
	slices.Sort(lines)
	j.breaches = append(j.breaches, Breach{promise, fmt.Sprintf(format, args...), slices.Compact(lines)})
}

// String returns each breach with its lines, the first five of each promise.
func (v Verdict) String() string {
	var b strings.Builder
	told := map[string]int{}
	for _, one := range v.Breaches {
		if told[one.Promise]++; told[one.Promise] > 5 {
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", one.Promise, one.Text)
		for _, line := range one.lines {
			fmt.Fprintf(&b, "  %s\n", v.log.show(line))
		}
	}
	for _, promise := range slices.Sorted(maps.Keys(told)) {
		if told[promise] > 5 {
			fmt.Fprintf(&b, "%s: and %d more\n", promise, told[promise]-5)
		}
	}
	return b.String()
}
