package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// stormBreach is a promise that a log shows to be broken, with the lines that show it.
type stormBreach struct {
	promise string
	text    string
	lines   []int
}

// stormJudge holds a log against the promises of docs/faults.md. It knows no time: what it says rests on the order of
// lines, on which of them lie between others, and on etcd's revisions, of which a claim's fence is one. Where a log
// leaves it open who came first, nothing is said.
type stormJudge struct {
	*stormLog
	breaches []stormBreach
	seen     map[string]int // how often there was something to judge
}

// judgeStorm is what a log shows.
func judgeStorm(l *stormLog) *stormJudge {
	j := &stormJudge{stormLog: l, seen: map[string]int{}}
	for _, h := range l.holds {
		j.turns(h)
		if h.back { // it is not an admission
			continue
		}
		j.limits(h)
		j.order(h)
		j.stopped(h)
	}
	for _, s := range l.stints {
		j.known(s)
		j.alone(s)
		j.serial(s)
		j.barrier(s)
	}
	j.elections()
	j.results()
	j.abandoned()
	j.commands()
	j.withoutEtcd()
	j.seen["restores"] = len(j.marks["restored"])
	return j
}

func (j *stormJudge) breach(promise string, lines []int, format string, args ...any) {
	slices.Sort(lines)
	j.breaches = append(j.breaches, stormBreach{promise, fmt.Sprintf(format, args...), slices.Compact(lines)})
}

// during reports that a line lies within a stint.
func (s *stormStint) during(line int) bool { return s.from < line && line < s.to && !s.vanished }

// beside reports that one node held its claim when another was made. What it does is inside the claim from before its
// first line: the claim of h is older, and something is done under it after the other's first step began.
func (h *stormHold) beside(other *stormHold) bool {
	older := h.era < other.era || h.era == other.era && h.fence < other.fence
	return h.node != other.node && older && h.to > other.from
}

// takenBack reports that a claim was taken from a node before another one was made: it finishes the step that it is in.
func (j *stormJudge) takenBack(h, before *stormHold) bool {
	for _, f := range j.facts["lost"] {
		if j.has(before.era, f) && f.rev < before.fence && f.what[0] == h.node && f.what[1] == fmt.Sprint(h.fence) {
			return true
		}
	}
	for _, m := range j.marks["decommission"] {
		if m.what[0] == h.node && m.line < before.from && m.line > h.from {
			return true
		}
	}
	return false
}

// limits judges an admission: the node's group, as it was when any of those that change belonged to it or as it is now,
// and the whole fleet.
func (j *stormJudge) limits(h *stormHold) {
	v := j.versions[h.version]
	if v == nil {
		return // known says so
	}
	group, limit := v.Groups[h.node], v.Limits[v.Groups[h.node]]
	inGroup, inFleet := []*stormHold{h}, []*stormHold{h}
	for _, o := range j.holds {
		if !o.beside(h) || j.unknown(o, h) || j.takenBack(o, h) || j.sick(o.node, o.version, h.from) { // a host fault leaves room for another host
			continue
		}
		before, waits := j.counts(o, h)
		if before == group || v.Groups[o.node] == group {
			inGroup = append(inGroup, o)
		}
		if !waits && o.anywhere(h) {
			inFleet = append(inFleet, o)
		}
	}
	j.seen["admissions"]++
	j.seen["most of a group at a time"] = max(j.seen["most of a group at a time"], len(inGroup))
	if len(inGroup) > limit {
		j.breach("limit", holdLines(inGroup, h), "%s is admitted to version %d as one of %s, where %d may change at a time: %s", h.node, v.Number, group, limit, holders(inGroup))
	}
	if v.Total > 0 && len(inFleet) > v.Total {
		j.breach("total", holdLines(inFleet, h), "%s is admitted to version %d, where %d of the whole fleet may change at a time: %s", h.node, v.Number, v.Total, holders(inFleet))
	}
}

