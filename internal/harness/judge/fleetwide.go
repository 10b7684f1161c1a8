package judge

import (
	"maps"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/harness/rules"
)

// checkElections checks that a step that one node runs for all runs once for a version, except for runs that failed.
func (j *judge) checkElections() {
	ran := map[string][]*stint{}
	for _, s := range j.stints {
		if s.step == rules.Token && s.code <= 0 {
			ran[s.version] = append(ran[s.version], s)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ran)) {
		j.seen["elections"]++
		if all := ran[id]; len(all) > 1 && j.versions[id] != nil && !j.isForgotten(id) {
			lines := []int{}
			for _, s := range all {
				lines = append(lines, s.from)
			}
			j.breach("elections", lines, "the step that one node takes for all ran %d times in version %d", len(all),
				j.versions[id].Number)
		}
	}
}

// checkResults checks that all nodes that read a result in a version read the same one.
func (j *judge) checkResults() {
	read := map[string]mark{}
	for _, m := range j.marks["value"] {
		node, version, value := m.what[0], m.what[1], strings.Join(m.what[2:], " ")
		first, known := read[version]
		if !known {
			read[version] = m
			j.seen["results"]++
		} else if was := strings.Join(first.what[2:],
			" "); was != value && !j.isForgotten(version) && j.versions[version] != nil {
			j.breach("results", []int{first.line, m.line}, "%s reads %q in version %d, where %s read %q", node, value,
				j.versions[version].Number, first.what[0], was)
		}
	}
}

// checkAbandoned checks that a host begins at most one more step of a version that the fleet left: it had compared the
// version just before.
func (j *judge) checkAbandoned() {
	for i, f := range j.facts["current"] {
		if i == 0 || f.what[1] == j.facts["current"][i-1].what[1] {
			continue
		}
		left, until := j.facts["current"][i-1].what[0], len(j.lines)
		for _, next := range j.facts["current"][i:] {
			if next.what[0] == left {
				until = min(until, next.line)
			}
		}
		for _, m := range j.marks["restored"] { // the fleet may be at it again
			if m.line > f.line {
				until = min(until, m.line)
			}
		}
		begun := map[string][]int{}
		for _, s := range j.stints {
			if s.version == left && s.fence != 0 && s.from > f.line && s.from < until && left != f.what[0] {
				begun[s.host] = append(begun[s.host], s.from)
			}
		}
		j.seen["versions left"]++
		for _, host := range slices.Sorted(maps.Keys(begun)) {
			if lines := begun[host]; len(lines) > 1 && j.versions[left] != nil {
				j.breach("abandoned", append(lines, f.line), "%s begins %d more steps of version %d after the fleet left it", host,
					len(lines), j.versions[left].Number)
			}
		}
	}
}

// checkWithoutEtcd checks that a host begins at most one step without etcd, before which it had asked etcd.
func (j *judge) checkWithoutEtcd() {
	for _, away := range j.marks["away"] {
		back := len(j.lines)
		for _, m := range j.marks["back"] {
			if m.line > away.line {
				back = min(back, m.line)
			}
		}
		j.checkAtMostOne("without etcd", "without etcd", away.line, back, func(s *stint) bool { return true })
	}
}

// checkAtMostOne checks that each host begins at most one step under a claim between two lines.
func (j *judge) checkAtMostOne(promise, when string, from, to int, of func(*stint) bool) {
	begun := map[string][]int{}
	for _, s := range j.stints {
		if s.fence != 0 && s.from > from && s.from < to && of(s) {
			begun[s.host] = append(begun[s.host], s.from)
		}
	}
	for _, host := range slices.Sorted(maps.Keys(begun)) {
		if lines := begun[host]; len(lines) > 1 {
			j.breach(promise, append(lines, from), "%s begins %d steps %s", host, len(lines), when)
		}
	}
}

// checkCommands checks the commands of operators: two hosts at a time, once on each host, stage after stage. It does
// not check a command that was killed, whose end is unknown.
func (j *judge) checkCommands() {
	ran := map[string]*stint{}
	for _, s := range j.stints {
		if !strings.HasPrefix(s.step, "run") {
			continue
		}
		j.seen["commands of operators"]++
		if old := ran[s.step+" "+s.host]; old != nil && !j.wasReverted(s.host, old.from, s.from) &&
			!j.wasRestored(old.from, s.from) {
			j.breach("run", []int{old.from, s.from}, "%s runs %s twice", s.host, s.step)
		}
		ran[s.step+" "+s.host] = s
		lines := []int{s.from}
		for _, o := range j.stints {
			if o.step == s.step && o.host != s.host && o.contains(s.from) && !j.wasRestored(o.from, s.from) {
				lines = append(lines, o.from, o.to)
			}
		}
		if n := (len(lines) + 1) / 2; n > 2 {
			j.breach("run", lines, "%s begins %s as the %d., where 2 may at a time", s.host, s.step, n)
		}
		j.checkStages(s)
	}
}

// checkStages checks that the nodes of all earlier stages ran a command, except for decommissioned nodes.
func (j *judge) checkStages(s *stint) {
	given := slices.IndexFunc(j.facts["given"], func(f fact) bool { return f.what[0] == s.step })
	if given < 0 {
		return
	}
	for stage := range strings.SplitSeq(j.facts["given"][given].what[1], ";") {
		nodes := strings.Split(stage, ",")
		if slices.Contains(nodes, s.node) {
			return
		}
		for _, node := range nodes {
			ran := func(o *stint) bool { return o.node == node && o.step == s.step && o.code == 0 && o.to < s.from }
			gone := func(m mark) bool { return m.what[0] == node && m.line < s.from }
			if !slices.ContainsFunc(j.stints, ran) && !slices.ContainsFunc(j.marks["decommission"], gone) {
				j.breach("run", []int{s.from, j.lastLine(node, s.from)}, "%s begins %s before %s of an earlier stage ran it",
					s.node, s.step, node)
			}
		}
	}
}
