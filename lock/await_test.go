package lock

import (
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

// TestStallPoll: who waits looks before a holder that is late can finish unseen, and no more often than it has to.
func TestStallPoll(t *testing.T) {
	held := map[int]state.Claim{0: {Node: "a"}}
	for name, c := range map[string]struct {
		view     View
		deadline time.Duration
		want     time.Duration
	}{
		"no deadline":      {View{Claims: held}, 0, headPoll},
		"nobody holds":     {View{Timed: true}, 6 * time.Second, headPoll},
		"a short deadline": {View{Timed: true, Claims: held}, 6 * time.Second, 6 * time.Second},
		"a long deadline":  {View{Timed: true, Claims: held}, time.Hour, headPoll},
		"hardly any":       {View{Timed: true, Claims: held}, time.Millisecond, time.Second},
	} {
		turn := &listener{req: &Request{Rules: Rules{Deadline: c.deadline}}}
		if got := turn.stallPoll(&reading{view: c.view}); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
