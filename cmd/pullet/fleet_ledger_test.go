package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// stint is one time that a node ran a command of a step.
type stint struct {
	step, node, version string
	fence               int64
	from, to            time.Time // to is zero where it was killed
}

// read reads a node's ledger.
func (j *judge) read(node string) (out []*stint) {
	text, err := os.ReadFile(filepath.Join(j.dir, node, "root/ledger"))
	if err != nil {
		j.breach("%v", err)
	}
	for line := range strings.Lines(string(text)) {
		s := &stint{}
		var what string
		var nanos int64
		if _, err := fmt.Sscanf(line, "%s %s %s %s %d %d", &what, &s.step, &s.node, &s.version, &s.fence, &nanos); err != nil {
			j.breach("ledger of %s: %q: %v", node, line, err)
			continue
		}
		if s.from = time.Unix(0, nanos); what == "start" {
			out = append(out, s)
			continue
		}
		for _, begun := range slices.Backward(out) {
			if begun.step == s.step && begun.version == s.version && begun.to.IsZero() {
				begun.to = s.from
				break
			}
		}
	}
	return out
}

// ledgers judges what the steps noted, with what etcd says of their gates.
func (j *judge) ledgers() {
	j.rev = 0
	tokens, serial, values := map[string][]*stint{}, []*stint{}, map[string]bool{}
	for _, n := range j.nodes {
		for _, s := range j.read(n.name) {
			j.seen["commands"]++
			j.fenced(s)
			switch s.step {
			case "token":
				tokens[s.version] = append(tokens[s.version], s)
			case "restart":
				serial = append(serial, s)
			case "behind":
				j.behind(s)
			}
		}
		j.last(n, values)
	}
	for version, all := range tokens {
		if len(all) > 1 {
			j.breach("the token of version %d was made %d times: %v", j.order[version], len(all), all)
		}
		j.seen["tokens"]++
	}
	if len(values) != 1 {
		j.breach("not all nodes have the same token: %v", slices.Sorted(maps.Keys(values)))
	}
	j.oneByOne(serial)
}

// fenced judges that the node looked at its claim before it started a command. One that was parked and has nothing left
// to change has none.
func (j *judge) fenced(s *stint) {
	id := map[string]string{"work": "site/work", "restart": "site/restart", "token": "cluster/token", "join": "cluster/join", "meet": "cluster/meet", "behind": "cluster/behind"}[s.step]
	for _, c := range j.claims[s.fence] {
		if c.Node == s.node && c.Version == s.version && c.Step == id && !c.Since.After(s.from) {
			if at, lost := j.lost[s.fence]; lost && c.Since.After(at) {
				j.breach("%s starts %s of version %d under a claim that was taken back", s.node, s.step, j.order[s.version])
			}
			return
		}
	}
	j.breach("%s starts %s of version %d at %s under claim %d, which was not looked at before: %+v", s.node, s.step, j.order[s.version], s.from.Format(time.RFC3339Nano), s.fence, j.claims[s.fence])
}

// behind judges that a step behind a barrier started after that opened.
func (j *judge) behind(s *stint) {
	at, open := j.opened[s.version+" "+s.node]
	if opened, err := time.Parse(time.RFC3339Nano, at); !open || err != nil || s.from.Before(opened) {
		j.breach("%s goes behind the barrier of version %d at %s, which opened at %q", s.node, j.order[s.version], s.from.Format(time.RFC3339Nano), at)
	}
	j.seen["commands behind barriers"]++
}

// oneByOne judges a serialized step: of those that have an end on record no two ran at the same time.
func (j *judge) oneByOne(all []*stint) {
	slices.SortFunc(all, func(a, b *stint) int { return a.from.Compare(b.from) })
	var last *stint
	for _, s := range all {
		if last != nil && s.from.Before(last.to) && !(j.onLost == "release" && last.to.Sub(last.from) > time.Minute) { // given up: it went on all the same
			j.breach("the serialized step runs on two nodes: %+v and %+v", last, s)
		}
		if last == nil || s.to.After(last.to) {
			last = s
		}
	}
}

// last judges where a node came to.
func (j *judge) last(n *fleetNodeProcess, tokens map[string]bool) {
	version, err := os.ReadFile(filepath.Join(j.dir, n.name, "root/etc/version"))
	if err != nil || string(version) != fmt.Sprintln(len(j.versions)) {
		j.breach("%s is at version %q: %v", n.name, version, err)
	}
	if n.role == "can" {
		return
	}
	token, err := os.ReadFile(filepath.Join(j.dir, n.name, "root/etc/token"))
	if err != nil {
		j.breach("%s: %v", n.name, err)
	}
	tokens[string(token)] = true
}

// verdict reports what was done to the fleet, what its history holds, and what was broken.
func (j *judge) verdict() {
	j.t.Helper()
	summary := func(counts map[string]int) string {
		var parts []string
		for _, what := range slices.Sorted(maps.Keys(counts)) {
			parts = append(parts, fmt.Sprintf("%s %d", what, counts[what]))
		}
		return strings.Join(parts, ", ")
	}
	j.t.Logf("done to the fleet: %s", summary(j.counts))
	j.t.Logf("in its history: %s", summary(j.seen))
	for i, b := range j.breaches {
		if i == 50 {
			j.t.Errorf("and %d more", len(j.breaches)-i)
			break
		}
		j.t.Error(b)
	}
	if j.seen["claims"] < len(j.nodes) || j.seen["barriers"] == 0 || j.seen["tokens"] == 0 || j.seen["commands behind barriers"] == 0 {
		j.t.Error("hardly anything happened: this run judges nothing")
	}
	if 3*j.seen["versions"] < len(j.versions) {
		j.t.Errorf("the fleet stood still: it came to %d of %d versions", j.seen["versions"], len(j.versions))
	}
}