// counts is the group in which a holder counts beside that of today when another node is admitted: that of the version
// with which it made its claim. While it waits for other groups it counts in its current group only, and then where it
// goes on.
func (j *stormJudge) counts(o, admitted *stormHold) (before string, waits bool) {
	version := o.version
	for _, f := range j.facts["idle"] {
		if f.what[0] != o.node || !j.has(admitted.era, f) || f.rev <= o.fence || f.rev >= admitted.fence {
			continue
		}
		if waits && f.what[1] == "off" {
			version = j.at(admitted.era, f.rev, version)
		}
		waits = f.what[1] == "on"
	}
	if was := j.versions[version]; was != nil && !waits && !o.back {
		before = was.Groups[o.node]
	}
	return before, waits
}

// anywhere reports that a node had its place in the whole fleet when another was admitted. One that adopts its claim
// for another version may give the place back in between: what counts is what it did for one version, before and after.
func (h *stormHold) anywhere(other *stormHold) bool {
	for i, s := range h.stints {
		first := i == 0 || h.stints[0].version == s.version
		if s.to > other.from && (s.from < other.from && s.during(other.from) || first && !s.vanished) {
			return true
		}
	}
	return false
}

func holders(holds []*stormHold) string {
	var names []string
	for _, h := range holds {
		names = append(names, fmt.Sprintf("%s (claim %d)", h.node, h.fence))
	}
	return strings.Join(names, ", ")
}

// holdLines are the lines that show who held what: for each node the last before the admission and the first after it.
func holdLines(holds []*stormHold, admitted *stormHold) (out []int) {
	for _, h := range holds {
		before, after := h.from, h.to
		for _, s := range h.stints {
			if s.from <= admitted.from {
				before = s.from
			}
			if s.to >= admitted.from {
				after = min(after, s.to)
			}
		}
		if out = append(out, before); h != admitted {
			out = append(out, after)
		}
	}
	return out
}

// order judges that all of the groups that come before the node's own are through.
func (j *stormJudge) order(h *stormHold) {
	v := j.versions[h.version]
	if v == nil {
		return
	}
	for _, group := range v.Depends[v.Groups[h.node]] {
		for _, node := range slices.Sorted(maps.Keys(v.Groups)) {
			if v.Groups[node] != group || j.through(node, v, h.from) || j.givenUp(node, v, h.from) {
				continue
			}
			j.breach("dependencies", []int{h.from, j.last(node, h.from)}, "%s is admitted to version %d as one of %s before %s of %s is through", h.node, v.Number, v.Groups[h.node], node, group)
		}
		j.seen["admissions after other groups"]++
	}
}

// through reports that a node had run a version to its end before a line.
func (j *stormJudge) through(node string, v *stormVersion, before int) bool {
	return slices.ContainsFunc(j.stints, func(s *stormStint) bool {
		return s.node == node && s.version == v.ID && s.step == stormLast && s.code == 0 && s.to < before
	})
}

// givenUp reports that nobody has to wait for a node in a version: an operator said so, its lease ended where the rules
// give such nodes up, or it has a host fault, of which a group stands some.
func (j *stormJudge) givenUp(node string, v *stormVersion, before int) bool {
	return v.OnLost == "release" && j.silent(node, v) || j.sick(node, v.ID, before) ||
		slices.ContainsFunc(j.marks["decommission"], func(m stormMark) bool { return m.what[0] == node && m.line < before })
}

// sick reports a host fault since the fleet came to a version.
func (j *stormJudge) sick(node, version string, before int) bool {
	for _, at := range j.facts["current"] {
		if at.what[0] == version {
			return slices.ContainsFunc(j.marks["sick"], func(m stormMark) bool { return m.what[0] == node && at.line < m.line && m.line < before })
		}
	}
	return false
}

// silent reports that a node's lease ended since the fleet came to a version, or had ended before: the log says at
// which revision, not beside which lines.
func (j *stormJudge) silent(node string, v *stormVersion) bool {
	for _, at := range j.facts["current"] {
		if at.what[0] == v.ID {
			return j.away(node, at) || slices.ContainsFunc(j.facts["silent"], func(f stormFact) bool {
				return f.what[0] == node && (f.era > at.era || f.era == at.era && f.rev > at.rev)
			})
		}
	}
	return false
}

