package state

import (
	"strings"
	"testing"
	"time"
)

// TestIdleOnRecord: a node that others wait for and that has a lease may be at work, until that ends; one without is
// none of them.
func TestIdleOnRecord(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	b, err := s.Views.Idle(ctx, Status{Ahead: "web1", Holders: []Holder{{Node: "web2"}}})
	if b != nil || err != nil {
		t.Fatalf("nobody has a lease: %+v, %v", b, err)
	}
	register(t, s, "web2", "web", "me", time.Minute)
	b, err = s.Views.Idle(ctx, Status{Ahead: "web1", Holders: []Holder{{Node: "web2"}}})
	if err != nil || b == nil || b.Node != "web2" || !strings.Contains(b.Clear, "if no pull of web2 is at work, it counts as lost from ") {
		t.Errorf("%+v, %v", b, err)
	}
}
