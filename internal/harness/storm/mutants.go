package storm

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/harness/chance"
	"github.com/pullet/pullet/internal/harness/judge"
	"github.com/pullet/pullet/internal/harness/rules"
	"github.com/pullet/pullet/scripts/overlay"
)

// Mutant is a pullet with one fault, which breaks a promise. A storm has to find it.
type Mutant struct {
	Name    string
	promise string                   // that a storm finds broken
	file    string                   // in the module
	old     string                   // text in the file
	new     string                   // text that replaces it
	shape   func(*rules.Rules)       // of the rules of all versions, so that the fault can show, or nil
	does    func(*storm, *rand.Rand) // called between versions and pauses, or nil
}

// Mutants returns the mutants that storms find.
func Mutants() []Mutant {
	return []Mutant{
		{
			Name: "limit off by one", promise: "limit", file: "lock/decide.go",
			old: "+v.countAway() >= v.Limit", new: "+v.countAway() > v.Limit",
		},
		{
			Name: "total ignored", promise: "total", file: "lock/decide.go",
			old: "if v.Total == 0 {", new: "if true {",
			shape: totalAlone,
		},
		{
			Name: "dependencies ignored", promise: "dependencies", file: "lock/decide.go",
			old: "for _, d := range v.Depends {", new: "for _, d := range v.Depends[:0] {",
		},
		{
			Name: "halt ignored", promise: "halt", file: "lock/decide.go",
			old: "return g.State == state.Halted && !g.Counts(v.Node)", new: "return false",
			shape: oneFails,
		},
		{
			Name: "pause ignored", promise: "pause", file: "lock/reading.go",
			old: "if len(set) > 0 && r.view.Switch == nil {",
			new: "if len(set) > 0 && r.view.Switch == nil && what != state.PauseScope {",
		},
		{
			Name: "serialize ignored", promise: "serialize", file: "lock/serialize.go",
			old: `group: "step-" + hash, limit: limit,`, new: `group: "step-" + hash, limit: func(int) int { return 9 },`,
		},
		{
			Name: "barrier skipped", promise: "barrier", file: "lock/barrier.go",
			old: "if got.Responses[0].GetResponseRange().Count > 0 {\n\t\treturn nil, 0, nil",
			new: "if true {\n\t\treturn nil, 0, nil",
		},
		{
			Name: "disable ignored", promise: "disable", file: "lock/reader.go",
			old: "if len(kvs) == 0 || decided {", new: "if true || decided {",
			shape: allSucceed, does: disable,
		},
		{
			Name: "window ignored", promise: "window", file: "lock/reader.go",
			old: "if l.req.Rules.Closed == nil {", new: "if true {",
			shape: allClosed,
		},
		{
			Name: "version not compared", promise: "abandoned", file: "lock/claim.go",
			old: "if c.pool.follows {\n\t\t\tconditions", new: "if false {\n\t\t\tconditions",
		},
		{
			Name: "clone not refused", promise: "one host a node", file: "state/identity.go",
			old: "\tif len(others) == 0 {", new: "\tif true {",
			shape: allSucceed, does: clone,
		},
		{
			Name: "everybody elected", promise: "elections", file: "lock/election.go",
			old: "for i := range e.Limit {", new: "for i := range e.Limit + 9 {",
			shape: allSucceed,
		},
		{
			Name: "max of a command ignored", promise: "run", file: "lock/command.go",
			old: "limit: func(int) int { return c.Command.Limit(c.Stage) }", new: "limit: func(int) int { return 9 }",
			shape: allSucceed, does: command,
		},
		{
			Name: "stages of a command ignored", promise: "run", file: "internal/agent/commands.go",
			old:   "mine := c.Stage < len(c.Stages) && slices.Contains(c.Stages[c.Stage], o.config.Node.Name)",
			new:   "mine := slices.Contains(slices.Concat(c.Stages...), o.config.Node.Name)",
			shape: allSucceed, does: command,
		},
		{
			Name: "record ignored", promise: "elections", file: "internal/agent/election.go",
			old:   "out := apply.Record{Attempt: r.Attempt, Of: r.Result.Attempt, Fresh: r.Fresh, Again: r.Again}",
			new:   "out := apply.Record{Again: r.Again}\n\tif true {\n\t\treturn out, nil\n\t}",
			shape: allSucceed, does: (*storm).reinstallElected,
		},
	}
}

