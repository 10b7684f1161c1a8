package lock

import (
	"slices"
	"testing"

	"github.com/pullet/pullet/state"
)

// canaried makes a request of rules in which some nodes are canaries. The others wait for the canaries where depends
// says so.
func (f *fleet) canaried(node, role string, depends bool, canaries ...string) Request {
	f.t.Helper()
	groups := map[string]string{}
	for _, c := range canaries {
		groups[c] = "canary"
	}
	q := f.grouped(node, role, groups)
	q.Rules.Canaries, q.Rules.RoleGroup, q.Rules.RoleLimit = "canary", state.GroupOf, limit(1)
	if depends && !slices.Contains(canaries, node) {
		q.Rules.Depends = []string{"canary"}
	}
	return q
}

// TestCanaryWaitsForItsRole: a canary waits for a node of its role that is in the middle of an older version, until
// that one waits itself. Where the role has room, it does not.
func TestCanaryWaitsForItsRole(t *testing.T) {
	f := newFleet(t)
	f.mustTry(f.request("web1", "web"))
	f.propose("v2")
	f.mustWait(f.canaried("web3", "web", true, "web3"), "slot web (1 at a time)|web1 holds slot web since")
	f.must(f.mustTry(f.canaried("db3", "db", true, "db3")).Release(f.ctx))
	two := f.canaried("web3", "web", true, "web3")
	two.Rules.RoleLimit = limit(2)
	f.must(f.mustTry(two).Release(f.ctx))
	f.mustWait(f.canaried("web1", "web", true, "web3"), "not upgraded yet: web3")
	canary := f.mustTry(f.canaried("web3", "web", true, "web3"))
	f.must(canary.Succeed(f.ctx))
	f.must(f.mustTry(f.canaried("web1", "web", true, "web3")).Succeed(f.ctx))
}

// TestRoleWaitsForCanary: a canary counts in its role until it is done, also in a version without canaries, and in the
// role that it had when it began.
func TestRoleWaitsForCanary(t *testing.T) {
	f := newFleet(t)
	canary := f.mustTry(f.canaried("web3", "web", true, "web3"))
	f.mustWait(f.canaried("web1", "web", false, "web3"), "web3 holds slot canary|counts here, too")
	f.propose("v2")
	f.mustWait(f.request("web1", "web"), "web3 holds slot canary|counts here, too")
	f.mustWait(f.canaried("web1", "web", false, "web2"), "web3 holds slot canary|counts here, too")
	moved := f.request("db1", "db")
	moved.Inventory = map[string]state.Member{"web3": {Role: "db"}}
	moved.Rules.Canaries, moved.Rules.RoleGroup = "canary", state.GroupOf
	f.mustWait(moved, "web3 holds slot canary|counts here, too")
	f.must(canary.Release(f.ctx))
	f.mustTry(f.request("web1", "web"))
}

// TestCanariesOfOneRole: as many canaries of a role change as its limit allows, whatever that of the canaries is. A
// limit of 0 holds the other hosts of the role, and not its canaries.
func TestCanariesOfOneRole(t *testing.T) {
	f := newFleet(t)
	two := func(node, role string, ofRole int) Request {
		q := f.canaried(node, role, true, "web3", "web4", "db3")
		q.Rules.Limit, q.Rules.RoleLimit = limit(3), limit(ofRole)
		return q
	}
	f.mustTry(two("web3", "web", 1))
	f.mustTry(two("db3", "db", 1))
	f.mustWait(two("web4", "web", 1), "slot web (1 at a time)|web3 holds slot canary since")
	f.mustTry(two("web4", "web", 0))
}

// TestCanaryOfAHaltedRole: where its role is halted, a canary begins with nothing.
func TestCanaryOfAHaltedRole(t *testing.T) {
	f := newFleet(t)
	f.must(f.mustTry(f.canaried("web1", "web", false, "web3")).Fail(f.ctx, "it broke", Halting))
	f.mustWait(f.canaried("web3", "web", true, "web3"), "role web (halted)|it broke")
}

// TestCanaryOfALostNode: a node of its role that does not answer counts against a canary, as a holder and without a
// claim, unless it is given up.
func TestCanaryOfALostNode(t *testing.T) {
	for name, claims := range map[string]bool{"holder": true, "no claim": false} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			lost := f.request("web1", "web")
			if claims {
				f.mustTry(lost)
				f.propose("v2")
			}
			f.die(lost)
			f.mustWait(f.canaried("web3", "web", true, "web3"), "slot web (1 at a time)|web1 |start web1 again")
			releases := f.canaried("web3", "web", true, "web3")
			releases.Rules.OnLost = Release
			f.mustTry(releases)
		})
	}
}

// TestCanaryBesideItsRole: of a canary and a node of its role that come at once, one is admitted.
func TestCanaryBesideItsRole(t *testing.T) {
	f := newFleet(t)
	for range 20 {
		turns := []*Turn{
			NewTurn(f.Store, f.canaried("web1", "web", false, "web3")), NewTurn(f.Store, f.canaried("web3", "web", false, "web3")),
		}
		f.atOnce(len(turns), func(i int) error {
			_, err := turns[i].Try(f.ctx)
			return err
		})
		if turns[0].Holds() == turns[1].Holds() {
			t.Fatalf("admitted: the host: %t, the canary: %t", turns[0].Holds(), turns[1].Holds())
		}
		for _, turn := range turns {
			f.must(turn.Release(f.ctx))
			f.must(turn.Leave(f.ctx))
		}
	}
}
