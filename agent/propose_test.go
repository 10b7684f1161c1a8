package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/state"
)

// TestProposedIsApplied: what was compiled to be proposed is what the pull applies, once, and the host's own variables are those that it was compiled
// with. Where the version got a release meanwhile, it is compiled with that.
func TestProposedIsApplied(t *testing.T) {
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
		if may, err := p.mayPropose(t.Context(), nil, v); !may || err != nil {
			t.Fatal(may, err, p.out.Failures)
		}
		return p.ahead
	}
	compile := func(v *state.Version) *compiled {
		program, err := p.compile(t.Context(), v)
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
