package lock

import (
	"time"

	"github.com/pullet/pullet/state"
)

// Switched is an operator's word that keeps a node where it is.
type Switched struct {
	What  string // "host web1", "role web", "pause", "store"
	Clear string
	state.Switch
}

// acceptStore is what clears a doubt in the fleet's record.
const acceptStore = "see in pullet status that nobody is in the middle of an upgrade, then: pullet rollout resume --store"

// forAll reports a word that keeps everybody from being admitted, and lets those go on who are.
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
