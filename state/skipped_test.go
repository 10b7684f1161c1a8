package state

import "testing"

// TestSkippedSays: the same is not written again, and nodes that see a commit in different ways do not write in turns.
func TestSkippedSays(t *testing.T) {
	t.Parallel()
	at := func(id, over, by, kind, reason string) *Skipped {
		return &Skipped{Version{ID: id, By: by, Reason: reason}, over, kind}
	}
	broken, elsewhere := at("b", "a.1", "web1", SkipBroken, "no"), at("b", "a.1", "web2", SkipElsewhere, "not on web1")
	for name, c := range map[string]struct {
		is, other *Skipped
		want      bool
	}{
		"nothing yet":           {nil, broken, false},
		"nothing more":          {broken, nil, false},
		"the same":              {broken, at("b", "a.1", "web1", SkipBroken, "no"), true},
		"another reason":        {broken, at("b", "a.1", "web1", SkipBroken, "why"), false},
		"another kind":          {broken, at("b", "a.1", "web1", SkipHost, "no"), false},
		"another node":          {broken, at("b", "a.1", "db1", SkipBroken, "never"), true},
		"another commit":        {broken, at("c", "a.1", "web1", SkipBroken, "no"), false},
		"over another version":  {broken, at("b", "a.2", "web1", SkipBroken, "no"), false},
		"where it compiles not": {elsewhere, broken, true},
		"where it compiles":     {broken, elsewhere, false},
	} {
		if got := c.is.Says(c.other); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
