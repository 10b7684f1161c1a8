package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The log of a storm is one file, to which every step of every host appends, and the storm itself what it did. The
// order of its lines is the only clock: a line is one write to a file that was opened for appending, which the kernel
// does not interleave. There is no lock around it: a step that is stopped while it held one would stop all others.
//
//	begin NODE HOST VERSION STEP FENCE PID      a step begins
//	end NODE HOST VERSION STEP FENCE PID CODE   it ends
//	value NODE VERSION TEXT                     what it read of a step that another node took
//	gone PID...                                 these commands do nothing any more: they are stopped, and are killed next
//	vanished PID...                             these ended without a word; nobody knows when
//	version {JSON}                              a commit is about to be pushed: stormVersion
//	current ERA REVISION VERSION ROLLOUT        the fleet's version, as etcd has it
//	gate ERA REVISION ROLLOUT GROUP STATE       a group is halted or opened
//	soak ERA REVISION ROLLOUT GROUP on|off      its canaries are watched
//	switch ERA REVISION SCOPE off|on|VERSION|-  pause, host/NODE, role/ROLE, global; - when it is lifted
//	lost ERA REVISION NODE FENCE                a claim was taken back from a node that does not answer
//	moved ERA REVISION NODE FENCE               its claim with this fence is in another group from here on, and has the revision as its fence
//	putback ERA REVISION NODE                   after a restore it puts the claim back that its own disk knows: no admission
//	silent ERA REVISION NODE                    its lease ended, or it was given up
//	alive ERA REVISION NODE                     it has a lease again
//	idle ERA REVISION NODE on|off               it holds a claim and changes nothing: it counts in its own group only (I1 of docs/faults.md)
//	given ERA REVISION RUN STAGES               an operator gave nodes a command: db1,db2;web1 are two stages
//	alias VERSION COMMIT                        a version of several repositories, with the rules of this commit
//	sick NODE                                   its host has a fault of its own, or had one just now
//	decommission NODE                           an operator gives a node up
//	reverted HOST                               its state directory is older from here on, or gone
//	away, back                                  no member of etcd answers; they do again
//	restored ERA                                etcd is another one from here on, with revisions of its own
//	kept ERA REVISION                           up to this revision, the era has the facts of the one before: the storm cannot read them again
//	accepted                                    an operator accepts it
//	settled                                     nothing is wrong any more
//	fault TEXT                                  what was done, for people

// stormVersion is what a commit asks for, as far as the judge has to know it.
type stormVersion struct {
	Number  int                 `json:"number"`
	ID      string              `json:"id"`
	Groups  map[string]string   `json:"groups"`            // of nodes
	Roles   map[string]string   `json:"roles"`             // of nodes
	Limits  map[string]int      `json:"limits"`            // of groups
	Total   int                 `json:"total,omitempty"`   // 0: any number
	Depends map[string][]string `json:"depends,omitempty"` // of groups, on groups
	Serial  int                 `json:"serial"`            // nodes at the serialized step
	Meet    map[string]string   `json:"meet,omitempty"`    // the barrier that a node has to come to
	Closed  bool                `json:"closed,omitempty"`  // the maintenance window of all but the canaries does not open
	Bad     string              `json:"bad,omitempty"`     // what is wrong with it, for people
	OnLost  string              `json:"onLost"`
}

// The steps of a storm's jobs. The last one says that the node is through.
const (
	stormWork   = "work"
	stormSerial = "serial"
	stormToken  = "token"
	stormJoin   = "join"
	stormMeet   = "meet"
	stormBehind = "behind"
	stormLast   = "last"
)

// stormStint is one time that a host ran a step. Places in the log are line numbers.
type stormStint struct {
	node, host, version, step string
	fence                     int64
	pid                       string
	era                       int
	from, to                  int // to is after the log where it never ended
	code                      int // -1: it has none
	vanished                  bool
}

// stormHold is what a node did under one claim: it held that from before the first line until after the last one.
type stormHold struct {
	node, version string // that the fleet was at when it was claimed
	fence         int64
	era           int
	from, to      int
	stints        []*stormStint
	back          bool // it was put back, and is older than its fence
}

// stormFact is a change of the fleet's record, at a revision of an era.
type stormFact struct {
	line, era int
	rev       int64
	what      []string
}

// stormLog is a log that was read.
type stormLog struct {
	lines    []string
	versions map[string]*stormVersion
	stints   []*stormStint
	holds    []*stormHold
	facts    map[string][]stormFact // by their first word, in their order
	marks    map[string][]stormMark
	kept     map[int]int64     // by era: the revision up to which it has the facts of the one before
	names    *strings.Replacer // of versions, for people
}

