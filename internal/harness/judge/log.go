// Package judge reads the log of a storm and checks the promises of docs/faults.md on it. Tests only.
//
// The log is one file. Each step of each host appends to it, and so does the storm, which notes its faults. The order
// of the lines is the only clock: a line is one write to a file that is open for appending, and the kernel does not
// interleave those writes. The log has no lock: a step that is frozen while it holds one would stop all others.
//
//	begin NODE HOST VERSION STEP FENCE PID      a step begins
//	end NODE HOST VERSION STEP FENCE PID CODE   a step ends
//	value NODE VERSION TEXT                     the result of a step of another node, as this node reads it
//	gone PID...                                 these commands are stopped, and are killed next
//	vanished PID...                             these commands ended without a line, at an unknown time
//	version {JSON}                              a commit is about to be pushed: rules.Version
//	current ERA REVISION VERSION ROLLOUT        the version of the fleet, as etcd has it
//	gate ERA REVISION ROLLOUT GROUP STATE       a group is halted or opened
//	soak ERA REVISION ROLLOUT GROUP on|off      the canaries of a group soak
//	switch ERA REVISION SCOPE off|on|VERSION|-  pause, host/NODE, role/ROLE, global; - when it is lifted
//	lost ERA REVISION NODE FENCE                a claim was reclaimed from a node that does not answer
//	moved ERA REVISION NODE FENCE               the claim with this fence changed its group, and has a new fence
//	putback ERA REVISION NODE                   after a restore a node restores its claim from its disk: no admission
//	silent ERA REVISION NODE                    the lease of a node ended, or the node was decommissioned
//	alive ERA REVISION NODE                     a node has a lease again
//	idle ERA REVISION NODE on|off               a node holds a claim and changes nothing: it counts in its group only
//	given ERA REVISION RUN STAGES               an operator gave nodes a command: db1,db2;web1 are two stages
//	alias VERSION COMMIT                        a version of several repositories, with the rules of this commit
//	sick NODE                                   the host of a node has a fault, or had one just now
//	decommission NODE                           an operator decommissions a node
//	reverted HOST                               the state directory of a host is older from here on, or missing
//	away, back                                  no member of etcd answers; they do again
//	restored ERA                                etcd is another one from here on, with its own revisions
//	kept ERA REVISION                           up to this revision the era has the facts of the one before
//	accepted                                    an operator accepts a restore
//	settled                                     nothing is wrong from here on
//	fault TEXT                                  a fault, for people
package judge

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pullet/pullet/internal/harness/rules"
)

// Log is the record of a storm, as Read returns it. Positions in the log are line numbers from 0.
type Log struct {
	lines    []string
	versions map[string]*rules.Version
	stints   []*stint
	holds    []*hold
	facts    map[string][]fact // by their first word, in their order
	marks    map[string][]mark
	kept     map[int]int64     // by era: the revision up to which it has the facts of the one before
	names    *strings.Replacer // of versions, for people
}

// stint is one run of a step on a host.
type stint struct {
	node, host, version, step string
	fence                     int64
	pid                       string
	era                       int
	from, to                  int // to is after the log where it never ended
	code                      int // -1: it has none
	vanished                  bool
}

// hold is the work of a node under one claim. The node held the claim from before the first line to after the last
// one.
type hold struct {
	node, version string // that the fleet was at when it was claimed
	fence         int64
	era           int
	from, to      int
	stints        []*stint
	back          bool // it was put back, and is older than its fence
}

// fact is a change of the record of the fleet at a revision of an era of etcd.
type fact struct {
	line, era int
	rev       int64
	what      []string
}

// mark is a line of the log that has no revision.
type mark struct {
	line int
	what []string
}

// Read reads a log. A line that it cannot read is an error, not a breach.
func Read(text string) (*Log, error) {
	l := &Log{versions: map[string]*rules.Version{}, facts: map[string][]fact{}, marks: map[string][]mark{},
		kept: map[int]int64{}}
	open, era := map[string]*stint{}, 0
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		at := len(l.lines)
		l.lines = append(l.lines, line)
		word := strings.Fields(line)
		if len(word) == 0 {
			return nil, fmt.Errorf("line %d is empty", at+1)
		}
		switch what := word[0]; what {
		case "begin", "end":
			if err := l.readStep(at, era, word, open); err != nil {
				return nil, fmt.Errorf("line %d: %q: %w", at+1, line, err)
			}
		case "gone", "vanished":
			for _, pid := range word[1:] {
				if s := open[pid]; s != nil {
					s.to, s.vanished = at, what == "vanished"
					delete(open, pid)
				}
			}
		case "version":
			var v rules.Version
			if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "version ")), &v); err != nil {
				return nil, fmt.Errorf("line %d: %w", at+1, err)
			}
			l.versions[v.ID] = &v
			l.marks[what] = append(l.marks[what], mark{at, []string{v.ID}})
		case "alias":
			if v := l.versions[word[2]]; v != nil {
				one := *v
				one.ID = word[1]
				l.versions[word[1]] = &one
			}
		case "current", "gate", "soak", "switch", "lost", "silent", "alive", "idle", "moved", "putback", "given":
			f, err := readFact(at, word)
			if err != nil {
				return nil, fmt.Errorf("line %d: %q: %w", at+1, line, err)
			}
			l.facts[what] = append(l.facts[what], f)
		case "kept":
			f, err := readFact(at, append(word, ""))
			if err != nil {
				return nil, fmt.Errorf("line %d: %q: %w", at+1, line, err)
			}
			l.kept[f.era] = f.rev
		default:
			if what == "restored" {
				era++
			}
			l.marks[what] = append(l.marks[what], mark{at, word[1:]})
		}
	}
	l.gatherHolds()
	l.names = l.versionNames()
	return l, nil
}

