package judge

import (
	"maps"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/harness/rules"
)

// checkVersion checks that the fleet was at the version of a step, and that a step that changes a node runs under a
// claim.
func (j *judge) checkVersion(s *stint) {
	if strings.HasPrefix(s.step, "run") { // of an operator, and of no version
		return
	}
	j.seen["steps"]++
	if j.versions[s.version] == nil || !slices.ContainsFunc(j.facts["current"],
		func(f fact) bool { return f.what[0] == s.version }) {
		j.breach("versions", []int{s.from}, "%s runs a step of %s, which the fleet was never at", s.node, s.version)
		return
	}
	if s.fence == 0 && s.step != rules.Meet && !j.isDone(s.node, j.versions[s.version], s.from) {
		j.breach("claims", []int{s.from}, "%s runs %s of version %d without a claim, and has not run that version before",
			s.node, s.step, j.versions[s.version].Number)
	}
	if v := j.newerVersion(s); v != "" {
		j.breach("forward", []int{s.from}, "%s runs a step of version %d, after one of version %d, and no operator went back",
			s.node, j.versions[s.version].Number, j.versions[v].Number)
	}
}

// newerVersion returns a newer version that the host had begun before a step of an older one if the fleet did not go
// back in between, or "".
func (j *judge) newerVersion(s *stint) string {
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
	var was *stint
	for _, o := range j.stints {
		if o.host == s.host && o.fence != 0 && o.from > from && o.from < s.from && number(o.version) > number(s.version) {
			was = o
		}
	}
	if was == nil || s.fence == 0 { // it corrects the drift of its version until it has a slot
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
		return j.skippedVersion(was, s)
	}
	return was.version
}

// skippedVersion returns the newer version if the fleet never was at the older one after it, or "".
func (j *judge) skippedVersion(newer, older *stint) string {
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

// checkOneHost checks that one host at a time works as a node, one step after the other.
func (j *judge) checkOneHost(s *stint) {
	for _, o := range j.stints {
		if o.node == s.node && o != s && o.contains(s.from) {
			j.breach("one host a node", []int{o.from, s.from, o.to}, "%s runs %s on %s while it runs %s on %s", s.node, s.step,
				s.host, o.step, o.host)
			return
		}
	}
}

// checkTurns checks that one host works under a claim, and does not alternate with another one that has its name.
func (j *judge) checkTurns(h *hold) {
	var hosts []*stint
	for _, s := range h.stints {
		if n := len(hosts); n == 0 || hosts[n-1].host != s.host {
			hosts = append(hosts, s)
		}
	}
	if len(hosts) > 2 {
		j.breach("one host a node", []int{hosts[0].from, hosts[1].from, hosts[2].from},
			"%s runs steps on %s and on %s under claim %d", h.node, hosts[0].host, hosts[1].host, h.fence)
	}
}

// checkSerial checks the limit of a serialized step. Each job has its own.
func (j *judge) checkSerial(s *stint) {
	v := j.versions[s.version]
	if s.step != rules.Serial || v == nil {
		return
	}
	at, lines := 1, []int{s.from}
	for _, o := range j.stints {
		if o.step == rules.Serial && o.node != s.node && o.contains(s.from) && sameJob(v, o.node, s.node) &&
			!j.isReleased(o, s) {
			at, lines = at+1, append(lines, o.from, o.to)
		}
	}
	j.seen["serialized steps"]++
	if w := j.serialLimit(s); at > w {
		j.breach("serialize", lines, "%s begins the serialized step of version %d as the %d., where %d may at a time", s.node,
			v.Number, at, w)
	}
}

// serialLimit returns the highest limit of the versions of all nodes that are at the step: the log does not show which
// of them came last.
func (j *judge) serialLimit(s *stint) int {
	most := j.versions[s.version].Serial
	for _, o := range j.stints {
		if o.step == rules.Serial && o.contains(s.from) && j.versions[o.version] != nil {
			most = max(most, j.versions[o.version].Serial)
		}
	}
	return most
}

// sameJob reports whether two nodes share a serialized step: nodes with a barrier have another job than those without.
func sameJob(v *rules.Version, a, b string) bool { return (v.Meet[a] == "") == (v.Meet[b] == "") }

// checkBarrier checks that all participants of a barrier arrived, or are exempt, before a step after it.
func (j *judge) checkBarrier(s *stint) {
	v := j.versions[s.version]
	if s.step != rules.Behind || v == nil || v.Meet[s.node] == "" {
		return
	}
	j.seen["steps behind barriers"]++
	for _, node := range slices.Sorted(maps.Keys(v.Meet)) {
		if v.Meet[node] == v.Meet[s.node] && !j.hasArrived(node, s) && !j.isExempt(node, v, s.from) &&
			!j.wasDisabled(node, v, s.from) {
			j.breach("barrier", []int{s.from, j.lastLine(node, s.from)},
				"%s passes the barrier of version %d before %s arrived", s.node, v.Number, node)
		}
	}
}
