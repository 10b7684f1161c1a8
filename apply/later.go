package apply

import (
	"context"
	"fmt"
)

// laterOn is something that is left for the end of the run.
type laterOn struct {
	what string
	do   func(context.Context) error
}

// Later leaves something for the end of the run, when that is on record: what would end the pull itself, such as a
// restart of its own service. It is done once, however many steps of the run ask for it.
func (h *Host) Later(what string, do func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.later {
		if l.what == what {
			return
		}
	}
	h.later = append(h.later, laterOn{what, do})
}

// DoLater does what was left for the end of the run, and returns what could not be done.
func (h *Host) DoLater(ctx context.Context) (errs []error) {
	h.mu.Lock()
	later := h.later
	h.later = nil
	h.mu.Unlock()
	for _, l := range later {
		if err := l.do(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s, left for the end of the run: %w", l.what, err))
		}
	}
	return errs
}
