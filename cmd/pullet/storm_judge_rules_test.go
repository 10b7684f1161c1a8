package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// elections judges steps that one node takes for all: once for a version, but for those that failed.
func (j *stormJudge) elections() {
	ran := map[string][]*stormStint{}
	for _, s := range j.stints {
		if s.step == stormToken && s.code <= 0 {
			ran[s.version] = append(ran[s.version], s)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ran)) {
		j.seen["elections"]++
		if all := ran[id]; len(all) > 1 && j.versions[id] != nil && !j.forgotten(id) {
			lines := []int{}
			for _, s := range all {
				lines = append(lines, s.from)
			}
			j.breach("elections", lines, "the step that one node takes for all ran %d times in version %d", len(all), j.versions[id].Number)
		}
	}
}

// forgotten reports that etcd was restored while the fleet was at a version: what it had on record of that is gone.
func (j *stormJudge) forgotten(version string) bool {
	for _, m := range j.marks["restored"] {
		at := ""
		for _, f := range j.facts["current"] {
			if f.line < m.line {
				at = f.what[0]
			}
		}
		if at == version {
			return true
		}
	}
	return false
}

// results judges that all who read a result in a version read the same one.
func (j *stormJudge) results() {
	read := map[string]stormMark{}
	for _, m := range j.marks["value"] {
		node, version, value := m.what[0], m.what[1], strings.Join(m.what[2:], " ")
		first, known := read[version]
		if !known {
			read[version] = m
			j.seen["results"]++
		} else if was := strings.Join(first.what[2:], " "); was != value && !j.forgotten(version) && j.versions[version] != nil {
			j.breach("results", []int{first.line, m.line}, "%s reads %q in version %d, where %s read %q", node, value, j.versions[version].Number, first.what[0], was)
		}
	}
}

// abandoned judges that a node that changes to a version begins at most one more of its steps once the fleet left that:
// it had compared the version just before.
func (j *stormJudge) abandoned() {
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
				j.breach("abandoned", append(lines, f.line), "%s begins %d more steps of version %d after the fleet left it", host, len(lines), j.versions[left].Number)
			}
		}
	}
}

// withoutEtcd judges that no node goes on without etcd: at most one step, before which it had looked.
func (j *stormJudge) withoutEtcd() {
	for _, away := range j.marks["away"] {
		back := len(j.lines)
		for _, m := range j.marks["back"] {
			if m.line > away.line {
				back = min(back, m.line)
			}
		}
		j.few("without etcd", "without etcd", away.line, back, func(s *stormStint) bool { return true })
	}
}

// unknown reports a claim that a restored etcd has forgotten, when another node is admitted before anybody who knows
// better came (I16).
func (j *stormJudge) unknown(o, admitted *stormHold) bool {
	if j.has(admitted.era, stormFact{era: o.era, rev: o.fence}) {
		return false
	}
	doubted := j.asOf("switch", admitted, func(w []string) bool { return w[0] == "store" })
	return (doubted == nil || doubted.era < admitted.era) && !slices.ContainsFunc(j.marks["accepted"], func(m stormMark) bool {
		return m.line < admitted.from && slices.ContainsFunc(j.marks["restored"], func(r stormMark) bool {
			return r.what[0] == fmt.Sprint(admitted.era) && r.line < m.line
		})
	})
}

// few judges that each host begins at most one step under a claim between two lines.
func (j *stormJudge) few(promise, when string, from, to int, of func(*stormStint) bool) {
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

// commands judges what operators had nodes run: two at a time, once on each host, and stage after stage. A command that
// was cut off is not judged: nobody knows when it ended.
func (j *stormJudge) commands() {
	ran := map[string]*stormStint{}
	for _, s := range j.stints {
		if !strings.HasPrefix(s.step, "run") {
			continue
		}
		j.seen["commands of operators"]++
		if old := ran[s.step+" "+s.host]; old != nil && !j.wiped(s.host, old.from, s.from) && !j.restored(old.from, s.from) {
			j.breach("run", []int{old.from, s.from}, "%s runs %s twice", s.host, s.step)
		}
		ran[s.step+" "+s.host] = s
		lines := []int{s.from}
		for _, o := range j.stints {
			if o.step == s.step && o.host != s.host && o.during(s.from) && !j.restored(o.from, s.from) {
				lines = append(lines, o.from, o.to)
			}
		}
		if n := (len(lines) + 1) / 2; n > 2 {
			j.breach("run", lines, "%s begins %s as the %d., where 2 may at a time", s.host, s.step, n)
		}
		j.stages(s)
	}
}

// stages judges that the nodes of all stages before ran a command, but for those that were given up.
func (j *stormJudge) stages(s *stormStint) {
	given := slices.IndexFunc(j.facts["given"], func(f stormFact) bool { return f.what[0] == s.step })
	if given < 0 {
		return
	}
	for stage := range strings.SplitSeq(j.facts["given"][given].what[1], ";") {
		nodes := strings.Split(stage, ",")
		if slices.Contains(nodes, s.node) {
			return
		}
		for _, node := range nodes {
			ran := func(o *stormStint) bool { return o.node == node && o.step == s.step && o.code == 0 && o.to < s.from }
			gone := func(m stormMark) bool { return m.what[0] == node && m.line < s.from }
			if !slices.ContainsFunc(j.stints, ran) && !slices.ContainsFunc(j.marks["decommission"], gone) {
				j.breach("run", []int{s.from, j.last(node, s.from)}, "%s begins %s before %s of an earlier stage ran it", s.node, s.step, node)
			}
		}
	}
}

// restored reports that etcd was restored between two lines: what was on record of the first may be forgotten.
func (j *stormJudge) restored(from, to int) bool {
	return slices.ContainsFunc(j.marks["restored"], func(m stormMark) bool { return from < m.line && m.line < to })
}

// wiped reports a host that lost what it knew between two lines.
func (j *stormJudge) wiped(host string, from, to int) bool {
	return slices.ContainsFunc(j.marks["reverted"], func(m stormMark) bool { return m.what[0] == host && from < m.line && m.line < to })
}

// verdict is what people read of a judged log: each breach with its lines, the first ones of each promise.
func (j *stormJudge) verdict() string {
	var b strings.Builder
	told := map[string]int{}
	for _, one := range j.breaches {
		if told[one.promise]++; told[one.promise] > 5 {
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", one.promise, one.text)
		for _, line := range one.lines {
			fmt.Fprintf(&b, "  %s\n", j.show(line))
		}
	}
	for _, promise := range slices.Sorted(maps.Keys(told)) {
		if told[promise] > 5 {
			fmt.Fprintf(&b, "%s: and %d more\n", promise, told[promise]-5)
		}
	}
	return b.String()
}

// schedule are the lines that say what was done to the fleet.
func (l *stormLog) schedule() string {
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
