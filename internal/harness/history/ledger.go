package history

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// stint is one run of the command of a step on a node.
type stint struct {
	step, node, version string
	fence               int64
	from, to            time.Time // to is zero if it was killed
}

// String describes a run in a message.
func (s *stint) String() string {
	return fmt.Sprintf("%s on %s from %s to %s", s.step, s.node, s.from.Format(time.RFC3339Nano),
		s.to.Format(time.RFC3339Nano))
}

// readLedger reads the ledger of a node.
func (j *judge) readLedger(node string) (out []*stint) {
	text, err := os.ReadFile(filepath.Join(j.Dir, node, "root/ledger"))
	if err != nil {
		j.breach("%v", err)
	}
	for line := range strings.Lines(string(text)) {
		s := &stint{}
		var what string
		var nanos int64
		if _, err := fmt.Sscanf(line, "%s %s %s %s %d %d", &what, &s.step, &s.node, &s.version, &s.fence,
			&nanos); err != nil {
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

// checkLedgers checks the ledgers of all nodes against the gates in etcd.
func (j *judge) checkLedgers() {
	j.rev = 0
	tokens, serial, values := map[string][]*stint{}, []*stint{}, map[string]bool{}
	for _, node := range slices.Sorted(maps.Keys(j.Roles)) {
		for _, s := range j.readLedger(node) {
			j.seen["commands"]++
			j.checkFenced(s)
			switch s.step {
			case "token":
				tokens[s.version] = append(tokens[s.version], s)
			case "restart":
				serial = append(serial, s)
			case "behind":
				j.checkBehind(s)
			}
		}
		j.checkEnd(node, values)
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
	j.checkSerialized(serial)
}

// checkFenced checks that the node checked its claim before it started a command. A parked node that has nothing left
// to change has no claim.
func (j *judge) checkFenced(s *stint) {
	id := map[string]string{"work": "site/work", "restart": "site/restart", "token": "cluster/token",
		"join": "cluster/join", "meet": "cluster/meet", "behind": "cluster/behind"}[s.step]
	for _, c := range j.claims[s.fence] {
		if c.Node == s.node && c.Version == s.version && c.Step == id && !c.Since.After(s.from) {
			if at, lost := j.lost[s.fence]; lost && c.Since.After(at) {
				j.breach("%s starts %s of version %d under a reclaimed claim", s.node, s.step, j.order[s.version])
			}
			return
		}
	}
	j.breach("%s starts %s of version %d at %s under claim %d, which was not checked before: %+v", s.node, s.step,
		j.order[s.version], s.from.Format(time.RFC3339Nano), s.fence, j.claims[s.fence])
}

// checkBehind checks that a step after a barrier started after its opening.
func (j *judge) checkBehind(s *stint) {
	at, open := j.opened[s.version+" "+s.node]
	if opened, err := time.Parse(time.RFC3339Nano, at); !open || err != nil || s.from.Before(opened) {
		j.breach("%s passes the barrier of version %d at %s, which opened at %q", s.node, j.order[s.version],
			s.from.Format(time.RFC3339Nano), at)
	}
	j.seen["commands behind barriers"]++
}

// checkSerialized checks that no two runs of a serialized step overlap, of those with a recorded end.
func (j *judge) checkSerialized(all []*stint) {
	slices.SortFunc(all, func(a, b *stint) int { return a.from.Compare(b.from) })
	var last *stint
	for _, s := range all {
		// A node that the rules release may continue its step.
		if last != nil && s.from.Before(last.to) && !(j.OnLost == "release" && last.to.Sub(last.from) > time.Minute) {
			j.breach("the serialized step runs on two nodes: %s and %s", last, s)
		}
		if last == nil || s.to.After(last.to) {
			last = s
		}
	}
}

// checkEnd checks the last version of a node, and adds its token.
func (j *judge) checkEnd(node string, tokens map[string]bool) {
	version, err := os.ReadFile(filepath.Join(j.Dir, node, "root/etc/version"))
	if err != nil || string(version) != fmt.Sprintln(len(j.Versions)) {
		j.breach("%s is at version %q: %v", node, version, err)
	}
	if j.Roles[node] == "can" {
		return
	}
	token, err := os.ReadFile(filepath.Join(j.Dir, node, "root/etc/token"))
	if err != nil {
		j.breach("%s: %v", node, err)
	}
	tokens[string(token)] = true
}
