package lock

import (
	"testing"

	"github.com/pullet/pullet/state"
)

// TestClosedWindowYieldsTotal: a node that holds an older claim while its window is closed gives its place in the whole
// fleet back. The canaries of the version, whose window may be open, could need it, and newer commits wait for them.
func TestClosedWindowYieldsTotal(t *testing.T) {
	old := state.Claim{Node: "db1", Rollout: "v1"}
	v := View{Node: "db1", Name: "slot db", Scope: "role db", Rollout: "v2", Limit: 1, Claims: map[int]state.Claim{0: old}, Total: 1, Totals: map[int]state.Claim{0: old}, Closed: "Wed 03:00 UTC"}
	if d := Decide(v); d.Wait == nil || !d.Yield {
		t.Errorf("db1 keeps its place in the total: %+v", d)
	}
	v.Claims, v.Totals = nil, nil
	if d := Decide(v); d.Wait == nil || d.Yield {
		t.Errorf("db1 has nothing to give back: %+v", d)
	}
}
