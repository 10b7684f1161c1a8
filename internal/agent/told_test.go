package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/state"
)

// TestToldWhileAway: that etcd is away is said once; what went wrong beside is said each time.
func TestToldWhileAway(t *testing.T) {
	t.Parallel()
	log := logrus.New()
	log.SetOutput(io.Discard)
	o := &outage{log: logrus.NewEntry(log)}
	s := &state.Store{}
	full, timeout := errors.New("no space left on device"), context.DeadlineExceeded
	for _, c := range []struct {
		name string
		err  error
		says string // "" is nothing
	}{
		{"nothing", nil, ""},
		{"the outage", timeout, ""},
		{"the outage twice", errors.Join(fmt.Errorf("a step: %w", timeout), timeout), ""},
		{"another error", full, full.Error()},
		{"both", errors.Join(timeout, full), full.Error()},
		{"both, deeper", errors.Join(timeout, errors.Join(timeout, full)), full.Error()},
	} {
		got := o.told(s.Explain(c.err), time.Now())
		if (got != nil) != (c.says != "") || got != nil && !strings.Contains(got.Error(), c.says) {
			t.Errorf("%s: %v", c.name, got)
		}
		if got != nil && strings.Count(got.Error(), "etcd is unreachable") > 1 {
			t.Errorf("%s: said twice: %v", c.name, got)
		}
	}
}