// readFact reads a line that has an era and a revision.
func readFact(at int, word []string) (fact, error) {
	if len(word) < 4 {
		return fact{}, fmt.Errorf("too short")
	}
	era, err := strconv.Atoi(word[1])
	if err != nil {
		return fact{}, err
	}
	rev, err := strconv.ParseInt(word[2], 10, 64)
	return fact{at, era, rev, word[3:]}, err
}

// readStep reads the begin or the end of a step.
func (l *Log) readStep(at, era int, word []string, open map[string]*stint) error {
	if len(word) < 7 {
		return fmt.Errorf("too short")
	}
	fence, err := strconv.ParseInt(word[5], 10, 64)
	if err != nil {
		return err
	}
	pid := word[6]
	if word[0] == "begin" {
		if old := open[pid]; old != nil { // its number is another's now
			old.to, old.vanished = at, true
		}
		s := &stint{node: word[1], host: word[2], version: word[3], step: word[4], fence: fence, pid: pid, era: era, from: at,
			to: math.MaxInt, code: -1}
		l.stints = append(l.stints, s)
		open[pid] = s
		return nil
	}
	s := open[pid]
	if s == nil || s.step != word[4] {
		return nil // the log says that it is gone, and the storm did not kill it in time
	}
	s.to = at
	delete(open, pid)
	s.code, err = strconv.Atoi(word[7])
	return err
}

// gatherHolds gathers the stints under each claim.
func (l *Log) gatherHolds() {
	type claim struct {
		node  string
		fence int64
	}
	known := map[claim]*hold{}
	for _, s := range l.stints {
		if s.fence == 0 {
			continue
		}
		made := l.originalFence(s)
		h := known[claim{s.node, made}]
		if h == nil {
			h = &hold{node: s.node, fence: made, era: s.era, from: s.from, version: l.versionAt(s.era, made, s.version),
				back: l.isPutBack(s, made)}
			known[claim{s.node, made}] = h
			l.holds = append(l.holds, h)
		}
		h.stints = append(h.stints, s)
		if !s.vanished {
			h.to = max(h.to, s.to)
		}
		h.to = max(h.to, s.from)
	}
}

// isPutBack reports whether the node put the claim back after a restore.
func (l *Log) isPutBack(s *stint, made int64) bool {
	return slices.ContainsFunc(l.facts["putback"], func(f fact) bool {
		return l.has(s.era, f) && f.rev == made &&
			f.what[0] == s.node
	})
}

// originalFence returns the fence with which the claim of a stint was made. A claim moves when the group of its node
// changes with a version, and the node holds it all the time.
func (l *Log) originalFence(s *stint) (made int64) {
	made = s.fence
	for _, f := range slices.Backward(l.facts["moved"]) {
		if l.has(s.era, f) && f.rev == made && f.what[0] == s.node {
			made, _ = strconv.ParseInt(f.what[1], 10, 64) // 0 is before every claim
		}
	}
	return made
}

// has reports whether an era of etcd has a fact: its own facts, and those from before the restores since.
func (l *Log) has(era int, f fact) bool {
	for ; era > f.era; era-- {
		if f.rev > l.kept[era] {
			return false
		}
	}
	return era == f.era
}

// versionNames returns a replacer that shortens the IDs of versions to their numbers.
func (l *Log) versionNames() *strings.Replacer {
	var pairs []string
	for id, v := range l.versions {
		pairs = append(pairs, id, fmt.Sprint("v", v.Number))
	}
	return strings.NewReplacer(pairs...)
}

// versionAt returns the version of the fleet at a revision, or other if the log does not have it.
func (l *Log) versionAt(era int, rev int64, other string) string {
	for _, f := range l.facts["current"] {
		if l.has(era, f) && f.rev <= rev {
			other = f.what[0]
		}
	}
	return other
}

// show returns a line for people, with its number.
func (l *Log) show(at int) string {
	if at < 0 || at >= len(l.lines) {
		return "       (it never ended)"
	}
	return l.names.Replace(fmt.Sprintf("%6d %s", at+1, l.lines[at]))
}

// Schedule returns the lines of the faults and decisions, without those of steps.
func (l *Log) Schedule() string {
	var b strings.Builder
	for at, line := range l.lines {
		switch word, _, _ := strings.Cut(line, " "); word {
		case "begin", "end", "value", "gone", "vanished":
		default:
			fmt.Fprintln(&b, l.show(at))
		}
	}
	return b.String()
}

// Elected returns the node that ran the elected step of a version last and succeeded, or "".
func (l *Log) Elected(version string) (node string) {
	for _, s := range l.stints {
		if s.step == rules.Token && s.code == 0 && s.version == version {
			node = s.node
		}
	}
	return node
}
