package agent

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// TestOutageIsSaidOnce: one line when the record goes away, whoever notices and in which words, and one when it is
// back.
func TestOutageIsSaidOnce(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	log := logrus.New()
	log.SetOutput(&text)
	o := &outage{log: logrus.NewEntry(log)}
	away := func(why string) error {
		return fmt.Errorf("a pull: %w", &state.UnreachableError{Endpoints: []string{"http://etcd1:2379"}, Err: errors.New(why)})
	}
	o.ends()
	if o.begins(errors.New("no"), time.Now()) || o.begins(nil, time.Now()) || o.lasts() || text.Len() > 0 {
		t.Errorf("nothing is away: %s", &text)
	}
	for _, why := range []string{"connection refused", "no answer within 5s"} {
		if !o.begins(away(why), time.Now()) || !o.lasts() {
			t.Errorf("%s: it is away", why)
		}
	}
	if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "etcd is unreachable at http://etcd1:2379: connection refused") {
		t.Errorf("once:\n%s", got)
	}
	o.ends()
	o.ends()
	if got := text.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "etcd answers again, after 0s") || o.lasts() {
		t.Errorf("and once more:\n%s", got)
	}
}

// TestWaitCountsOverPulls: a node that comes to the same gate pull after pull waits since the first of them; at another
// gate, or for another version, it begins anew.
func TestWaitCountsOverPulls(t *testing.T) {
	t.Parallel()
	r := &reporter{joined: &joined{}, notes: new(waits).notes}
	began := time.Now().UTC().Add(-time.Hour)
	for _, c := range []struct {
		name          string
		version, gate string
		before        state.Status
		since         time.Duration
	}{
		{"the first time", "v1", "slot web", state.Status{}, 0},
		{"the second", "v1", "slot web", state.Status{Version: "v1", Gate: "slot web", Time: began}, time.Hour},
		{"the third", "v1", "slot web", state.Status{Version: "v1", Gate: "slot web", Time: time.Now(), Since: began}, time.Hour},
		{"another gate", "v1", "role db", state.Status{Version: "v1", Gate: "slot web", Time: began}, 0},
		{"another version", "v2", "slot web", state.Status{Version: "v1", Gate: "slot web", Time: began}, 0},
	} {
		r.before = c.before
		st := r.waitStatus(&state.Version{ID: c.version}, &lock.Wait{Gate: c.gate})
		if got := time.Since(st.Since).Round(time.Minute); got != c.since {
			t.Errorf("%s: since %s, want %s", c.name, got, c.since)
		}
	}
}
