package datastore

import (
	"sync"
	"testing"
	"time"
)

// turn asks for the turn of a host as its agent does.
func (c *cluster) turn(name string) Turn {
	c.Helper()
	t, err := TakeTurn(c.Context(), c.hosts[name].Config)
	c.must(err)
	return t
}

// TestTurn: one member at a time may be away, and only when each other one is there.
func TestTurn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("three members come one behind the other")
	}
	c := clustered(t, "db2", "db3")
	c.wants("db1", wanted(1, 3, "db1", "db2", "db3"))
	c.becomes("db1 db2 db3")
	c.until("each serves", func() bool { return c.hosts["db2"].has(socketName) && c.hosts["db3"].has(socketName) })
	c.until("db2 may be away", func() bool { return c.turn("db2") == Turn{} })
	for _, name := range []string{"db1", "db3"} {
		if got := c.turn(name); got != (Turn{Waits: "db2 has the turn"}) {
			t.Error(name, got)
		}
	}
	c.must(KeepTurn(t.Context(), c.hosts["db2"].Config))
	c.must(GiveTurn(t.Context(), c.hosts["db3"].Config)) // it has none
	if got := c.turn("db3"); got != (Turn{Waits: "db2 has the turn"}) {
		t.Error(got)
	}
	c.kill("db2") // it was to be away: until its lease ends, and as long as it is
	if got := c.turn("db3"); got != (Turn{Waits: "db2 has the turn"}) {
		t.Error(got)
	}
	if got := c.turn("db2"); got != (Turn{}) {
		t.Error("who does not run needs no turn: ", got)
	}
	keeper := c.keeperAt("db1")
	_, err := keeper.Delete(t.Context(), "/pullet/"+fleetName+"/datastore/turn") // as its lease does
	c.must(err)
	var asking sync.WaitGroup
	end := time.Now().Add(5 * time.Second)
	for _, name := range []string{"db1", "db3"} {
		asking.Go(func() {
			for time.Now().Before(end) {
				if got := c.turn(name); got.Waits == "" {
					t.Error(name + " may be away beside db2")
				}
			}
		})
	}
	asking.Wait()
	if got := c.turn("db1"); got != (Turn{"db2 does not answer", "look at pullet-etcd on db2: pullet datastore status"}) {
		t.Error(got)
	}
	c.start("db2")
	c.until("db3 may be away", func() bool { return c.turn("db3") == Turn{} })
}
