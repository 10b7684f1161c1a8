package agent

import (
	"testing"

	"github.com/pullet/pullet/internal/journal"
	"github.com/pullet/pullet/state"
)

// TestUpToDate: a node runs a version when that was validated and nothing of another one may be on the host.
func TestUpToDate(t *testing.T) {
	t.Parallel()
	one := &state.Version{ID: "v1"}
	for name, c := range map[string]struct {
		local  state.Local
		cutOff string // the version of a run that was cut off
		want   bool
	}{
		"it runs":                       {state.Local{Running: one, Validated: true}, "", true},
		"another one runs":              {state.Local{Running: &state.Version{ID: "v2"}, Validated: true}, "", false},
		"none runs":                     {state.Local{Validated: true}, "", false},
		"it is not validated":           {state.Local{Running: one}, "", false},
		"another one failed":            {state.Local{Running: one, Validated: true, Failed: "v2"}, "", false},
		"another one was begun":         {state.Local{Running: one, Validated: true, Upgrading: "v2"}, "", false},
		"a run of another was cut off":  {state.Local{Running: one, Validated: true}, "v2", false},
		"a run of its own was cut off":  {state.Local{Running: one, Validated: true}, "v1", true},
		"a first run was cut off":       {state.Local{}, "v1", false},
		"another failed, not validated": {state.Local{Running: one, Failed: "v2"}, "", false},
	} {
		j, err := journal.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if c.cutOff != "" {
			j.Begin("r1", c.cutOff, "d")
			err = j.Start("a", nil)
		}
		l := &local{Local: c.local, journal: j}
		if got := l.upToDate(one); got != c.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}