// away reports a node that had no lease any more at some fact.
func (j *stormJudge) away(node string, at stormFact) bool {
	last := func(what string) (rev int64) {
		for _, f := range j.facts[what] {
			if f.what[0] == node && j.has(at.era, f) && f.rev < at.rev {
				rev = max(rev, f.rev)
			}
		}
		return rev
	}
	return last("silent") > last("alive")
}

// last is the last line of a node before another line, or that line.
func (j *stormJudge) last(node string, before int) int {
	at := before
	for _, s := range j.stints {
		if s.node == node && s.from < before {
			at = s.from
			if s.to < before {
				at = s.to
			}
		}
	}
	return at
}

// stopped judges an admission against what held it up: a halt, a pause, a switch, a window, canaries that are watched.
func (j *stormJudge) stopped(h *stormHold) {
	v := j.versions[h.version]
	if v == nil {
		return
	}
	group := v.Groups[h.node]
	for _, scope := range []string{group, "*"} {
		if f := j.asOf("gate", h, func(w []string) bool { return baseVersion(w[0]) == h.version && j.isCurrent(h, w[0]) && w[1] == scope }); f != nil && f.what[2] == "halted" && !j.failed(h) {
			j.breach("halt", []int{f.line, h.from}, "%s is admitted to version %d at revision %d although %s is halted there since revision %d", h.node, v.Number, h.fence, scope, f.rev)
		}
	}
	if f := j.asOf("switch", h, func(w []string) bool { return w[0] == "pause" }); f != nil && f.what[1] == "off" {
		j.breach("pause", []int{f.line, h.from}, "%s is admitted at revision %d in a pause since revision %d", h.node, h.fence, f.rev)
	}
	if f := j.asOf("switch", h, func(w []string) bool { return w[0] == "store" }); f != nil && f.what[1] == "off" && f.era == h.era {
		j.breach("restore", []int{f.line, h.from}, "%s is admitted at revision %d although etcd was restored and nobody accepted it since revision %d", h.node, h.fence, f.rev)
	}
	if f := j.switched(h, v.Roles[h.node]); f != nil {
		j.breach("disable", []int{f.line, h.from}, "%s is admitted at revision %d although %s is disabled since revision %d", h.node, h.fence, f.what[0], f.rev)
	}
	if v.Closed && group != "canary" {
		j.breach("window", []int{h.from}, "%s is admitted to version %d outside of its maintenance window", h.node, v.Number)
	}
	for _, before := range v.Depends[group] {
		if f := j.asOf("soak", h, func(w []string) bool { return j.isCurrent(h, w[0]) && w[1] == before }); f != nil && f.what[2] == "on" {
			j.breach("soak", []int{f.line, h.from}, "%s is admitted at revision %d while %s is watched since revision %d", h.node, h.fence, before, f.rev)
		}
	}
}

// failed reports a node on which something of the version failed before: it may try again under a halt.
func (j *stormJudge) failed(h *stormHold) bool {
	return slices.ContainsFunc(j.stints, func(s *stormStint) bool {
		bad := s.code != 0 || s.step == stormLast && j.versions[h.version].Bad == "validation"
		return s.node == h.node && s.version == h.version && s.from < h.from && bad
	})
}

// baseVersion is the version of a rollout: one that was set again has a number behind it.
func baseVersion(rollout string) string {
	version, _, _ := strings.Cut(rollout, ".")
	return version
}

// isCurrent reports that the fleet was in a rollout when a claim was made.
func (j *stormJudge) isCurrent(h *stormHold, rollout string) bool {
	now := ""
	for _, f := range j.facts["current"] {
		if j.has(h.era, f) && f.rev <= h.fence {
			now = f.what[1]
		}
	}
	return now == rollout
}

// asOf is the last fact of a kind before a claim.
func (j *stormJudge) asOf(what string, h *stormHold, of func([]string) bool) *stormFact {
	var found *stormFact
	for i, f := range j.facts[what] {
		if j.has(h.era, f) && f.rev < h.fence && of(f.what) {
			found = &j.facts[what][i]
		}
	}
	return found
}

