package datastore

import (
	"bytes"
	"os"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/tier"
	"github.com/pullet/pullet/state"
)

// plant records a rotation as who writes etcd may.
func (f *fleet) plant(s *state.Store, r state.Rotation) {
	f.Helper()
	_, err := s.Client.Do(f.Context(), state.Put("/pullet/prod/datastore/rotation", &r))
	f.must(err)
}

// sealedFor is an authority, encrypted for a host.
func (f *fleet) sealedFor(h Candidate, a *authority.Authority) state.Sealed {
	f.Helper()
	key, err := h.recipient()
	f.must(err)
	text, err := sealed(key.Recipient().String(), a.Encode())
	f.must(err)
	return state.Sealed{Recipient: key.Recipient().String(), Text: text}
}

func (f *fleet) own() *authority.Authority {
	f.Helper()
	k, err := readKeys(f.Config, fleetName)
	f.must(err)
	return k.authority
}

// looks waits until the keeper has looked at the record of the rotation n times, each time from start to end. At each
// look it says first how it is, with a lease. If that was revoked, it takes another one.
func (f *fleet) looks(s *state.Store, n int) {
	f.Helper()
	var lease int64
	says := func() bool {
		got, err := s.Client.Get(f.Context(), "/pullet/prod/datastore/reach/"+f.Node)
		f.must(err)
		if len(got.Kvs) > 0 {
			lease = got.Kvs[0].Lease
		}
		return len(got.Kvs) > 0
	}
	f.until("the keeper looks", says)
	for range n + 1 { // the last look has ended when another one begins
		_, err := s.Client.Revoke(f.Context(), clientv3.LeaseID(lease))
		f.must(err)
		f.until("the keeper looks again", says)
	}
}

// TestRotationRefuses: whoever writes etcd neither has a member believe an authority of his own, or one from before,
// nor keeps the fleet from rotating in order.
func TestRotationRefuses(t *testing.T) {
	t.Parallel()
	f := made(t)
	f.every = 10 * time.Millisecond
	f.serve()
	s, first := f.keeperStore(), f.own()
	host, elsewhere := Candidate{f.Config}, Candidate{Config{Dir: t.TempDir()}}
	made := func(a *authority.Authority, err error) *authority.Authority {
		t.Helper()
		f.must(err)
		return a
	}
	planted := made(authority.Create(fleetName, time.Now()))
	forged := made(planted.Rotate(time.Now()))
	genuine := made(first.Rotate(time.Now()))
	damaged := f.sealedFor(host, genuine)
	damaged.Text = damaged.Text[:len(damaged.Text)-1]
	refused := func(what string, r state.Rotation, believes *authority.Authority) {
		t.Helper()
		r.At = time.Now().UTC()
		f.plant(s, r)
		f.looks(s, 3)
		if got := f.own(); got.Fingerprint() != believes.Fingerprint() || !bytes.Equal(got.Bundle(), believes.Bundle()) {
			t.Fatalf("%s: it believes %s", what, got.Bundle())
		}
		bundle, err := os.ReadFile(f.file(bundleFile))
		f.must(err)
		if !bytes.Equal(bundle, believes.Bundle()) || f.has(nextFile) {
			t.Errorf("%s: its member believes %s", what, bundle)
		}
	}
	with := func(a *authority.Authority, phase string, sealed state.Sealed) state.Rotation {
		return state.Rotation{Authority: a.Fingerprint(), Phase: phase, Sealed: map[string]state.Sealed{"db1": sealed}}
	}
	for _, phase := range []string{state.RotationBelieve, state.RotationSign, state.RotationPresent, state.RotationEnd} {
		for what, r := range map[string]state.Rotation{
			"a planted one":                   with(planted, phase, f.sealedFor(host, planted)),
			"one that a planted one made":     with(forged, phase, f.sealedFor(host, forged)),
			"one that is not what it says":    with(genuine, phase, f.sealedFor(host, planted)),
			"another one than is recorded":    with(planted, phase, f.sealedFor(host, genuine)),
			"one that is for another host":    with(genuine, phase, f.sealedFor(elsewhere, genuine)),
			"one that was cut off":            with(genuine, phase, damaged),
			"one of which the end alone came": with(genuine, phase, state.Sealed{}),
			"what signs already":              with(first, phase, f.sealedFor(host, first)),
		} {
			refused(what+" at "+phase, r, first)
		}
	}
	_, err := f.client("root").Put(t.Context(), "/pullet/prod/datastore/rotation", "{")
	f.must(err)
	done, err := Rotate(t.Context(), f.Config, false)
	f.must(err)
	if !done.Begun || done.Phase != state.RotationSign {
		t.Error("behind what was planted: ", done)
	}
	back := with(f.own(), state.RotationBelieve, f.sealedFor(host, f.own()))
	_, err = Rotate(t.Context(), f.Config, true)
	f.must(err)
	f.until("the former one counts no more", func() bool { return !f.own().Rotating() })
	second := f.own()
	f.until("its member believes it alone", func() bool {
		bundle, err := os.ReadFile(f.file(bundleFile))
		return err == nil && bytes.Equal(bundle, second.Bundle())
	})
	f.believes(second.Bundle())
	s = f.keeperStore()
	refused("the rotation that was, once more", back, second)
	refused("the authority from before", with(first, state.RotationBelieve, f.sealedFor(host, first)), second)
	refused("what followed that one", with(genuine, state.RotationSign, f.sealedFor(host, genuine)), second)
}

