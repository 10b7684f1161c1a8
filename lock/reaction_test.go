package lock

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// reacts is a node's wish to run a reaction.
func (f *fleet) reacts(q Request, run state.ReactionRun) *Turn {
	f.t.Helper()
	q.Version = &state.Version{ID: run.ID}
	turn := NewReactionTurn(f.Store, q, run)
	wait, err := turn.Try(f.ctx)
	f.must(err)
	if wait != nil || !turn.Holds() {
		f.t.Fatalf("not admitted: %v", wait)
	}
	return turn
}

// TestReactionInTheSlotOfAFailure: a run of a reaction takes the slot of an upgrade that failed, and gives it back as
// it was, also when the run was killed in between, and when the record forgot both meanwhile.
func TestReactionInTheSlotOfAFailure(t *testing.T) {
	for name, between := range map[string]func(f *fleet, turn *Turn){
		"killed": func(*fleet, *Turn) {},
		"forgotten": func(f *fleet, turn *Turn) {
			held := turn.Slot()
			_, err := f.Client.Delete(f.ctx, f.Rollouts.SlotPrefix(""), clientv3.WithPrefix())
			f.must(err)
			f.putsBack(held, turn.req.Presence.Lives())
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			q := f.request("web1", "web")
			q.Rules.MaxHostFailures = func(int) int { return 1 }
			upgrade := f.mustTry(q)
			f.must(upgrade.Fail(f.ctx, "disk full", Host))
			want := f.claim("web")
			if !want.Idle {
				t.Fatalf("%+v", want)
			}
			run := state.ReactionRun{ID: "r1", Reaction: "fix", Hosts: []string{"web1"}}
			turn := f.reacts(q, run)
			f.must(turn.Check(f.ctx, "fix/step"))
			if got := f.claim("web"); got.Rollout != "r1" || got.Idle {
				t.Fatalf("%+v", got)
			}
			between(f, turn)
			f.must(f.reacts(q, run).End(f.ctx))
			if diff := cmp.Diff(want, f.claim("web")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// claim is the one claim of a group.
func (f *fleet) claim(group string) state.Claim {
	f.t.Helper()
	got, err := f.Client.Get(f.ctx, f.Rollouts.SlotPrefix(group), clientv3.WithPrefix())
	f.must(err)
	if len(got.Kvs) != 1 {
		f.t.Fatalf("%d claims", len(got.Kvs))
	}
	return f.Rollouts.ReadClaim(got.Kvs[0])
}

// TestReactionBesideARollout: the place of a run that goes on beside a rollout is put back among those of the run, and
// takes no slot.
func TestReactionBesideARollout(t *testing.T) {
	f := newFleet(t)
	run := state.ReactionRun{ID: "r1", Reaction: "fix", Hosts: []string{"web1"}, OnChange: true}
	turn := f.reacts(f.request("web1", "web"), run)
	held := turn.Slot()
	claims := f.Commands.Prefix("r1", "claim")
	_, err := f.Client.Delete(f.ctx, claims, clientv3.WithPrefix())
	f.must(err)
	f.putsBack(held, turn.req.Presence.Lives())
	if got := f.keys(claims); !slices.Equal(got, []string{"0"}) {
		t.Errorf("%q", got)
	}
	if got := f.keys(f.Rollouts.SlotPrefix("")); len(got) > 0 {
		t.Errorf("slots: %q", got)
	}
}
