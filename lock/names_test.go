package lock

import (
	"fmt"
	"slices"
	"testing"
)

// TestLocksHaveNames: who looks at the gates sees the names of steps and elections from the moment on in which somebody
// holds them, not those of their keys, also when the fleet comes back to a version.
func TestLocksHaveNames(t *testing.T) {
	f := newFleet(t)
	f.mustSerialize(f.request("db1", "db"))
	f.elect(f.request("master1", "master"), of(1))
	if got, want := f.locks(), []string{"election 1 of role=master master1", "serialize db/join db1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	f.propose("v2")
	f.propose("v1")
	if f.version.Rollout() == f.version.ID {
		t.Fatalf("%s was there before", f.version.Rollout())
	}
	f.elect(f.request("master2", "master"), of(2))
	if got, want := f.locks(), []string{"election 1 of role=master master1", "election 2 of role=master master2", "serialize db/join db1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// locks are the gates that somebody holds.
func (f *fleet) locks() []string {
	f.t.Helper()
	o, err := f.Views.Fleet(f.ctx, false)
	f.must(err)
	locks, err := f.Views.Locks(f.ctx, o)
	f.must(err)
	var out []string
	for _, l := range locks {
		out = append(out, fmt.Sprint(l.Kind, " ", l.Name, " ", l.Node))
	}
	slices.Sort(out)
	return out
}
