package datastore

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/internal/tier"
	"github.com/pullet/pullet/state"
)

// TestRotation: three members exchange the authority, one behind the other. Every pull of every host works all the
// time, and in the end nobody is let in with a certificate of the former one.
func TestRotation(t *testing.T) {
	t.Parallel()
	c, old := several(t, 3)
	before := c.authorityAt("db1").Fingerprint()
	_, err := Rotate(t.Context(), c.hosts["db2"].Config, true)
	wantError(t, "finish nothing", err, "no rotation is under way: pullet fleet rotate begins one")
	pulls := c.follow("db1", "db2", "db3", "admin")
	done, err := Rotate(t.Context(), c.hosts["db2"].Config, false)
	c.must(err)
	if !done.Begun {
		t.Error(done)
	}
	c.rotates(before, old, "db1", "db2", "db3")
	if n := pulls.Load(); n < 50 {
		t.Error("only so many pulls: ", n)
	}
	c.becomes("db1 db2 db3")
}

// several is a datastore of several members, where nobody is replaced, and the certificate of an operator that the
// authority signed which it had first.
func several(t *testing.T, count int, more ...string) (c *cluster, old []byte) {
	t.Helper()
	tier.Long(t, "each of several members starts anew twice")
	names := []string{"db1", "db2", "db3", "db4", "db5"}[:count]
	c = clustered(t, append(slices.Clone(names[1:]), more...)...)
	w := wanted(1, count, append(slices.Clone(names), more...)...)
	if len(more) == 0 {
		w.ReplaceAfter = time.Hour
	}
	c.wants("db1", w)
	c.becomes(strings.Join(names, " "))
	for _, name := range names {
		c.eventually(name+" opens its door", func() bool { return c.hosts[name].has(socketName) })
	}
	return c, slices.Clone(c.credentials["admin"])
}

// waits waits until a rotation waits for these members in a phase, as a member tells it.
func (c *cluster) waits(at, phase string, members ...string) {
	c.Helper()
	var last Rotated
	var failed error
	c.eventually(at+" says that the rotation is at "+phase, func() bool {
		last, failed = Rotate(c.Context(), c.hosts[at].Config, false)
		if failed == nil && last.Begun {
			c.Fatal("another rotation began")
		}
		return failed == nil && last.Phase == phase && slices.Equal(last.Members, members)
	})
}

// TestRotationOfFive: it goes on with five members, and begins while one of them is away, which follows when it comes
// back. Until then nobody signs with the new authority, whatever an operator types.
func TestRotationOfFive(t *testing.T) {
	t.Parallel()
	c, old := several(t, 5)
	names := []string{"db1", "db2", "db3", "db4", "db5"}
	before := c.authorityAt("db1").Fingerprint()
	c.kill("db3")
	c.follow("db1", "db2", "db4", "db5", "admin")
	done, err := Rotate(t.Context(), c.hosts["db1"].Config, false)
	c.must(err)
	if !done.Begun || done.Phase != state.RotationBelieve || !slices.Contains(done.Members, "db3") {
		t.Error(done)
	}
	_, err = Rotate(t.Context(), c.hosts["db1"].Config, true)
	wantError(t, "finish", err, "the members of the datastore do not all believe the new authority yet")
	c.eventually("the others have it", func() bool { return c.hosts["db2"].has(nextFile) && c.hosts["db5"].has(nextFile) })
	patience.Stays(t, 2*time.Second, "no member signs with the next authority", func() bool {
		return !slices.ContainsFunc(names, func(name string) bool { return c.authorityAt(name).Fingerprint() != before })
	})
	c.start("db3")
	c.follow("db3")
	c.rotates(before, old, names...)
}

// TestRotationMissed: a member that goes away when all believe the next authority, and comes back late, was missed:
// the former authority counted until it had followed, also where an operator would not wait for hosts.
func TestRotationMissed(t *testing.T) {
	t.Parallel()
	c, old := several(t, 3)
	before := c.authorityAt("db1").Fingerprint()
	_, err := Rotate(t.Context(), c.hosts["db1"].Config, false)
	c.must(err)
	c.waits("db1", state.RotationSign)
	c.believes(c.authorityAt("db1").Bundle())
	c.kill("db3")
	done, err := Rotate(t.Context(), c.hosts["db1"].Config, true)
	c.must(err)
	if done.Phase != state.RotationPresent || !slices.Contains(done.Members, "db3") || !slices.Contains(done.Waiting, "admin") {
		t.Error(done)
	}
	c.waits("db2", state.RotationPresent, "db3")
	for _, name := range []string{"db1", "db2"} { // one that is slow is asked again
		c.eventually(name+" lets in the former authority while a member has no other one", func() bool { return c.letsIn(name, old) })
	}
	c.start("db3")
	c.rotates(before, old, "db1", "db2", "db3")
}

// TestRotationReplaces: a member that is lost holds a rotation up until another host took its place: members change
// meanwhile, and who comes has what the others have.
func TestRotationReplaces(t *testing.T) {
	t.Parallel()
	c, old := several(t, 3, "db4")
	before := c.authorityAt("db1").Fingerprint()
	c.follow("db1", "db2", "db4", "admin")
	c.kill("db3")
	done, err := Rotate(t.Context(), c.hosts["db1"].Config, false)
	c.must(err)
	if !slices.Contains(done.Members, "db3") {
		t.Error(done)
	}
	c.becomes("db1 db2 db4")
	c.eventually("who does not follow is waited for alone", func() bool {
		now, err := Rotate(t.Context(), c.hosts["db2"].Config, false)
		return err == nil && now.Phase == state.RotationSign && slices.Equal(now.Waiting, []string{"db3"})
	})
	c.must(c.store("admin").Identities.Revoke(t.Context(), "db3"))
	c.rotates(before, old, "db1", "db2", "db4")
}

// TestRotationKilledAnywhere: members that are killed at whatever moment of a rotation finish it all the same, and no
// host is refused.
func TestRotationKilledAnywhere(t *testing.T) {
	t.Parallel()
	c, old := several(t, 3)
	before := c.authorityAt("db1").Fingerprint()
	seed := tier.Seed(t)
	chance := rand.New(rand.NewPCG(seed, seed))
	_, err := Rotate(t.Context(), c.hosts["db1"].Config, false)
	c.must(err)
	names := []string{"db1", "db2", "db3"}
	for range 8 {
		time.Sleep(time.Duration(chance.IntN(2500)) * time.Millisecond)
		name := names[chance.IntN(len(names))]
		c.kill(name)
		c.start(name)
	}
	c.becomes("db1 db2 db3")
	c.follow("db1", "db2", "db3", "admin")
	c.rotates(before, old, names...)
}
