package simulation

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/pullet/pullet/scripts/overlay"
)

// mutant is a pullet without one of its fixes. The simulation has to find what the fix was for.
type mutant struct {
	row     string // of the table in docs/faults.md
	lacks   string
	patches []overlay.Patch
}

var mutants = []mutant{
	{"A", "claims of other groups count where their nodes belong", []overlay.Patch{overlay.Change("../held.go", "case slices.Contains(h.Groups, l.pool.group), listed &&", "case false && slices.Contains(h.Groups, l.pool.group), false && listed &&")}},
	{"A", "a canary counts in its role", []overlay.Patch{overlay.Change("../decide.go", "v.Home != nil && v.Home.full():", "v.Home != nil && false:")}},
	{"A", "claims without a place in the total count there", []overlay.Patch{overlay.Change("../held.go", "|| !counted[h.Node] && !h.Idle", "")}},
	{"B", "the fleet's record decides whether a step ran", []overlay.Patch{overlay.Change("../../apply/standing.go", `case r.Attempt == "", r.Attempt == known.ID:`, "case true:")}},
	{"B", "who started a step keeps its place", []overlay.Patch{overlay.Change("../election.go", "case count(1) > 0:", "case false:"),
		overlay.Change("../election.go", `clientv3.Compare(clientv3.CreateRevision(took), "=", 0).WithPrefix()`, `clientv3.Compare(clientv3.CreateRevision(took), ">", -1)`)}},
	{"B", "results are those of the version, also when the fleet comes back to it", []overlay.Patch{overlay.Change("../election.go", "return s.req.Version.ID", "return s.req.rollout()")}},
	{"C", "a copy of a host is refused", []overlay.Patch{overlay.Change("../../state/identity.go", "if len(others) == 0 {", "if true {")}},
	{"D", "who knows better doubts a restored record", []overlay.Patch{overlay.Change("../../state/guard.go", "back := seen.Revision != 0 &&", "back := false &&")}},
	{"D", "nobody begins a serialized step in a record that nobody accepted", []overlay.Patch{overlay.Change("../incarnation.go", "r.stops(l.store, state.StoreScope, l.store.Doubts.Key(), doubt)", "if l.pool.slots {\n\t\tr.stops(l.store, state.StoreScope, l.store.Doubts.Key(), doubt)\n\t}")}},
	{"I1", "a step asks for its claim before it begins", []overlay.Patch{overlay.Change("../../apply/hold.go", "if g.s.x.options.Gates == nil {\n\t\treturn true", "if g.s.x.options.Gates == nil || g.s != nil {\n\t\treturn true")}},
	{"I1", "who follows a new result has its turn", []overlay.Patch{overlay.Change("../../apply/step.go", "!boots && !s.follows(change)", "!boots")}},
	{"E", "who is in mid-rollout belongs to its barriers", []overlay.Patch{overlay.Change("../roster.go", "if yes && !admitted[node] &&", "if _ = admitted; yes &&")}},
	{"F", "the version is compared before each step", []overlay.Patch{overlay.Change("../claim.go", "if c.pool.follows {\n\t\t\tconditions", "if false {\n\t\t\tconditions")}},
	{"J", "a run that failed keeps its slot while it waits", []overlay.Patch{overlay.Change("../../internal/agent/hold.go", "failed, err := g.tellFailure(ctx); failed || err != nil", "err := ctx.Err(); err != nil")}},
	{"J", "a failure that the fleet did not hear of is told before the slot is free", []overlay.Patch{overlay.Change("../../internal/agent/untold.go", "if u == nil || u.Rollout", "if true || u.Rollout")}},
}

// TestMutantPatches: what the mutants change is there.
func TestMutantPatches(t *testing.T) {
	for _, m := range mutants {
		if _, err := overlay.Write(t.TempDir(), m.patches...); err != nil {
			t.Error(err)
		}
	}
}

// TestMutants: the simulation finds every mutant. It says which seed is the first.
func TestMutants(t *testing.T) {
	most, err := strconv.Atoi(os.Getenv("PULLET_SIMULATION_MUTANTS"))
	if err != nil {
		t.Skip("it takes an hour: scripts/simulation mutants")
	}
	for i, m := range mutants {
		t.Run(fmt.Sprintf("%s %d", m.row, i), func(t *testing.T) {
			dir := t.TempDir()
			list, err := overlay.Write(dir, m.patches...)
			if err != nil {
				t.Fatal(err)
			}
			program := filepath.Join(dir, "simulation.test")
			if out, err := exec.Command("go", "test", "-c", "-overlay", list, "-o", program, ".").CombinedOutput(); err != nil {
				t.Fatalf("go test -c: %v\n%s", err, out)
			}
			if seed, breach := firstBreach(t, program, most); seed < 0 {
				t.Errorf("%s: %s: %d seeds do not find it", m.row, m.lacks, most)
			} else {
				t.Logf("%s: without %q: seed %d: %s", m.row, m.lacks, seed, breach)
			}
		})
	}
}

// firstBreach is the first seed that a simulation fails with, and what it says; -1 where none does.
func firstBreach(t *testing.T, program string, most int) (seed int, breach string) {
	t.Helper()
	said := regexp.MustCompile(`(?s)--- FAIL: TestFleet/seed=(\d+) .*?\n\s+\S+: (\S+: .*?)\n`)
	for from := 0; from < most; from += 50 {
		out, err := exec.Command(program, "-test.run", "^TestFleet$", "-from", fmt.Sprint(from), "-seeds", "50").CombinedOutput()
		if err == nil {
			continue
		}
		seed = -1
		for _, found := range said.FindAllStringSubmatch(string(out), -1) {
			if n, _ := strconv.Atoi(found[1]); seed < 0 || n < seed {
				seed, breach = n, found[2]
			}
		}
		if seed < 0 { // it did not end as a test does
			t.Fatalf("%v\n%s", err, out)
		}
		return seed, breach
	}
	return -1, ""
}