// switched is the operator's switch that kept a node where it was when it made a claim: that of the host counts before
// its role's, and that before the one for all.
func (j *stormJudge) switched(h *stormHold, role string) *stormFact {
	for _, scope := range []string{"host/" + h.node, "role/" + role, "global"} {
		f := j.asOf("switch", h, func(w []string) bool { return w[0] == scope })
		switch {
		case f == nil || f.what[1] == "-":
		case f.what[1] == "off":
			return f
		case f.what[1] == "on" || f.what[1] == h.version:
			return nil
		default:
			return f
		}
	}
	return nil
}

// known judges that a step is of a version that the fleet was at, and that what changes a node is done under a claim.
func (j *stormJudge) known(s *stormStint) {
	if strings.HasPrefix(s.step, "run") { // of an operator, and of no version
		return
	}
	j.seen["steps"]++
	if j.versions[s.version] == nil || !slices.ContainsFunc(j.facts["current"], func(f stormFact) bool { return f.what[0] == s.version }) {
		j.breach("versions", []int{s.from}, "%s runs a step of %s, which the fleet was never at", s.node, s.version)
		return
	}
	if s.fence == 0 && s.step != stormMeet && !j.through(s.node, j.versions[s.version], s.from) {
		j.breach("claims", []int{s.from}, "%s runs %s of version %d without a claim, and has not run that version before", s.node, s.step, j.versions[s.version].Number)
	}
	if v := j.newest(s); v != "" {
		j.breach("forward", []int{s.from}, "%s runs a step of version %d, after one of version %d, and no operator went back", s.node, j.versions[s.version].Number, j.versions[v].Number)
	}
}

// newest is a newer version that a host had begun before a step of an older one, when the fleet did not go back in
// between.
func (j *stormJudge) newest(s *stormStint) string {
	from := -1
	for _, what := range []string{"reverted", "restored"} {
		for _, m := range j.marks[what] {
			if m.line < s.from && (what == "restored" || m.what[0] == s.host) {
				from = max(from, m.line)
			}
		}
	}
	number := func(id string) int {
		if v := j.versions[id]; v != nil {
			return v.Number
		}
		return 0
	}
	var was *stormStint
	for _, o := range j.stints {
		if o.host == s.host && o.fence != 0 && o.from > from && o.from < s.from && number(o.version) > number(s.version) {
			was = o
		}
	}
	if was == nil || s.fence == 0 { // drift of what runs is corrected until its turn comes
		return ""
	}
	at, back := 0, false
	for _, f := range j.facts["current"] {
		if number(f.what[0]) < at {
			back = true
		}
		at = number(f.what[0])
	}
	if back { // where the fleet went back, it is enough that it was at the version after the newer one
		return j.neverAgain(was, s)
	}
	return was.version
}

// neverAgain is the newer version when the fleet was never again at the older one behind it.
func (j *stormJudge) neverAgain(newer, older *stormStint) string {
	passed := false
	for _, f := range j.facts["current"] {
		if f.what[0] == newer.version {
			passed = true
		}
		if passed && f.what[0] == older.version {
			return ""
		}
	}
	return newer.version
}

// alone judges that one host at a time works in the name of a node, one step after the other.
func (j *stormJudge) alone(s *stormStint) {
	for _, o := range j.stints {
		if o.node == s.node && o != s && o.during(s.from) {
			j.breach("one host a node", []int{o.from, s.from, o.to}, "%s runs %s on %s while it runs %s on %s", s.node, s.step, s.host, o.step, o.host)
			return
		}
	}
}

// turns judges that one host goes on under a claim, and does not take turns with another one that has its name.
func (j *stormJudge) turns(h *stormHold) {
	var hosts []*stormStint
	for _, s := range h.stints {
		if n := len(hosts); n == 0 || hosts[n-1].host != s.host {
			hosts = append(hosts, s)
		}
	}
	if len(hosts) > 2 {
		j.breach("one host a node", []int{hosts[0].from, hosts[1].from, hosts[2].from}, "%s runs steps on %s and on %s under claim %d", h.node, hosts[0].host, hosts[1].host, h.fence)
	}
}