// stormMark is a line of the storm that is no revision's.
type stormMark struct {
	line int
	what []string
}

// readStorm reads a log. A storm's own lines that it cannot read are an error, not a breach.
func readStorm(text string) (*stormLog, error) {
	l := &stormLog{versions: map[string]*stormVersion{}, facts: map[string][]stormFact{}, marks: map[string][]stormMark{}, kept: map[int]int64{}}
	open, era := map[string]*stormStint{}, 0
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
			if err := l.step(at, era, word, open); err != nil {
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
			var v stormVersion
			if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "version ")), &v); err != nil {
				return nil, fmt.Errorf("line %d: %w", at+1, err)
			}
			l.versions[v.ID] = &v
			l.marks[what] = append(l.marks[what], stormMark{at, []string{v.ID}})
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
			l.marks[what] = append(l.marks[what], stormMark{at, word[1:]})
		}
	}
	l.hold()
	l.names = l.shorten()
	return l, nil
}

func readFact(at int, word []string) (stormFact, error) {
	if len(word) < 4 {
		return stormFact{}, fmt.Errorf("too short")
	}
	era, err := strconv.Atoi(word[1])
	if err != nil {
		return stormFact{}, err
	}
	rev, err := strconv.ParseInt(word[2], 10, 64)
	return stormFact{at, era, rev, word[3:]}, err
}

func (l *stormLog) step(at, era int, word []string, open map[string]*stormStint) error {
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
		s := &stormStint{node: word[1], host: word[2], version: word[3], step: word[4], fence: fence, pid: pid, era: era, from: at, to: math.MaxInt, code: -1}
		l.stints = append(l.stints, s)
		open[pid] = s
		return nil
	}
	s := open[pid]
	if s == nil || s.step != word[4] {
		return nil // it was said to be gone, and its kill was in vain: the storm's fault, not the fleet's
	}
	s.to = at
	delete(open, pid)
	s.code, err = strconv.Atoi(word[7])
	return err
}

// hold gathers what was done under each claim.
func (l *stormLog) hold() {
	type claim struct {
		node  string
		fence int64
	}
	known := map[claim]*stormHold{}
	for _, s := range l.stints {
		if s.fence == 0 {
			continue
		}
		made := l.regroup(s)
		h := known[claim{s.node, made}]
		if h == nil {
			h = &stormHold{node: s.node, fence: made, era: s.era, from: s.from, version: l.at(s.era, made, s.version), back: l.putBack(s, made)}
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

// putBack reports a claim that its node put back after a restore.
func (l *stormLog) putBack(s *stormStint, made int64) bool {
	return slices.ContainsFunc(l.facts["putback"], func(f stormFact) bool { return l.has(s.era, f) && f.rev == made && f.what[0] == s.node })
}

// regroup gives claims that moved the number that they were made with. A claim moves when its node's group changes with
// a version: the node never stopped to hold it.
func (l *stormLog) regroup(s *stormStint) (made int64) {
	made = s.fence
	for _, f := range slices.Backward(l.facts["moved"]) {
		if l.has(s.era, f) && f.rev == made && f.what[0] == s.node {
			made, _ = strconv.ParseInt(f.what[1], 10, 64) // 0 is before every claim
		}
	}
	return made
}

// has reports that an era of etcd has a fact: one of its own, or one from before the restores since.
func (l *stormLog) has(era int, f stormFact) bool {
	for ; era > f.era; era-- {
		if f.rev > l.kept[era] {
			return false
		}
	}
	return era == f.era
}

// shorten calls versions by their numbers.
func (l *stormLog) shorten() *strings.Replacer {
	var pairs []string
	for id, v := range l.versions {
		pairs = append(pairs, id, fmt.Sprint("v", v.Number))
	}
	return strings.NewReplacer(pairs...)
}

// at is the version that the fleet was at, at a revision; other where that is not on record.
func (l *stormLog) at(era int, rev int64, other string) string {
	for _, f := range l.facts["current"] {
		if l.has(era, f) && f.rev <= rev {
			other = f.what[0]
		}
	}
	return other
}

// show is a line as people read it, with its number.
func (l *stormLog) show(at int) string {
	if at < 0 || at >= len(l.lines) {
		return "       (it never ended)"
	}
	return l.names.Replace(fmt.Sprintf("%6d %s", at+1, l.lines[at]))
}

// stormPen appends to a log.
type stormPen struct {
	t    *testing.T
	path string
}

func (p *stormPen) say(format string, args ...any) {
	f, err := os.OpenFile(p.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err == nil {
		_, err = fmt.Fprintf(f, format+"\n", args...)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		p.t.Error(err)
	}
}
