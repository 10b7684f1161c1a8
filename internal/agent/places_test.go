package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// TestForgotten: a node in the middle of a long step, whose lease etcd does not know any more, puts its slot and its
// place at a serialized step back where the store went back in time, and says so there; where the store did not, it
// does nothing. The store went back also where it has the node's registration and lacks the claim that came after it.
func TestForgotten(t *testing.T) {
	t.Parallel()
	for lost, back := range map[string]bool{"the registration": true, "the claim": true, "nothing": false} {
		store, err := state.Open(t.Context(), state.Config{Fleet: "f", Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		now, err := store.Doubts.Guard(t.Context(), "web1", state.Origin{}) // it never registered
		if err != nil {
			t.Fatal(err)
		}
		log := logrus.New()
		var said bytes.Buffer
		log.SetOutput(&said)
		p := &places{node: "web1", log: logrus.NewEntry(log)}
		claim := state.Claim{Node: "web1", Version: "v1", Rollout: "v1", Step: "join"}
		p.slot.Store(&state.HeldPlace{Group: "web", Claim: claim})
		p.steps.add(&lock.Turn{}, &state.HeldPlace{Step: state.StepHash("join"), Claim: claim})
		switch lost {
		case "the registration":
			now.Revision = 1 << 40
		case "the claim":
			now.Revision, now.Claimed = 1, 1<<40
		}
		for range 2 { // it is said the first time
			p.compare(t.Context(), store, now, time.Minute)
			if once := strings.Count(said.String(), "level=error") == 1; once != back {
				t.Errorf("lost %s: %s", lost, &said)
			}
		}
		if err := errors.Join(p.doubts(t.Context(), store, nil, time.Minute), p.putBack(t.Context(), store, nil, p.all()[0])); err != nil {
			t.Errorf("etcd was only away: %v", err) // and the record did not go back
		}
		o, err := store.Views.Fleet(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		set, err := store.Switches.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, doubted := set[state.StoreScope]; doubted != back || (o.Slots["web"]["0"].Step == "join") != back {
			t.Errorf("lost %s: doubted %t, slots %v", lost, doubted, o.Slots)
		}
		if places, err := store.Client.Get(t.Context(), store.Steps.SemaphorePrefix(state.StepHash("join"))+"0"); err != nil || (places.Count == 1) != back {
			t.Errorf("lost %s: %v, %v", lost, places, err)
		}
	}
}

// TestRenewalsCompare: a node that holds a slot compares the record at each renewal of its lease, also where nothing
// else is doubtful: a restored etcd may know the lease of its last pull, with the ids and the term of before, and
// others may have written a lot since.
func TestRenewalsCompare(t *testing.T) {
	t.Parallel()
	store, err := state.Open(t.Context(), state.Config{Fleet: "f", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	presence, err := store.Presences.Register(t.Context(), state.Node{Name: "web1"}, state.Alive{Owner: "web1"}, nil, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	config := Config{Node: Self{Node: render.Node{Name: "web1"}}}
	config.Etcd.Endpoints = []string{"http://192.0.2.1:2379"}
	p := &registration{self: &self{config: config}, connection: &connection{}, pulse: newPulse(), places: &places{node: "web1", log: logrus.NewEntry(log)}, joined: &joined{store: store}, local: &local{}}
	p.pulse.work(time.Minute)
	if p.local.Store, err = store.Doubts.Guard(t.Context(), "web1", state.Origin{}); err != nil {
		t.Fatal(err)
	}
	p.places.slot.Store(&state.HeldPlace{Group: "web", Claim: state.Claim{Node: "web1", Version: "v1", Rollout: "v1"}})
	presence.Claims(1 << 40) // which the record lacks
	p.renew(t.Context(), p.store, presence)
	defer p.connection.leased()
	patience.UntilWithin(t, 30*time.Second, "its slot is on record again", func() bool {
		o, err := store.Views.Fleet(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		return o.Slots["web"]["0"].Node == "web1"
	})
}

// TestCopyPutsNothingBack: a copy of a host's disk, made in the middle of an upgrade before the fleet's record was
// accepted, is refused and claims no slot there. The host itself, which is through by then, would never give it back.
func TestCopyPutsNothingBack(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.Etcd.Dir = filepath.Join(h.home, "etcd")
	h.pull()
	store, err := h.OpenStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.Doubts.Accept(t.Context(), "op"), store.Close()); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(h.home, "copy")
	if err := os.CopyFS(copied, os.DirFS(h.Paths.State)); err != nil {
		t.Fatal(err)
	}
	local, err := state.LoadLocal(copied)
	if err != nil {
		t.Fatal(err)
	}
	local.Held = &state.HeldPlace{Group: "web", Claim: state.Claim{Node: "web1", Version: local.Running.ID, Rollout: local.Running.Rollout(), Step: "site/one"}}
	if err := local.Save(copied); err != nil {
		t.Fatal(err)
	}
	h.Paths.State = copied
	var cloned *state.ClonedError
	if _, err := h.tryPull(context.Background()); !errors.As(err, &cloned) {
		t.Fatalf("%v", err)
	}
	if store, err = h.OpenStore(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if o, err := store.Views.Fleet(t.Context(), false); err != nil || len(o.Slots) > 0 {
		t.Errorf("%v, %v", o.Slots, err)
	}
}

// TestStoreThatWentBack: a node that saw a newer record than there is goes on with what it knows, and says why. It is
// not registered there.
func TestStoreThatWentBack(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.Etcd.Dir = filepath.Join(h.home, "etcd")
	h.pull()
	local, err := state.LoadLocal(h.Paths.State)
	if err != nil {
		t.Fatal(err)
	}
	local.Store.Revision = 1 << 40
	if err := local.Save(h.Paths.State); err != nil {
		t.Fatal(err)
	}
	h.write("root/etc/motd", "by hand")
	h.warned(h.pull(), "until then no new version and no gated step, but drift is corrected")
	if motd, err := os.ReadFile(filepath.Join(h.Root, "etc/motd")); err != nil || string(motd) != "one" {
		t.Errorf("%q %v", motd, err)
	}
}

// TestHeldEnds: a node that is through has nothing to put back, although its lease is renewed until its next pull.
func TestHeldEnds(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		t.Fatal(err)
	}
	var p *pull
	held := false
	p = a.pull(t.Context(), Options{Waiting: func(*lock.Wait) {}, Watch: func(*apply.StepReport) { held = held || p.places.slot.Load() != nil }})
	if err := p.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a.connection.leased == nil {
		t.Error("nobody renews its lease")
	}
	if !held || p.places.slot.Load() != nil {
		t.Errorf("it held a slot: %t, and behind the run: %v", held, p.places.slot.Load())
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// TestHeldIsWhatIsHeld: a node that gave its slot back, because its step may fail everywhere first, has none to put
// back later; one that failed otherwise keeps its slot and knows which.
func TestHeldIsWhatIsHeld(t *testing.T) {
	t.Parallel()
	for options, holds := range map[string]bool{"{failAfterAllTargetsRan: true}": false, "{}": true} {
		h := newHost(t, "steps: [{name: one, action: cmd.run, parameters: {cmd: 'false'}, runOptions: "+options+"}]\n")
		h.pull()
		local, err := state.LoadLocal(h.Paths.State)
		if err != nil {
			t.Fatal(err)
		}
		if (local.Held != nil) != holds {
			t.Errorf("%s: %+v", options, local.Held)
		}
	}
}