// serial judges a serialized step. Each job has its own.
func (j *stormJudge) serial(s *stormStint) {
	v := j.versions[s.version]
	if s.step != stormSerial || v == nil {
		return
	}
	at, lines := 1, []int{s.from}
	for _, o := range j.stints {
		if o.step == stormSerial && o.node != s.node && o.during(s.from) && sameJob(v, o.node, s.node) && !j.released(o, s) {
			at, lines = at+1, append(lines, o.from, o.to)
		}
	}
	j.seen["serialized steps"]++
	if w := j.serialLimit(s); at > w {
		j.breach("serialize", lines, "%s begins the serialized step of version %d as the %d., where %d may at a time", s.node, v.Number, at, w)
	}
}

// serialLimit is how many may be at the step by the version of any of those that are there: the log does not say who
// came last.
func (j *stormJudge) serialLimit(s *stormStint) int {
	most := j.versions[s.version].Serial
	for _, o := range j.stints {
		if o.step == stormSerial && o.during(s.from) && j.versions[o.version] != nil {
			most = max(most, j.versions[o.version].Serial)
		}
	}
	return most
}

// sameJob reports nodes whose serialized steps are one: those with a barrier have another job than those without.
func sameJob(v *stormVersion, a, b string) bool { return (v.Meet[a] == "") == (v.Meet[b] == "") }

// released reports that a place at a step was taken back while its node was in it.
func (j *stormJudge) released(o, by *stormStint) bool {
	for _, f := range j.facts["lost"] {
		if f.what[0] == o.node && f.line > o.from {
			return true
		}
	}
	return slices.ContainsFunc(j.marks["decommission"], func(m stormMark) bool { return m.what[0] == o.node && m.line > o.from && m.line < by.from })
}

// barrier judges a step behind one: all who have to come there came, or are excused.
func (j *stormJudge) barrier(s *stormStint) {
	v := j.versions[s.version]
	if s.step != stormBehind || v == nil || v.Meet[s.node] == "" {
		return
	}
	j.seen["steps behind barriers"]++
	for _, node := range slices.Sorted(maps.Keys(v.Meet)) {
		if v.Meet[node] == v.Meet[s.node] && !j.came(node, s) && !j.givenUp(node, v, s.from) && !j.excused(node, v, s.from) {
			j.breach("barrier", []int{s.from, j.last(node, s.from)}, "%s goes behind the barrier of version %d before %s came there", s.node, v.Number, node)
		}
	}
}

func (j *stormJudge) came(node string, behind *stormStint) bool {
	return slices.ContainsFunc(j.stints, func(s *stormStint) bool {
		return s.node == node && s.version == behind.version && s.step == stormMeet && s.code == 0 && s.to < behind.from
	})
}

// excused reports a node that was switched off at some time since the version was pushed, and had begun nothing of it
// before.
func (j *stormJudge) excused(node string, v *stormVersion, before int) bool {
	began := math.MaxInt
	for _, s := range j.stints {
		if s.node == node && s.version == v.ID && s.fence != 0 {
			began = min(began, s.from)
		}
	}
	for i, f := range j.facts["switch"] {
		hits := f.what[0] == "host/"+node || f.what[0] == "role/"+v.Roles[node] || f.what[0] == "global"
		if hits && f.what[1] != "on" && f.what[1] != "-" && f.line < before && f.line < began && !j.lifted(i, v) {
			return true
		}
	}
	return false
}

// lifted reports a switch that was lifted before the fleet came to a version.
func (j *stormJudge) lifted(at int, v *stormVersion) bool {
	off := j.facts["switch"][at]
	for _, came := range j.facts["current"] {
		if came.what[0] != v.ID {
			continue
		}
		return slices.ContainsFunc(j.facts["switch"][at+1:], func(f stormFact) bool {
			return f.what[0] == off.what[0] && f.era == came.era && f.rev < came.rev && f.what[1] != "off"
		})
	}
	return false
}
