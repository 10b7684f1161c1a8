package agent

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// TestFreezeEndsByEtcdsClock: what an operator disables for a time stays disabled until etcd ends it: neither the clock
// of who set it nor that of the host does.
func TestFreezeEndsByEtcdsClock(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.pull()
	for _, off := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		h.disable(state.Switch{AllChanges: true, At: time.Now().Add(off)}, time.Hour)
		if out := h.pull(); out.ExitCode() != ExitWaiting || out.Report != nil {
			t.Errorf("set for an hour just now, by a clock that is %s off: exit %d, %+v", off, out.ExitCode(), out.Report)
		}
		h.endSwitch()
		if out := h.pull(); out.ExitCode() != ExitOK || out.Report == nil {
			t.Errorf("its hour is over: exit %d, %+v", out.ExitCode(), out.Wait)
		}
	}
}

// disable sets the switch of the whole fleet.
func (h *host) disable(w state.Switch, lasts time.Duration) {
	h.t.Helper()
	s, err := h.OpenStore(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	defer s.Close()
	if err := s.Switches.Set(h.t.Context(), state.GlobalScope(), &w, nil, lasts); err != nil {
		h.t.Fatal(err)
	}
}

// endSwitch ends the lease of that switch, as time does.
func (h *host) endSwitch() {
	h.t.Helper()
	s, err := h.OpenStore(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Client.Get(h.t.Context(), s.Switches.Key(state.GlobalScope()))
	if err == nil && len(got.Kvs) == 1 {
		_, err = s.Client.Revoke(h.t.Context(), clientv3.LeaseID(got.Kvs[0].Lease))
	}
	if err != nil {
		h.t.Fatal(err)
	}
}
