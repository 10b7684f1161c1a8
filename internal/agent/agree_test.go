package agent

import (
	"reflect"
	"testing"

	"github.com/pullet/pullet/state"
)

// TestDecide: a node proposes what is newer unless the fleet stays or it refused it before, and says more of the
// fleet's version where it can.
func TestDecide(t *testing.T) {
	t.Parallel()
	one, two := &state.Version{ID: "v1"}, &state.Version{ID: "v2"}
	for name, c := range map[string]struct {
		sighting
		refused map[string]bool
		want    move
	}{
		"the first":                    {sighting{next: one}, nil, proposes},
		"the first, refused before":    {sighting{next: one}, map[string]bool{"v1": true}, proposes},
		"a newer one":                  {sighting{current: one, next: two}, nil, proposes},
		"a newer one, refused before":  {sighting{current: one, next: two}, map[string]bool{"v2": true}, takes},
		"a newer one, the fleet stays": {sighting{current: one, next: two, stays: state.SkipHeld}, nil, takes},
		"nothing newer":                {sighting{current: one, next: one}, nil, takes},
		"nothing newer, a tag":         {sighting{current: one, next: one, more: true}, nil, names},
	} {
		if got := c.decide(c.refused); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestLeaving: the commits of an accepted rewrite name those that they were taken for, where the fleet had a version.
func TestLeaving(t *testing.T) {
	t.Parallel()
	to := []state.Commit{{Repo: "main", Commit: "b"}, {Repo: "more", Commit: "c"}}
	current := &state.Version{Commits: []state.Commit{{Repo: "main", Commit: "a"}}}
	if got := leaving(current, to); got[0].Left != "a" || got[1].Left != "" || to[0].Left != "" {
		t.Errorf("%+v of %+v", got, to)
	}
	if got := leaving(nil, to); !reflect.DeepEqual(got, to) {
		t.Errorf("%+v", got)
	}
}
