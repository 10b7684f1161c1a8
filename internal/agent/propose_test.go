package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/facts"
	"github.com/pullet/pullet/state"
)

// TestProposedIsApplied: what was compiled to be proposed is what the pull applies, once, and the host's own variables
// are those that it was compiled with. Where the version got a release meanwhile, it is compiled with that.
func TestProposedIsApplied(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	v := &state.Version{ID: strings.Repeat("a", 40)}
	p := proposer(t, store, v, fstest.MapFS{
		"base/jobs.yaml": {Data: []byte("jobs: {'*': [{name: j}]}")},
		"jobs/j.yaml":    {Data: []byte("steps: [{name: s, action: file.managed, parameters: {name: /x, content: '{{ vars.x }}'}}]")},
	})
	p.config.Paths.HostVars = t.TempDir()
	own := func(text string) {
		if err := os.WriteFile(filepath.Join(p.config.Paths.HostVars, "own.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	propose := func() *compiled {
		if may, err := p.agreement.mayPropose(t.Context(), nil, v); !may || err != nil {
			t.Fatal(may, err, p.out.Failures)
		}
		return p.compiler.ahead
	}
	compile := func(v *state.Version) *compiled {
		program, err := p.compiler.compile(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	own("x: 1")
	proposed := propose()
	own("x: 2")
	if got := compile(v); got != proposed {
		t.Error("the proposed version was compiled again")
	}
	again := compile(v)
	if again == proposed {
		t.Error("a program was given out twice")
	}
	if x := again.catalog.Vars["x"]; x != 1 {
		t.Errorf("x is %v: the host's variables were read again within the pull", x)
	}
	proposed = propose()
	released := *v
	released.Release = "v1"
	if got := compile(&released); got == proposed || got.catalog.Release != "v1" {
		t.Errorf("the release is %q", got.catalog.Release)
	}
}

// TestProposedOnce: a node that proposes a version which asks for the fleet compiles it once, and announces its
// services once.
func TestProposedOnce(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	v := &state.Version{ID: strings.Repeat("a", 40)}
	p := proposer(t, store, v, fstest.MapFS{
		"base/jobs.yaml":     {Data: []byte("jobs: {'*': [{name: j}]}")},
		"base/services.yaml": {Data: []byte("services: {'*': [{name: db, port: 5432}]}")},
		"jobs/j.yaml":        {Data: []byte("steps: [{name: s, action: file.managed, parameters: {name: /x, content: '{{ range services `db` }}{{ .node }}{{ end }}'}}]")},
	})
	p.compiler.facts = func() render.Facts { return facts.Sample("db1") }
	if may, err := p.agreement.mayPropose(t.Context(), nil, v); !may || err != nil {
		t.Fatal(may, err, p.out.Failures)
	}
	proposed := p.compiler.ahead
	announced, err := store.Services.Instances(t.Context(), "db")
	if err != nil || announced["db1"].Port != 5432 {
		t.Fatal(announced, err)
	}
	if err := store.Services.Withdraw(t.Context(), "db", "db1"); err != nil {
		t.Fatal(err)
	}
	program, err := p.announcer.prepare(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	if program != proposed {
		t.Error("the proposed version was compiled again")
	}
	if again, err := store.Services.Instances(t.Context(), "db"); len(again) > 0 || err != nil {
		t.Errorf("the services of the proposed version were announced again: %v %v", again, err)
	}
}

// TestRulesDecodedOnce: the instructions of a rollout are decoded once for a program, and anew where they are others.
func TestRulesDecodedOnce(t *testing.T) {
	t.Parallel()
	cat := &render.Catalog{}
	program := &compiled{catalog: cat}
	rules := func(instructions string, want int) {
		t.Helper()
		got, err := program.rules(&state.Version{Instructions: []byte(instructions)})
		if err != nil || got.MaxFailures != want {
			t.Errorf("%s: %d, want %d: %v", instructions, got.MaxFailures, want, err)
		}
	}
	rules("", 0)
	rules(`{"max_failures": 3}`, 3)
	cat.Fleet.Rollout.RollingRules.Total = 7
	rules(`{"max_failures": 3}`, 3)
	if total := program.rollout.RollingRules.Total; total != 0 {
		t.Error("they were decoded again")
	}
	rules(`{"max_failures": 4}`, 4)
	if _, err := program.rules(&state.Version{Instructions: []byte(`[]`)}); err == nil || !strings.HasPrefix(err.Error(), "the instructions: it is not a JSON object") {
		t.Error(err)
	}
	rules(`{"rolling_rules": {"global": 2}}`, 0)
	if !program.rollout.LimitsInstructed() {
		t.Error("they say how many nodes change at a time")
	}
}
