package state

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/patience"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestSwitches: each scope has its own, and what restricts nothing is not kept.
func TestSwitches(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	set := func(c Scope, w Switch) { t.Helper(); must(t, setSwitch(s, c, w, 0)) }
	want := func(scopes ...string) map[string]Switch {
		t.Helper()
		got, err := s.Switches.List(ctx)
		must(t, err)
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, scopes) {
			t.Errorf("%q, want %q", names, scopes)
		}
		return got
	}
	want()
	set(GlobalScope(), Switch{Reason: "incident", By: "op"})
	set(RoleScope("web"), Switch{Enabled: true, Version: "v1"})
	set(RoleScope(""), Switch{})
	set(HostScope("global"), Switch{}) // names are no scopes
	set(HostScope("pause"), Switch{})
	set(HostScope("web"), Switch{Enabled: true})
	got := want("global", "host global", "host pause", "host web", "role none", "role web")
	if w := got["global"]; w.Enabled || w.Reason != "incident" || w.By != "op" || !got["host web"].Enabled || got["role web"].Version != "v1" {
		t.Errorf("%+v", got)
	}
	for _, c := range []Scope{GlobalScope(), RoleScope("web"), RoleScope("")} {
		set(c, Switch{Enabled: true})
	}
	want("host global", "host pause", "host web")
}

// TestPause: one at a time, which says who paused; it ends once.
func TestPause(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	unpause := func() (bool, error) {
		was, err := s.Switches.Unpause(ctx)
		if was != nil && was.By != "first" {
			t.Errorf("it lifted another pause: %+v", was)
		}
		return was != nil, err
	}
	for i, c := range []struct {
		do   func() (bool, error)
		want bool
	}{
		{unpause, false},
		{func() (bool, error) { return s.Switches.Pause(ctx, &Switch{By: "first"}, 0) }, true},
		{func() (bool, error) { return s.Switches.Pause(ctx, &Switch{By: "second"}, time.Hour) }, false},
		{unpause, true},
		{unpause, false},
	} {
		if ok, err := c.do(); ok != c.want || err != nil {
			t.Errorf("%d: %v %v", i, ok, err)
		}
		if got, err := s.Switches.List(ctx); err != nil || i == 2 && got["pause"].By != "first" {
			t.Errorf("%d: %v %v", i, got, err)
		}
	}
}

// TestSwitchesEnd: a switch for a time ends by itself, by the clock of etcd, and says when.
func TestSwitchesEnd(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	now := time.Now().UTC()
	must(t, setSwitch(s, HostScope("web1"), Switch{At: now}, time.Second), setSwitch(s, GlobalScope(), Switch{At: now}, time.Hour))
	if ok, err := s.Switches.Pause(ctx, &Switch{At: now}, time.Second); !ok || err != nil {
		t.Fatal(ok, err)
	}
	got, err := s.Switches.List(ctx)
	must(t, err)
	for name, lasts := range map[string]time.Duration{"host web1": time.Second, "pause": time.Second, "global": time.Hour} {
		if w := got[name]; !w.Until.Equal(now.Add(lasts)) || w.Enabled {
			t.Errorf("%s: %+v", name, w)
		}
	}
	for len(got) > 1 {
		must(t, ended(s, s.key("config_state")+"/"))
		got, err = s.Switches.List(ctx)
		must(t, err)
	}
	if _, there := got["global"]; !there {
		t.Errorf("%v", got)
	}
	if ok, err := s.Switches.Pause(ctx, &Switch{}, 0); !ok || err != nil {
		t.Errorf("the pause ended, and nobody can pause: %v %v", ok, err)
	}
}

// ended waits until a key below a prefix is gone.
func ended(s *Store, prefix string) error {
	waiting, cancel := context.WithTimeout(ctx, patience.Stretch(20*time.Second))
	defer cancel()
	got, err := s.Client.Get(waiting, prefix, clientv3.WithPrefix())
	if err != nil || len(got.Kvs) < 2 {
		return err
	}
	deletes := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithFilterPut()}
	if !s.Bells.Await(waiting, prefix, got.Header.Revision, patience.Stretch(20*time.Second), deletes...) {
		return errors.New("nothing ends")
	}
	return nil
}

// setSwitch sets a switch whatever it was before.
func setSwitch(s *Store, c Scope, w Switch, lasts time.Duration) error {
	all, err := s.Switches.List(ctx)
	if err != nil {
		return err
	}
	var was *Switch
	if have, there := all[c.String()]; there {
		was = &have
	}
	to := &w
	if w.Enabled && w.Version == "" && c.Kind != "host" { // as if it had never been set
		to = nil
	}
	return s.Switches.Set(ctx, c, to, was, lasts)
}
