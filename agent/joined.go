package agent

import "github.com/pullet/pullet/state"

// joined is the fleet's record as a pull sees it.
type joined struct {
	store    *state.Store // nil: unreachable
	presence *state.Presence
	current  *state.Version // the fleet's
	agreed   int64          // the revision at which it was agreed
}
