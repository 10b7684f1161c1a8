package lock

import (
	"time"

	"github.com/pullet/pullet/state"
)

// Switched is a switch that keeps a node from changing.
type Switched struct {
	What  string // "host web1", "role web", "pause", "store"
	Clear string
	state.Switch
}

// acceptStore clears a doubt in the fleet's record.
const acceptStore = "see in pullet status that nobody is in the middle of an upgrade, then: pullet rollout resume " +
	"--store"

// forAll reports a switch that stops all admissions but not the nodes that were admitted.
func (s *Switched) forAll() bool { return s.What == state.PauseScope || s.What == state.StoreScope }

func (s *Switched) wait() *Wait {
	w := &Wait{Kind: state.WaitDisabled, Gate: s.What + " (disabled)", Reason: "disabled", Remedy: state.Act(s.Clear)}
	switch {
	case s.What == state.StoreScope:
		return &Wait{
			Kind:   state.WaitStore,
			Gate:   "the fleet's record (not accepted)",
			Reason: s.By + " says: " + s.Reason,
			Remedy: state.Act(s.Clear),
		}
	case s.What == state.PauseScope:
		w.Kind, w.Gate, w.Reason = state.WaitPause, "the rollout (paused)", "paused"
	case s.Version != "":
		w.Kind, w.Gate, w.Reason = state.WaitOneVersion, s.What+" (one version)", "only version "+state.Short(
			s.Version,
		)+" is admitted"
	}
	if s.By != "" {
		w.Reason += " by " + s.By
	}
	if !s.Until.IsZero() {
		w.Reason += " until " + s.Until.Local().Format(time.DateTime)
	}
	if s.Reason != "" {
		w.Reason += ": " + s.Reason
	}
	return w
}