// totalAlone leaves nothing but the total to limit the nodes.
func totalAlone(r *rules.Rules) { r.Total, r.Depends = 1, false }

// oneFails has several nodes of a group change at a time, and one of them fails.
func oneFails(r *rules.Rules) {
	r.Mapped, r.Limit, r.Total, r.Canary = true, 2, 0, map[string]bool{}
	r.Bad, r.BadNode, r.Closed = rules.Work, "db1", false
}

// allSucceed has every node succeed soon.
func allSucceed(r *rules.Rules) {
	r.Bad, r.BadNode, r.Closed, r.StepTime = "", "", false, 50*time.Millisecond
}

// allClosed opens no maintenance window.
func allClosed(r *rules.Rules) { r.Bad, r.BadNode, r.Closed = "", "", true }

// disable disables something for a while.
func disable(s *storm, x *rand.Rand) { s.operations.disable(x) }

// clone runs a copy of a host for a while.
func clone(s *storm, x *rand.Rand) { s.hosts.clone(x) }

// command has hosts run a command.
func command(s *storm, x *rand.Rand) { s.operations.command(x) }

// change returns the patch of the source of the module in the directory root.
func (m Mutant) change(root string) overlay.Patch {
	return overlay.Change(filepath.Join(root, m.file), m.old, m.new)
}

// Catch builds the mutant from the source of the module in the directory root, and runs a storm until the log breaks
// the promise. It fails the test if that takes longer than the duration.
func (m Mutant) Catch(t *testing.T, root string, seed uint64, duration time.Duration) {
	t.Helper()
	s := newStorm(t, seed, Kind{
		Members: 1, Repos: 1, Hosts: 6, OnLost: "hold", Duration: duration, Program: build(t, root, m.change(root)),
		shape: m.shape,
	})
	began := time.Now()
	s.start()
	found := s.untilBroken(m)
	if s.datastore.stop(); found == "" {
		t.Errorf("seed %d: in %s the storm did not find it", seed, duration)
		return
	}
	t.Logf("%s: seed %d, caught after %.0f s: %s: %s", m.Name, seed, time.Since(began).Seconds(), m.promise, found)
}

// untilBroken pushes versions and pauses until the log breaks the promise of a mutant, and returns the breach. It
// injects no faults other than those of the mutant.
func (s *storm) untilBroken(m Mutant) string {
	x, other := chance.Lane(s.seed, 1), chance.Lane(s.seed, 2)
	for end := time.Now().Add(s.kind.Duration); time.Now().Before(end); {
		for _, b := range judge.Judge(s.read()).Breaches {
			if b.Promise == m.promise {
				return b.Text
			}
		}
		s.operations.push(x)
		if other.IntN(3) == 0 {
			s.operations.pause(other)
		}
		if m.does != nil {
			m.does(s, other)
		}
	}
	return ""
}

// reinstallElected reinstalls the host that ran the elected step of the last version. Its journal is lost, and the
// record of the fleet has the result.
func (s *storm) reinstallElected(x *rand.Rand) {
	node := ""
	for end := time.Now().Add(15 * time.Second); node == "" && time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		node = s.read().Elected(s.repository.tip())
	}
	for _, h := range s.hosts.list {
		if h.node != node {
			continue
		}
		h.Busy.Lock()
		s.hosts.reinstallHost(h)
		h.Busy.Unlock()
		chance.Sleep(x, 5*time.Second, 10*time.Second)
	}
}
