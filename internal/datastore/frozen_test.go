package datastore

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/tier"
)

// leader is the host of the member that leads, as one that answers has it.
func (c *cluster) leader() string {
	c.Helper()
	var leads string
	c.until("somebody leads", func() bool {
		for _, h := range c.hosts {
			if !h.Carries() || h.stopped.Load() {
				continue
			}
			client := c.keeperAt(h.name)
			s, err := client.Status(c.Context(), h.Endpoint())
			if err != nil || s.Leader != s.Header.MemberId {
				continue
			}
			leads = h.name
			return true
		}
		return false
	})
	return leads
}

// TestFrozenLeader: a leader that stands still for longer than the fleet waits is replaced. Going on again it changes
// nothing, and carries the datastore no more. One that stands still for less goes on as a member.
func TestFrozenLeader(t *testing.T) {
	t.Parallel()
	tier.Long(t, "elections and a replacement take a while")
	c := clustered(t, "db2", "db3", "db4")
	c.wants("db1", wanted(1, 3, "db1", "db2", "db3", "db4"))
	c.becomes("db1 db2 db3")
	first := c.leader()
	c.freeze(first)
	c.leader()
	c.thaw(first)
	c.becomes("db1 db2 db3")
	c.keeps()

	frozen := c.leader()
	c.freeze(frozen)
	others := slices.DeleteFunc([]string{"db1", "db2", "db3", "db4"}, func(n string) bool { return n == frozen })
	c.becomes(others[0] + " " + others[1] + " " + others[2])
	c.thaw(frozen)
	c.awaitEnd(frozen)
	if c.hosts[frozen].Carries() {
		t.Error(frozen, " still carries the datastore")
	}
	c.becomes(others[0] + " " + others[1] + " " + others[2])
	c.keeps()
}

func (c *cluster) freeze(name string) {
	c.Helper()
	c.hosts[name].stopped.Store(true)
	c.signal(name, syscall.SIGSTOP)
}

func (c *cluster) thaw(name string) {
	c.Helper()
	c.signal(name, syscall.SIGCONT)
	c.hosts[name].stopped.Store(false)
}

// TestKilledAnywhere: members that are killed at whatever moment while the datastore grows from one to three come to
// three in the end, with all that is on record.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	tier.Long(t, "each restart of a member takes a while")
	c := clustered(t, "db2", "db3")
	c.wants("db1", wanted(1, 3, "db1", "db2", "db3"))
	seed := tier.Seed(t)
	chance := rand.New(rand.NewPCG(seed, seed))
	for range 8 {
		time.Sleep(time.Duration(chance.IntN(2500)) * time.Millisecond)
		carrying := []string{}
		for _, name := range []string{"db1", "db2", "db3"} {
			if c.hosts[name].Carries() {
				carrying = append(carrying, name)
			}
		}
		name := carrying[chance.IntN(len(carrying))]
		c.kill(name)
		c.start(name)
	}
	c.becomes("db1 db2 db3")
	c.keeps()
}
