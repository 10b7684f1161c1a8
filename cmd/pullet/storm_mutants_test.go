package main

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/scripts/overlay"
)

// stormMutant is a pullet with one fault, which breaks a promise. The storm has to see it.
type stormMutant struct {
	name    string
	promise string
	patch   overlay.Patch
	rules   func(*stormRules)        // of each version, so that the fault has room to show; nil: as they are drawn
	does    func(*storm, *rand.Rand) // what happens beside pushes and pauses; nil: nothing
}

// The rules of mutants: nothing but the total holds nodes up; several nodes of a group change at once and one of them
// fails.
func totalAlone(r *stormRules) { r.total, r.depends = 1, false }
func oneFails(r *stormRules) {
	r.mapped, r.global, r.total, r.canary = true, 2, 0, map[string]bool{}
	r.bad, r.on, r.closed = stormWork, "db1", false
}
func allSucceed(r *stormRules) { r.bad, r.on, r.closed, r.lasts = "", "", false, 50*time.Millisecond }
func allClosed(r *stormRules)  { r.bad, r.on, r.closed = "", "", true }

var stormMutants = []stormMutant{
	{"limit off by one", "limit", overlay.Change("../../lock/decide.go", "+v.countAway() >= v.Limit", "+v.countAway() > v.Limit"), nil, nil},
	{"total ignored", "total", overlay.Change("../../lock/decide.go", "if v.Total == 0 {", "if true {"), totalAlone, nil},
	{"dependencies ignored", "dependencies", overlay.Change("../../lock/decide.go", "for _, d := range v.Depends {", "for _, d := range v.Depends[:0] {"), nil, nil},
	{"halt ignored", "halt", overlay.Change("../../lock/decide.go", "return g.State == state.Halted && !g.Counts(v.Node)", "return false"), oneFails, nil},
	{"pause ignored", "pause", overlay.Change("../../lock/reading.go", "if len(set) > 0 && r.view.Switch == nil {", "if len(set) > 0 && r.view.Switch == nil && what != state.PauseScope {"), nil, nil},
	{"serialize ignored", "serialize", overlay.Change("../../lock/serialize.go", `group: "step-" + hash, limit: limit,`, `group: "step-" + hash, limit: func(int) int { return 9 },`), nil, nil},
	{"barrier skipped", "barrier", overlay.Change("../../lock/barrier.go", "if got.Responses[0].GetResponseRange().Count > 0 {\n\t\treturn nil, 0, nil", "if true {\n\t\treturn nil, 0, nil"), nil, nil},
	{"disable ignored", "disable", overlay.Change("../../lock/reader.go", "if len(kvs) == 0 || decided {", "if true || decided {"), allSucceed, (*storm).disables},
	{"window ignored", "window", overlay.Change("../../lock/reader.go", "if l.req.Rules.Closed == nil {", "if true {"), allClosed, nil},
	{"version not compared", "abandoned", overlay.Change("../../lock/claim.go", "if c.pool.follows {\n\t\t\tconditions", "if false {\n\t\t\tconditions"), nil, nil},
	{"clone not refused", "one host a node", overlay.Change("../../state/identity.go", "\tif len(others) == 0 {", "\tif true {"), allSucceed, (*storm).cloned},
	{"everybody elected", "elections", overlay.Change("../../lock/election.go", "for i := range e.Limit {", "for i := range e.Limit + 9 {"), allSucceed, nil},
	{"max of a command ignored", "run", overlay.Change("../../lock/command.go", "limit: func(int) int { return c.Command.Limit(c.Stage) }", "limit: func(int) int { return 9 }"), allSucceed, (*storm).commands},
	{"stages of a command ignored", "run", overlay.Change("../../agent/commands.go", "mine := c.Stage < len(c.Stages) && slices.Contains(c.Stages[c.Stage], o.config.Node.Name)", "mine := slices.Contains(slices.Concat(c.Stages...), o.config.Node.Name)"), allSucceed, (*storm).commands},
	{"record ignored", "elections", overlay.Change("../../agent/election.go", "out := apply.Record{Attempt: r.Attempt, Of: r.Result.Attempt, Fresh: r.Fresh, Again: r.Again}", "out := apply.Record{Again: r.Again}\n\tif true {\n\t\treturn out, nil\n\t}"), allSucceed, (*storm).reinstallsElected},
}

// TestStormPatches: what the mutants change is there.
func TestStormPatches(t *testing.T) {
	patches := jumpingClock(t)
	for _, m := range stormMutants {
		patches = append(patches, m.patch)
	}
	for _, p := range patches {
		if _, err := overlay.Write(t.TempDir(), p); err != nil {
			t.Error(err)
		}
	}
}

// TestStormMutants: a storm sees a pullet that breaks a promise. It lasts until it does.
func TestStormMutants(t *testing.T) {
	last := stormLasts(t)
	for _, m := range stormMutants {
		t.Run(m.name, func(t *testing.T) {
			program := buildPullet(t, t.TempDir(), m.patch)
			s := newStorm(t, stormSeed(t), stormKind{members: 1, repos: 1, hosts: 6, onLost: "hold", last: last, pullet: program, shape: m.rules})
			began := time.Now()
			s.start()
			found := s.untilBroken(m)
			if s.stop(); found == "" {
				t.Errorf("seed %d: in %s nobody saw it", s.seed, last)
				return
			}
			t.Logf("%s: seed %d, caught after %.0f s: %s: %s", m.name, s.seed, time.Since(began).Seconds(), m.promise, found)
		})
	}
}

// untilBroken pushes versions and pauses until the log shows a promise to be broken. Nothing else is wrong but what the
// mutant's own storm does.
func (s *storm) untilBroken(m stormMutant) string {
	x, lane := stormRand(s.seed, 1), stormRand(s.seed, 2)
	for end := time.Now().Add(s.kind.last); time.Now().Before(end); {
		for _, b := range s.judged().breaches {
			if b.promise == m.promise {
				return b.text
			}
		}
		s.pushes(x)
		if lane.IntN(3) == 0 {
			s.pauses(lane)
		}
		if m.does != nil {
			m.does(s, lane)
		}
	}
	return ""
}

// judged is what the log shows as far as it is written.
func (s *storm) judged() *stormJudge {
	text, err := os.ReadFile(s.log.path)
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := readStorm(string(text[:strings.LastIndexByte(string(text), '\n')+1])) // a step may be writing
	if err != nil {
		s.t.Fatal(err)
	}
	return judgeStorm(l)
}

// reinstallsElected reinstalls the host that took the last step for all, once it did: its journal is gone, and the
// fleet's record knows what ran.
func (s *storm) reinstallsElected(x *rand.Rand) {
	var ran *stormStint
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		for _, one := range s.judged().stints {
			if one.step == stormToken && one.code == 0 && one.version == s.tip() {
				ran = one
			}
		}
		if ran != nil {
			break
		}
	}
	for _, h := range s.hosts {
		if ran == nil || h.node != ran.node {
			continue
		}
		h.busy.Lock()
		s.reinstall(h)
		h.busy.Unlock()
		sleepFor(x, 5*time.Second, 10*time.Second)
	}
}
