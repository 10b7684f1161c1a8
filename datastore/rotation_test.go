package datastore

import (
	"slices"
	"strings"
	"testing"
)

// TestRotation: three members exchange the authority, one behind the other. Every pull of every host works all the time,
// and in the end nobody is let in with a certificate of the former one.
func TestRotation(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("each of three members starts anew twice")
	}
	c, old := three(t)
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

// three is a datastore of three members, and a certificate that the authority signed which it had first.
func three(t *testing.T, more ...string) (c *cluster, old []byte) {
	t.Helper()
	c = clustered(t, append([]string{"db2", "db3"}, more...)...)
	c.wants("db1", wanted(1, 3, append([]string{"db1", "db2", "db3"}, more...)...))
	c.becomes("db1 db2 db3")
	for _, name := range []string{"db1", "db2", "db3"} {
		c.until(name+" opens its door", func() bool { return c.hosts[name].has(socketName) })
	}
	return c, slices.Clone(c.credentials["admin"])
}

var _ = strings.Contains
