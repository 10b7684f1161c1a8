package action_test

import (
	"context"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/internal/patience"
)

// TestTimeSleepStops when it is told to.
func TestTimeSleepStops(t *testing.T) {
	s := actiontest.New(t)
	p := s.MustBind("time.sleep", "{time: 1h}")
	ctx, cancel := context.WithCancel(context.Background())
	o := s.Options()
	o.Gates = holds{ask: func(context.Context) error { cancel(); return nil }} // just before it starts
	began := time.Now()
	r, err := p.Run(ctx, o)
	if err != nil || r.Stopped == "" || r.Failed() || time.Since(began) > patience.Stretch(2*time.Second) {
		t.Errorf("%v stopped %q after %s, failed %v", err, r.Stopped, time.Since(began), r.Failed())
	}
}

// holds are gates that only ask before a step changes the host.
type holds struct {
	apply.Gates
	ask func(context.Context) error
}

func (h holds) Hold(ctx context.Context, _ apply.GatedStep) error { return h.ask(ctx) }
func (h holds) Failed(*apply.Report) error                        { return nil }
func (h holds) Park(context.Context, string) error                { return nil }
func (h holds) Quorum(context.Context, apply.GatedStep) (func(bool), error) {
	return func(bool) {}, nil
}