// TestRotationHalfDone: a member that is killed behind any of its writes goes on when it starts again, also where the
// record of the rotation is lost.
func TestRotationHalfDone(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		what, phase string
		files       func(f *fleet, next *authority.Authority)
	}{
		{"the next one is recorded", state.RotationBelieve, func(*fleet, *authority.Authority) {}},
		{"the next one is here", state.RotationBelieve, func(f *fleet, next *authority.Authority) {
			f.must(os.WriteFile(f.file(nextFile), next.Encode(), 0o600))
		}},
		{"the next one is here, and the record is lost", "", func(f *fleet, next *authority.Authority) {
			f.must(os.WriteFile(f.file(nextFile), next.Encode(), 0o600))
		}},
		{"it is to sign", state.RotationSign, func(f *fleet, next *authority.Authority) {
			f.must(os.WriteFile(f.file(nextFile), next.Encode(), 0o600))
		}},
		{"it signs, and is still the next one", state.RotationSign, func(f *fleet, next *authority.Authority) {
			f.must(os.WriteFile(f.file(nextFile), next.Encode(), 0o600))
			f.must(os.WriteFile(f.file(authorityFile), next.Encode(), 0o600))
		}},
		{"it signs, and the record is lost", "", func(f *fleet, next *authority.Authority) {
			f.must(os.WriteFile(f.file(authorityFile), next.Encode(), 0o600))
		}},
		{"one of its certificates is new", state.RotationPresent, func(f *fleet, next *authority.Authority) {
			f.must(os.WriteFile(f.file(authorityFile), next.Encode(), 0o600))
			k, err := readKeys(f.Config, fleetName)
			f.must(err)
			server := authority.Subject{Fleet: fleetName, Name: authority.ServerName, Kind: authority.Server}
			text, err := k.signed(next, server, time.Now())
			f.must(err)
			f.must(os.WriteFile(f.file(serverFile), text, 0o600))
		}},
		{"the former one is to count no more", state.RotationEnd, func(f *fleet, next *authority.Authority) {
			f.must(os.WriteFile(f.file(authorityFile), next.Encode(), 0o600))
		}},
		{"the former one counts no more, and that is not on record", state.RotationPresent, func(f *fleet, next *authority.Authority) {
			f.must(os.WriteFile(f.file(authorityFile), next.Finish().Encode(), 0o600))
			k, err := readKeys(f.Config, fleetName)
			f.must(err)
			f.must(k.write(time.Now()))
		}},
	} {
		t.Run(one.what, func(t *testing.T) {
			t.Parallel()
			if one.phase != state.RotationSign {
				tier.Long(t, "a whole rotation each")
			}
			f := made(t)
			f.serve()
			f.end()
			k := &keeper{Options: f.Options, guard: newGuard()}
			var err error
			k.keys, err = readKeys(f.Config, fleetName)
			f.must(err)
			next, err := f.own().Rotate(time.Now())
			f.must(err)
			if one.phase != "" {
				f.must(k.open(t.Context()))
				r := state.Rotation{Authority: next.Fingerprint(), Phase: one.phase, At: time.Now().UTC()}
				if one.phase != state.RotationEnd {
					r.Sealed = map[string]state.Sealed{"db1": f.sealedFor(Candidate{f.Config}, next)}
				}
				f.plant(k.store, r)
				f.must(k.close())
			}
			one.files(f, next)
			f.every = 50 * time.Millisecond
			f.serve()
			f.until("the next one signs", func() bool { return f.own().Fingerprint() == next.Fingerprint() })
			if !(state.Rotation{Phase: one.phase}).Reached(state.RotationPresent) { // else it ends by itself, and asking would begin another one
				f.until("and that is on record", func() bool {
					far, err := Rotate(t.Context(), f.Config, false)
					return err == nil && state.Rotation{Phase: far.Phase}.Reached(state.RotationSign)
				})
				f.until("an operator ends it", func() bool {
					_, err := Rotate(t.Context(), f.Config, true)
					return err == nil || !f.own().Rotating()
				})
			}
			f.until("the former one counts no more", func() bool {
				bundle, err := os.ReadFile(f.file(bundleFile))
				return err == nil && bytes.Equal(bundle, next.Finish().Bundle())
			})
			f.believes(next.Finish().Bundle())
			s := f.keeperStore()
			f.until("the rotation ended, and its key is gone", func() bool {
				r, _, err := s.Datastores.Rotation(t.Context())
				return err == nil && r.Phase == state.RotationEnd && len(r.Sealed) == 0
			})
		})
	}
}
