package agent

import (
	"context"
	"errors"

	"github.com/pullet/pullet/state"
)

// raise keeps events for the fleet.
func (a *Agent) raise(context.Context, ...state.Event) error {
	return errors.New("this agent cannot keep events yet")
}
