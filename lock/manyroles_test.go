package lock

import (
	"fmt"
	"testing"

	"github.com/pullet/pullet/internal/tier"
	"github.com/pullet/pullet/state"
)

// TestManyRoles: etcd does 128 operations in a transaction. A role that depends on 500 groups and a group of 500 roles
// go on all the same, and who is away still counts.
func TestManyRoles(t *testing.T) {
	tier.Long(t, "500 hosts of 500 roles")
	const roles = 500
	f := newFleet(t)
	requests, groups := make([]Request, roles), make([]string, roles)
	for i := range requests {
		groups[i] = fmt.Sprintf("r%03d", i)
		requests[i] = f.request("host-of-"+groups[i], groups[i])
	}
	last := f.request("last", "last")
	last.Rules.Depends = groups
	for i, q := range requests {
		if i == roles-1 {
			f.mustWait(last, "role r499|host-of-r499")
		}
		f.must(f.mustTry(q).Succeed(f.ctx))
	}
	f.must(f.mustTry(last).Succeed(f.ctx))

	f.propose("v2")
	for i := range requests {
		q := &requests[i]
		q.Version, q.VersionRev = f.version, f.rev
		q.Rules.Group, q.Rules.GroupOf = "all", func(string, state.Member) string { return "all" }
	}
	first, second := requests[0], requests[1]
	turn := f.mustTry(first)
	f.mustWait(second, "host-of-r000 holds it")
	f.must(turn.Succeed(f.ctx))
	f.die(first)
	_, err := f.Client.Delete(f.ctx, f.Rollouts.AwayKey("v2", "all")) // as after a few seconds
	f.must(err)
	f.mustWait(second, "nodes that do not answer: 1")
	second.Rules.Limit = limit(2)
	f.must(f.mustTry(second).Succeed(f.ctx))
}
